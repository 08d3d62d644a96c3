//! The events of a transfer.

use crate::path::RelativePath;

/// An event of a transfer.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// The receiver was offered a file of this many bytes, and did not refuse it. A sender knows
    /// its files from the start ([`Listing::size`](crate::Listing::size)), and is not told.
    Offered(u64),
    /// A file begins, or it is its turn to be skipped.
    Began(&'a RelativePath),
    /// Bytes of the file were received, or handed over to be sent.
    Carried(usize),
    /// Bytes of a file that the receiver has were read, to compare them with the sender's.
    Compared(usize),
    /// Bytes of the file need not be carried, because the receiver has them.
    Spared(u64),
    /// The file is complete at the receiver.
    Completed,
    /// The receiver had the file already, with the same contents.
    Unchanged,
    /// A file cannot be carried, for the reason that the text gives; the transfer goes on.
    Problem(&'a str),
}

/// Is told the events of a transfer as they happen. A closure is one.
pub trait Observer: Sync {
    /// Takes an event.
    fn observe(&self, event: Event<'_>);
}

impl<F: Fn(Event<'_>) + Sync> Observer for F {
    fn observe(&self, event: Event<'_>) {
        self(event);
    }
}
