//! The ends of a stream as commands use them: messages in, messages out, whatever carries them.

mod admission;
mod byte_writer;
mod bytes;
mod cut;
mod datagrams;
mod end_log;
mod group;
mod open;
mod paced;
mod reader;
mod recording;
mod resolve;
pub(crate) mod srt;
mod srt_end;
mod tcp;
mod udp;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use punctual::Listener;

pub(crate) use end_log::EndLog;
pub(crate) use open::{Opener, Pacing, Role};
pub(crate) use reader::Reader;
pub(crate) use recording::{Existing, is_same_file};
pub(crate) use resolve::resolve;
pub(crate) use srt_end::{Row, SrtEnd};
pub(crate) use writer::Writer;

/// One connection to a peer, one UDP socket, one file: something that stands.
pub(crate) struct Connection {
    /// Its number in reports: the socket ID of SRT, else counted from 1.
    pub(crate) id: u64,
    /// Where messages come from.
    pub(crate) reader: Reader,
    /// Where messages go to.
    pub(crate) writer: Writer,
    /// The SRT connection or group, if it is one.
    pub(crate) socket: Option<SrtEnd>,
    /// Where further links of a group may come in, as long as this is here.
    pub(crate) _listener: Option<Arc<Listener>>,
    /// What it carried so far.
    pub(crate) traffic: Arc<Traffic>,
    /// Where it is said what becomes of it.
    pub(crate) log: Arc<EndLog>,
}

/// What a connection carried, without anything that its protocol adds.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
}

impl Traffic {
    /// Counts a message.
    pub(crate) fn count(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Messages carried.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }

    /// Bytes in them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}
