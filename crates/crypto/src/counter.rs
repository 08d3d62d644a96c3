//! Counter mode for packets.
//!
//! The `ctr` crate does the same. This takes two thirds of its time for a packet of a live stream:
//! counters of a known page are made by wide instructions, and nothing is copied.

use aes::cipher::consts::U16;
use aes::cipher::{
    Array, BlockCipherEncBackend, BlockCipherEncClosure, BlockCipherEncrypt, BlockSizeUser,
    ParBlocks,
};

/// Encrypts or decrypts `data`, whose first block has the counter block `first`, read as a number:
/// its last 16 bits count blocks from 0, and no packet has more of them.
///
/// The number comes in registers. Bytes that were written one by one just before would have to
/// wait here until all that was written before them, the packet, is in the cache.
pub(crate) fn apply<C>(key: &C, first: u128, data: &mut [u8])
where
    C: BlockCipherEncrypt<BlockSize = U16>,
{
    debug_assert!(first & 0xFFFF == 0 || data.len() <= BLOCK_LEN, "it counts from 0");
    key.encrypt_with_backend(Application { first, data });
}

/// The work inside the cipher's backend, where all of it is compiled for the instructions that the
/// backend has found.
struct Application<'a> {
    first: u128,
    data: &'a mut [u8],
}

impl BlockSizeUser for Application<'_> {
    type BlockSize = U16;
}

impl BlockCipherEncClosure for Application<'_> {
    #[inline(always)]
    fn call<B: BlockCipherEncBackend<BlockSize = U16>>(self, backend: &B) {
        let Self { mut first, data } = self;
        let (pages, rest) = data.as_chunks_mut::<{ PAGE * BLOCK_LEN }>();
        for page in pages {
            let mut stream = counters(first);
            encrypt(backend, &mut stream);
            mix(page, stream.as_flattened());
            first += PAGE as u128;
        }
        let mut stream = counters(first);
        encrypt(backend, &mut stream[..rest.len().div_ceil(BLOCK_LEN)]);
        // Block by block, as the last of them were encrypted: to read several in one go at once
        // after they were written one by one stalls a processor.
        let (blocks, end) = rest.as_chunks_mut();
        for (block, key) in blocks.iter_mut().zip(&stream) {
            *block = (u128::from_ne_bytes(*block) ^ u128::from_ne_bytes(*key)).to_ne_bytes();
        }
        mix(end, &stream[blocks.len() % PAGE]);
    }
}

/// The counter blocks of the page that begins with `first`. In halves of native words, which
/// compilers make wide instructions of.
#[inline(always)]
fn counters(first: u128) -> Page {
    #[expect(clippy::cast_possible_truncation, reason = "the halves of a number")]
    let (high, low) = (((first >> 64) as u64).to_be(), (first as u64).to_be());
    let mut page = [[0; BLOCK_LEN]; PAGE];
    for (block, place) in page.iter_mut().zip(0_u64..) {
        block[..8].copy_from_slice(&high.to_ne_bytes());
        block[8..].copy_from_slice(&(low | place.to_be()).to_ne_bytes());
    }
    page
}

#[inline(always)]
fn encrypt<B: BlockCipherEncBackend<BlockSize = U16>>(backend: &B, blocks: &mut [Block]) {
    let (batches, rest) =
        ParBlocks::<B>::slice_as_chunks_mut(Array::cast_slice_from_core_mut(blocks));
    batches.iter_mut().for_each(|batch| backend.encrypt_par_blocks(batch.into()));
    rest.iter_mut().for_each(|block| backend.encrypt_block(block.into()));
}

#[inline(always)]
fn mix(place: &mut [u8], with: &[u8]) {
    place.iter_mut().zip(with).for_each(|(byte, with)| *byte ^= with);
}

/// Counter blocks that are made together: as many as the largest backend takes at once, and a power
/// of two, so that the place in a page has bits of its own.
type Page = [Block; PAGE];
type Block = [u8; BLOCK_LEN];

const PAGE: usize = 64;
const BLOCK_LEN: usize = 16;

#[cfg(test)]
mod tests {
    use aes::cipher::{InnerIvInit, KeyInit, StreamCipher, StreamCipherCoreWrapper};
    use aes::{Aes128, Aes256};
    use ctr::CtrCore;
    use proptest::prelude::*;

    use super::*;

    fn by_the_crate<C>(key: &C, first: u128, data: &mut [u8])
    where
        C: BlockCipherEncrypt<BlockSize = U16>,
    {
        let core =
            CtrCore::<&C, ctr::flavors::Ctr128BE>::inner_iv_init(key, &Array(first.to_be_bytes()));
        StreamCipherCoreWrapper::from_core(core).apply_keystream(data);
    }

    proptest! {
        #[test]
        fn is_what_the_ctr_crate_does(
            key in any::<[u8; 32]>(),
            packet in 0..u128::MAX >> 16,
            data in prop::collection::vec(any::<u8>(), 0..2_500),
        ) {
            let first = packet << 16;
            let short = Aes128::new_from_slice(&key[..16]).expect("a length of its");
            let long = Aes256::new(&Array(key));
            let (mut ours, mut theirs) = (data.clone(), data);
            apply(&short, first, &mut ours);
            by_the_crate(&short, first, &mut theirs);
            prop_assert_eq!(&ours, &theirs);
            apply(&long, first, &mut ours);
            by_the_crate(&long, first, &mut theirs);
            prop_assert_eq!(ours, theirs);
        }
    }

    #[test]
    fn counts_as_far_as_a_packet_can_reach() {
        let key = Aes128::new(&Array([7; 16]));
        let (mut ours, mut theirs) = (vec![3; 1 << 16], vec![3; 1 << 16]);
        apply(&key, 0, &mut ours);
        by_the_crate(&key, 0, &mut theirs);
        assert!(ours == theirs);
    }
}
