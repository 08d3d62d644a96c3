//! Readchunks: when the last block of each arrived, and in which a block was too late.

use std::time::Duration;

use punctual_probe::model::glitch::paper;
use punctual_units::Instant;

/// A readchunk whose blocks have all arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Readchunk {
    /// Its number, from 0.
    pub(super) index: u32,
    /// The latest arrival of any of its blocks.
    pub(super) last: Instant,
    /// How much later than it should any of its blocks arrived at most, in seconds.
    pub(super) latest: f64,
}

/// Puts the blocks of a stream together to readchunks.
#[derive(Debug)]
pub(super) struct Readchunks {
    readchunk: Duration,
    block: Duration,
    open: Option<Readchunk>,
}

impl Readchunks {
    /// Readchunks of this time, of blocks of that time.
    pub(super) fn new(readchunk: Duration, block: Duration) -> Self {
        Self { readchunk, block, open: None }
    }

    /// Adds the next block of the stream: its number, its arrival, and how much later it came than
    /// it should. Returns the readchunk before it, if that is complete with this.
    pub(super) fn add(&mut self, block: u64, arrived: Instant, late: f64) -> Option<Readchunk> {
        let index = self.index_of(block);
        match &mut self.open {
            Some(open) if open.index == index => {
                open.last = open.last.max(arrived);
                open.latest = open.latest.max(late);
                None
            }
            open => open.replace(Readchunk { index, last: arrived, latest: late }),
        }
    }

    /// The readchunk of a block: that in whose time of video it begins.
    pub(super) fn index_of(&self, block: u64) -> u32 {
        let begins = u128::from(block) * self.block.as_nanos();
        u32::try_from(begins / self.readchunk.as_nanos().max(1)).unwrap_or(u32::MAX)
    }

    /// The readchunk at the end of the stream, if the stream has all of its blocks.
    pub(super) fn last(&self, blocks: u64) -> Option<Readchunk> {
        let open = self.open?;
        let end = self.readchunk.as_nanos() * (u128::from(open.index) + 1);
        (u128::from(blocks) * self.block.as_nanos() >= end).then_some(open)
    }

    /// The lateness of a readchunk by equation 10 as printed, in seconds; `first` is the first
    /// arrival of the stream.
    pub(super) fn as_printed(&self, it: &Readchunk, first: Instant) -> f64 {
        paper::chunk_lateness_as_printed(it.last, first, self.readchunk, it.index)
    }

    /// The lateness of a readchunk beside the ideal arrival of its last block, in seconds; `first`
    /// is when the stream's first block arrives if it is not lost.
    pub(super) fn beside_ideal(&self, it: &Readchunk, first: Instant) -> f64 {
        paper::chunk_lateness(it.last, first, self.readchunk, self.last_block(it.index), it.index)
    }

    /// The time from the begin of a readchunk's last block to its end.
    fn last_block(&self, index: u32) -> Duration {
        let end = self.readchunk.saturating_mul(index.saturating_add(1));
        let block = self.block.as_nanos().max(1);
        let rest = end.as_nanos() - (end.as_nanos().saturating_sub(1)) / block * block;
        Duration::from_nanos(u64::try_from(rest).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Readchunks of 100 ms, of blocks of 30 ms: 0 to 3, 4 to 6, 7 to 9, 10 to 13.
    fn readchunks() -> Readchunks {
        Readchunks::new(MS(100), MS(30))
    }

    fn arrival(block: u64) -> Instant {
        Instant::from_millis(1_000 + 30 * block)
    }

    #[test]
    fn a_block_belongs_to_the_readchunk_in_which_it_begins() {
        let it = readchunks();
        let of = |block| it.index_of(block);
        assert_eq!([0, 3, 4, 6, 7, 9, 10].map(of), [0, 0, 1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_readchunk_without_losses_is_not_late_beside_the_ideal() {
        let mut it = readchunks();
        let found: Vec<Readchunk> =
            (0..11).filter_map(|block| it.add(block, arrival(block), 0.0)).collect();
        assert_eq!(found.len(), 3);
        for chunk in &found {
            assert!(it.beside_ideal(chunk, arrival(0)).abs() < 1e-9, "{chunk:?}");
            // As printed: nearly the duration of a readchunk, whatever its number is.
            let printed = it.as_printed(chunk, arrival(0));
            assert!((0.069..=0.091).contains(&printed), "{printed}");
        }
        assert_eq!((it.last(11), it.last(14).map(|chunk| chunk.index)), (None, Some(3)));
    }

    #[test]
    fn the_latest_block_decides_wherever_it_is() {
        let mut it = readchunks();
        for block in 0..4 {
            let late = if block == 1 { 0.402 } else { 0.0 };
            it.add(block, arrival(block) + Duration::from_secs_f64(late), late);
        }
        let chunk = it.add(4, arrival(4), 0.0).unwrap();
        assert_eq!((chunk.index, chunk.latest), (0, 0.402));
        // Its last block should have come 60 ms after the late one.
        let late = it.beside_ideal(&chunk, arrival(0));
        assert!((late - 0.342).abs() < 1e-9, "{late}");
    }
}
