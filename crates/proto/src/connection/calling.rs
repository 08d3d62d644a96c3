use bytes::Bytes;
use punctual_wire::DataHeader;

use crate::handshake::caller::Caller;

/// Packets that may overtake the conclusion response and are kept until it comes.
const KEPT: usize = 64;

/// A connection whose caller waits for answers.
#[derive(Debug)]
pub(crate) struct Calling {
    pub(crate) caller: Caller,
    pub(crate) request_due: bool,
    early: Vec<(DataHeader, Bytes)>,
}

impl Calling {
    pub(crate) const fn new(caller: Caller) -> Self {
        Self { caller, request_due: true, early: Vec::new() }
    }

    /// Keeps a data packet that came before the conclusion response.
    pub(crate) fn keep(&mut self, header: DataHeader, payload: Bytes) {
        if self.early.len() < KEPT {
            self.early.push((header, payload));
        }
    }

    pub(crate) fn kept(self) -> impl Iterator<Item = (DataHeader, Bytes)> {
        self.early.into_iter()
    }
}
