//! The messages that an end of a route hands to others.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual::Outgoing;
use punctual::resume::WrittenBytes;

use crate::route::room::BatchPlace;

/// Messages that are handed over together.
#[derive(Clone, Default)]
pub struct Batch {
    messages: Vec<Outgoing>,
    receipt: Option<Receipt>,
    /// Its place among the messages that wait for a consumer.
    place: Option<BatchPlace>,
}

/// Messages that a consumer has taken. The value is dropped when they are written.
pub(super) struct UnwrittenMessages {
    receipt: Option<Receipt>,
    _place: Option<BatchPlace>,
}

/// Confirms messages to the receiver of a stream when the last consumer is done with them, unless
/// one of the consumers could not write them.
#[derive(Clone)]
pub struct Receipt(Arc<Confirmation>);

struct Confirmation {
    written: WrittenBytes,
    /// The number of bytes that the receiver has handed over with these messages.
    taken: u64,
    is_withheld: AtomicBool,
}

impl Batch {
    /// Messages whose receipt confirms them, if they have one.
    pub const fn new(messages: Vec<Outgoing>, receipt: Option<Receipt>) -> Self {
        Self { messages, receipt, place: None }
    }

    /// The bytes of all its messages.
    pub(super) fn bytes(&self) -> u64 {
        self.messages.iter().map(|message| message.payload.len() as u64).sum()
    }

    /// The same messages, which take this place until they are written.
    pub(super) fn with_place(self, place: BatchPlace) -> Self {
        Self { place: Some(place), ..self }
    }

    /// The messages and their receipt, without the place.
    pub(super) fn into_messages(self) -> (Vec<Outgoing>, Option<Receipt>) {
        (self.messages, self.receipt)
    }

    /// The messages, and what is to be dropped when they are written.
    pub(super) fn into_parts(self) -> (Vec<Outgoing>, UnwrittenMessages) {
        (self.messages, UnwrittenMessages { receipt: self.receipt, _place: self.place })
    }
}

impl Deref for Batch {
    type Target = Vec<Outgoing>;

    fn deref(&self) -> &Self::Target {
        &self.messages
    }
}

impl DerefMut for Batch {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.messages
    }
}

impl Receipt {
    /// A receipt that tells `written` that the first `taken` bytes are written.
    pub fn new(written: WrittenBytes, taken: u64) -> Self {
        Self(Arc::new(Confirmation { written, taken, is_withheld: AtomicBool::new(false) }))
    }
}

impl UnwrittenMessages {
    /// Never confirms these messages, because they could not be written.
    pub(super) fn withhold(self) {
        if let Some(receipt) = &self.receipt {
            receipt.0.is_withheld.store(true, Ordering::Relaxed);
        }
    }
}

impl Drop for Confirmation {
    fn drop(&mut self) {
        if !self.is_withheld.load(Ordering::Relaxed) {
            self.written.advance_to(self.taken);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_confirmed_when_the_last_taker_has_written_them() {
        let written = WrittenBytes::default();
        let batch = |taken| Batch::new(Vec::new(), Some(Receipt::new(written.clone(), taken)));
        let (one, other) = (batch(10), batch(20));
        let copies = [one.clone(), other.clone()];
        drop((one, other));
        assert_eq!(written.get(), 0);
        let [one, other] = copies;
        drop(one);
        assert_eq!(written.get(), 10);
        drop(other);
        assert_eq!(written.get(), 20);
        let failed = batch(30);
        failed.clone().into_parts().1.withhold();
        drop(failed);
        assert_eq!(written.get(), 20, "a consumer could not write them");
    }
}
