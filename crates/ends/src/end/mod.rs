//! The ends of a stream: messages in, messages out, over any carrier.

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
mod loops;
mod observed;
mod open;
mod paced;
mod pacing;
mod packets;
mod plain_packets;
mod port_owner;
mod quic;
mod reader;
mod recording;
mod recording_place;
mod resolve;
pub(crate) mod resumed;
mod rtp;
mod rtp_datagram;
pub mod srt;
mod srt_end;
mod srt_writer;
mod stats_end;
mod tcp;
mod traffic;
mod udp;
mod writer;

use punctual::Transmission;
use punctual_uri::{Target, Uri};

pub use connection::Connection;
pub use end_log::EndLog;
pub use ending::{check_arrival, end_stream};
pub use loops::{check_loop, reaches};
pub use observed::Observed;
pub use open::{Opener, Role};
pub use pacing::{FilePace, Pacing};
pub use port_owner::{PortTransport, cannot_bind};
pub use reader::Reader;
pub use recording::Existing;
pub use recording_place::RecordingPlace;
pub use resolve::resolve;
pub use resumed::ResumedStream;
pub use srt_end::{Row, SrtEnd};
pub use srt_writer::SrtWriter;
pub use stats_end::StatsEnd;
pub use traffic::MessageTraffic;
pub use writer::Writer;

/// Whether an end cannot wait for the other one: it loses data instead.
pub fn is_live(uri: &Uri) -> bool {
    match &uri.target {
        Target::Udp(_) => true,
        Target::Srt(target) => target.config.transmission() == Transmission::Live,
        _ => false,
    }
}
