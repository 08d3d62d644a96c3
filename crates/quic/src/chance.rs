//! The random numbers of an endpoint, all from one seed.

use std::hash::Hasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use aws_lc_rs::{hkdf, hmac};
use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};
use siphasher::sip::SipHasher24;

/// Bytes of a connection ID: the least that RFC 9000 (section 7.2) allows for the first one.
const ID_LENGTH: usize = 8;

/// The secrets of an endpoint, drawn from its seed.
#[derive(Debug)]
pub(crate) struct Secrets {
    /// The key of stateless resets.
    pub(crate) reset_key: hmac::Key,
    /// The key of the tokens that validate addresses.
    pub(crate) token_key: hkdf::Prk,
    /// The seed of quinn's own random numbers.
    pub(crate) quinn_seed: [u8; 32],
    pub(crate) ids: Ids,
}

impl Secrets {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        let mut chance = ChaCha20Rng::from_seed(seed);
        let mut draw = || {
            let mut bytes = [0; 32];
            chance.fill_bytes(&mut bytes);
            bytes
        };
        let [reset, token, quinn_seed, ids] = [draw(), draw(), draw(), draw()];
        let mut key = [0; 16];
        key.copy_from_slice(&ids[..16]);
        Self {
            reset_key: hmac::Key::new(hmac::HMAC_SHA256, &reset),
            token_key: hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&token),
            quinn_seed,
            ids: Ids { key, count: Arc::default() },
        }
    }
}

/// Connection IDs: a keyed hash of a counter, so that no observer can tell which of them belong
/// together.
#[derive(Clone, Debug)]
pub(crate) struct Ids {
    key: [u8; 16],
    count: Arc<AtomicU64>,
}

impl Ids {
    pub(crate) fn next(&self) -> ConnectionId {
        let mut hasher = SipHasher24::new_with_key(&self.key);
        hasher.write_u64(self.count.fetch_add(1, Ordering::Relaxed));
        ConnectionId::new(&hasher.finish().to_be_bytes())
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.next()
    }

    fn cid_len(&self) -> usize {
        ID_LENGTH
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_fixes_the_connection_ids() {
        let ids = |seed| {
            let ids = Secrets::new([seed; 32]).ids;
            [ids.next(), ids.next()]
        };
        assert_eq!(ids(1), ids(1));
        assert_ne!(ids(1), ids(2));
        assert_ne!(ids(1)[0], ids(1)[1]);
        assert_eq!(ids(1)[0].len(), ID_LENGTH);
    }
}
