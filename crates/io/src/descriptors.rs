//! Descriptors that make ports cheaper to drive, and that a process should not have many of.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The descriptors of one kind. The first ports of a process have one each; a process with many
/// ports may have a limit of 1,024 descriptors, and needs them for more ports.
#[derive(Debug)]
pub(crate) struct Descriptors(AtomicUsize);

/// The right to a descriptor, as long as it lives.
#[derive(Debug)]
pub(crate) struct Share(&'static AtomicUsize);

impl Descriptors {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// The right to another descriptor, unless there are many.
    pub(crate) fn share(&'static self) -> Option<Share> {
        // Taken first: given back by its drop if there are too many.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        let share = Share(&self.0);
        (before < MANY).then_some(share)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The number of ports up to which each has descriptors of every kind.
const MANY: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ones_have_a_descriptor_each_and_give_it_back() {
        static DESCRIPTORS: Descriptors = Descriptors::new();
        let mut shares: Vec<_> = (0..20).filter_map(|_| DESCRIPTORS.share()).collect();
        assert_eq!(shares.len(), MANY);
        shares.truncate(10);
        assert!(DESCRIPTORS.share().is_some());
    }
}
