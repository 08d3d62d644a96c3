//! Congestion control: how fast a sender may go, and how much may be on its way.

pub(crate) mod file;
mod input_rate;
pub(crate) mod live;
mod progress;

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use self::file::FileControl;
use self::live::LiveControl;
use crate::chance::Chance;
use crate::config::{Config, CongestionAlgorithm, Transmission};
use crate::connection::send::pacer::Pace;
use crate::handshake::Negotiated;

/// What a sender knows of its path when something happens that congestion control may react to.
#[derive(Clone, Copy, Debug)]
pub struct PathState {
    /// The round-trip time.
    pub rtt: Rtt,
    /// Packets per second that arrive at the peer, smoothed from its ACKs; 0 if unknown.
    pub delivery_rate: u32,
    /// Packets per second that the link seems to carry, smoothed from the peer's ACKs; 0 if
    /// unknown.
    pub capacity: u32,
    /// Packets that the peer reported lost and that wait to be sent again.
    pub in_loss_list: usize,
    /// Packets that the loss report which came added to those; 0 if none came.
    pub newly_lost: u64,
    /// How often the oldest packet that is not acknowledged was reported lost: what arrives behind
    /// it is not acknowledged before it has come. 0 where nothing is lost, and for live.
    pub repairs: u32,
    /// The number of the next first transmission.
    pub next_new: SeqNo,
}

/// Decides how fast packets follow each other and how many may be on their way.
///
/// The sender asks for period and window after each call that may change them. What it sends at
/// which instant, and what is sent again, is not decided here.
pub trait CongestionControl: fmt::Debug + Send {
    /// Time from one packet to the next.
    fn period(&self) -> Duration;

    /// Most packets in flight. What the peer has room for bounds them as well.
    fn window(&self) -> u32;

    /// The rate that the period stands for, headers included, for the statistics.
    fn max_bandwidth(&self) -> Bitrate;

    /// An ACK came in, which acknowledged so many `packets`; none if it told nothing new.
    fn acknowledged(&mut self, now: Instant, packets: u32, path: &PathState);

    /// The peer reported packets lost, the first of them `first`.
    fn lost(&mut self, now: Instant, first: SeqNo, path: &PathState);

    /// Nothing was acknowledged for long.
    fn timed_out(&mut self, now: Instant, path: &PathState);
}

/// The congestion control of a connection. Live's has more to see than the others: it follows what
/// the application submits and how large packets are. That is done for each packet, so it is not
/// reached through a table of functions.
#[derive(Debug)]
pub(crate) enum Controller {
    Live(LiveControl),
    Other(Box<dyn CongestionControl>),
}

impl Controller {
    pub(crate) fn new(config: &Config, negotiated: &Negotiated) -> Self {
        if config.transmission() == Transmission::Live {
            return Self::Live(LiveControl::new(config));
        }
        match config.congestion_algorithm() {
            CongestionAlgorithm::Standard => {
                // The ends drew both numbers at random from their seeds.
                let mut seed = [0; 32];
                seed[..4].copy_from_slice(&negotiated.send_isn.value().to_be_bytes());
                seed[4..8].copy_from_slice(&negotiated.peer_socket_id.value().to_be_bytes());
                Self::Other(Box::new(FileControl::new(
                    negotiated.mss,
                    config.max_bandwidth(),
                    negotiated.peer_flow_window,
                    negotiated.send_isn,
                    Chance::new(seed),
                )))
            }
            CongestionAlgorithm::Custom(factory) => Self::Other(factory.make()),
        }
    }

    /// The application submitted `payload` bytes.
    pub(crate) fn submitted(&mut self, now: Instant, payload: usize) {
        if let Self::Live(live) = self {
            live.submitted(now, payload);
        }
    }

    /// The application submitted something for which there is no room.
    pub(crate) const fn refused(&mut self) {
        if let Self::Live(live) = self {
            live.refused();
        }
    }

    /// The input's rate, given or measured; `None` for files, which have none.
    pub(crate) fn input(&self) -> Option<Bitrate> {
        match self {
            Self::Live(live) => live.input(),
            Self::Other(_) => None,
        }
    }

    /// A packet of `payload` bytes goes out.
    pub(crate) fn sent(&mut self, payload: usize) {
        if let Self::Live(live) = self {
            live.sent(payload);
        }
    }

    /// How packets are spaced: live's limit is a rate, so that each takes the time of its size. The
    /// draft's period is that of a packet of mean size, and a stream whose messages become small
    /// would wait as for large ones until the mean had followed.
    pub(crate) fn pace(&self) -> Pace {
        match self {
            Self::Live(live) => live.pace(),
            Self::Other(other) => Pace::Packet(other.period()),
        }
    }

    pub(crate) fn get(&self) -> &dyn CongestionControl {
        match self {
            Self::Live(live) => live,
            Self::Other(other) => other.as_ref(),
        }
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn CongestionControl {
        match self {
            Self::Live(live) => live,
            Self::Other(other) => other.as_mut(),
        }
    }
}
