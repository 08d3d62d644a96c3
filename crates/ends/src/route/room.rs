//! The room for the messages that wait for a consumer.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The room for the messages that wait for a consumer.
pub(super) struct Room {
    places: Arc<Semaphore>,
    /// All places.
    size: u32,
    counts_bytes: bool,
}

/// The places that a batch takes until the last copy of this is dropped.
#[derive(Clone)]
pub(super) struct BatchPlace(
    #[expect(dead_code, reason = "it is free when dropped")] Arc<OwnedSemaphorePermit>,
);

impl Room {
    /// Room for this number of batches.
    pub(super) fn for_batches(count: u32) -> Self {
        Self::new(count, false)
    }

    /// Room for this number of bytes; at most 4 GiB. One batch fits, however large it is.
    pub(super) fn for_bytes(bytes: u64) -> Self {
        Self::new(u32::try_from(bytes).unwrap_or(u32::MAX), true)
    }

    fn new(size: u32, counts_bytes: bool) -> Self {
        let places = Arc::new(Semaphore::new(size as usize));
        Self { places, size, counts_bytes }
    }

    /// Places for a batch of this number of bytes when there are as many.
    pub(super) async fn take(&self, bytes: u64) -> BatchPlace {
        let taken = Arc::clone(&self.places).acquire_many_owned(self.needed(bytes)).await;
        let Ok(taken) = taken else { unreachable!("the semaphore is never closed") };
        BatchPlace(Arc::new(taken))
    }

    /// Places for a batch of this number of bytes if there are as many.
    pub(super) fn try_take(&self, bytes: u64) -> Option<BatchPlace> {
        let taken = Arc::clone(&self.places).try_acquire_many_owned(self.needed(bytes));
        taken.ok().map(|taken| BatchPlace(Arc::new(taken)))
    }

    /// The number of places that are free.
    pub(super) fn free(&self) -> usize {
        self.places.available_permits()
    }

    fn needed(&self, bytes: u64) -> u32 {
        if !self.counts_bytes {
            return 1;
        }
        u32::try_from(bytes).unwrap_or(u32::MAX).min(self.size)
    }
}
