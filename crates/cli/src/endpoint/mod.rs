//! The ends of a stream as commands use them: messages in, messages out, over any carrier.

mod adapter;
mod addresses;
mod admission;
mod byte_writer;
mod bytes;
mod connection;
mod cut;
mod datagrams;
mod end_log;
mod ending;
mod fit;
mod frames;
mod group;
mod growing;
mod haste;
mod input;
mod interfaces;
mod limited;
pub(crate) mod loops;
pub(crate) mod open;
mod paced;
mod packets;
mod plain_packets;
pub(crate) mod port_owner;
mod quic;
mod reader;
pub(crate) mod recording;
mod recording_place;
mod resolve;
pub(crate) mod resumed;
mod rtp;
pub(crate) mod srt;
mod srt_end;
mod stats_end;
mod tcp;
mod udp;
mod writer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use punctual::Transmission;
use punctual_uri::{Target, Uri};

pub(crate) use connection::Connection;
pub(crate) use end_log::EndLog;
pub(crate) use ending::{check_arrival, end_stream};
pub(crate) use open::{Opener, Pacing, Role};
pub(crate) use reader::Reader;
pub(crate) use recording::Existing;
pub(crate) use recording_place::RecordingPlace;
pub(crate) use resolve::resolve;
pub(crate) use resumed::ResumedStream;
pub(crate) use srt_end::{Row, SrtEnd};
pub(crate) use stats_end::StatsEnd;
pub(crate) use writer::Writer;

/// Whether an end cannot wait for the other one: it loses data instead.
pub(crate) fn is_live(uri: &Uri) -> bool {
    match &uri.target {
        Target::Udp(_) => true,
        Target::Srt(target) => target.config.transmission() == Transmission::Live,
        _ => false,
    }
}

/// The messages that a connection has carried, without anything that its protocol adds.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    messages: AtomicU64,
    bytes: AtomicU64,
    unsent_messages: AtomicU64,
    unsent_bytes: AtomicU64,
    lost: Mutex<Option<(u64, u64)>>,
}

impl Traffic {
    /// Counts a message.
    pub(crate) fn count(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Counts several messages with this number of bytes in all.
    pub(crate) fn count_many(&self, messages: u64, bytes: u64) {
        self.messages.fetch_add(messages, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Says that some of what was counted was not sent after all. Returns the number of such
    /// messages before.
    pub(crate) fn count_unsent(&self, messages: u64, bytes: usize) -> u64 {
        self.unsent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.unsent_messages.fetch_add(messages, Ordering::Relaxed)
    }

    /// Counts messages that are missing by their numbers, and messages that came twice or too late.
    pub(crate) fn count_lost(&self, lost: u64, late: u64) {
        let mut counts = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        let (lost_before, late_before) = counts.unwrap_or_default();
        *counts = Some((lost_before + lost, late_before + late));
    }

    /// Messages that are missing by their numbers, and messages that came twice or too late; `None`
    /// where messages have no numbers.
    pub(crate) fn lost(&self) -> Option<(u64, u64)> {
        *self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Messages carried.
    pub(crate) fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed).saturating_sub(self.unsent().0)
    }

    /// Bytes in them.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).saturating_sub(self.unsent().1)
    }

    /// The messages and bytes that were not sent, because they do not fit the connection.
    pub(crate) fn unsent(&self) -> (u64, u64) {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (count(&self.unsent_messages), count(&self.unsent_bytes))
    }
}
