use std::fmt;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng, SeedableRng};

/// The random numbers of an endpoint, keys included: ChaCha20, whose past and future output cannot
/// be computed from the output that was seen. Its state is wiped when it is dropped.
pub(crate) struct Chance(ChaCha20Rng);

impl Chance {
    pub(crate) fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// An independent generator for a connection.
    pub(crate) fn fork(&mut self) -> Self {
        Self(ChaCha20Rng::from_rng(&mut self.0))
    }

    pub(crate) fn number(&mut self) -> u32 {
        self.0.next_u32()
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Chance")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_fixes_all_numbers_and_a_fork_is_independent() {
        let (mut one, mut two) = (Chance::new([7; 32]), Chance::new([7; 32]));
        assert_eq!(one.number(), two.number());
        let (mut fork, mut same) = (one.fork(), two.fork());
        assert_eq!(fork.number(), same.number());
        assert_eq!(one.number(), two.number());
        assert_ne!(fork.number(), one.number());
        assert_eq!(format!("{one:?}"), "Chance");
    }
}
