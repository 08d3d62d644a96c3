//! The count of messages that a connection has carried.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// The messages that a connection has carried, without anything that its protocol adds.
#[derive(Debug, Default)]
pub struct MessageTraffic {
    messages: AtomicU64,
    bytes: AtomicU64,
    unsent_messages: AtomicU64,
    unsent_bytes: AtomicU64,
    lost: Mutex<Option<(u64, u64)>>,
}

impl MessageTraffic {
    /// Counts a message.
    pub fn count(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts several messages with this number of bytes in all.
    pub fn count_many(&self, messages: u64, bytes: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says that some of what was counted was not sent after all. Returns the number of such
    /// messages before.
    pub fn count_unsent(&self, messages: u64, bytes: usize) -> u64 {
        self.unsent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.unsent_messages.fetch_add(messages, Ordering::Relaxed)
    }

    /// Counts messages that are missing by their numbers, and messages that came twice or too late.
    pub fn count_lost(&self, lost: u64, late: u64) {
        let mut counts = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let (lost_before, late_before) = counts.unwrap_or_default();
        *counts = Some((lost_before + lost, late_before + late));
    }

    /// Messages that are missing by their numbers, and messages that came twice or too late; `None`
    /// where messages have no numbers.
    pub fn lost(&self) -> Option<(u64, u64)> {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages carried.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed).saturating_sub(self.unsent().0)
    }

    /// Bytes in them.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).saturating_sub(self.unsent().1)
    }

    /// The messages and bytes that were not sent, because they do not fit the connection.
    pub fn unsent(&self) -> (u64, u64) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (count(&self.unsent_messages), count(&self.unsent_bytes))
    }
}
