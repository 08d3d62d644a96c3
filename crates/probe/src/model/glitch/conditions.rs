//! The figures of a stream and of a path, from which a playout follows.

use std::time::Duration;

use punctual_units::Bitrate;
use thiserror::Error;

use super::super::latency::{PathFigureError, PathFigures};
use super::playout::{Outcome, Playout, PlayoutError, WantedTime};
use super::recovery::{Effort, RecoveryEffort, RoundTiming};

/// The figures that decide how often a stream glitches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conditions {
    /// The bit rate of the stream's payload, 10 kb/s to 10 Gb/s.
    pub rate: Bitrate,
    /// The share of packets lost from the sender to the receiver, 0 to 0.5.
    pub loss: f64,
    /// The round-trip time, 1 ms to 10 s.
    pub rtt: Duration,
    /// The time from when a packet should arrive to when the player wants it: half a round trip to
    /// an hour.
    pub buffer: Duration,
    /// Copies of the last retransmission that can be in time, up to 32.
    pub copies: u32,
}

/// The circumstances that are chosen once: the way back, and how losses are recovered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    /// The share of packets lost on the way back, 0 to 0.5; `None` for that of the way there.
    pub return_loss: Option<f64>,
    /// The mean number of packets lost in a row, both ways, 1 to 1000; 1 for independent losses.
    pub burst: f64,
    /// The mean deviation of the round-trip time, at most the round-trip time.
    pub jitter: Duration,
    /// The payload of a packet (the paper's block) in bytes.
    pub block: usize,
    /// Datagrams of a NAK that is not the last one in time, 1 to 32.
    pub datagrams: u32,
    /// Datagrams of the last NAK that can be answered in time, 1 to 32.
    pub last_datagrams: u32,
    /// The time beyond a round trip after which a NAK is repeated; `None` for that of the NAK
    /// timers ([`RoundTiming::timed`]), zero for the paper's exact rounds.
    pub margin: Option<Duration>,
    /// The time span in which late packets count as one glitch, a packet to an hour.
    pub readchunk: Duration,
    /// The time at which the player wants a packet.
    pub wanted: WantedTime,
}

/// A figure that is out of its range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ConditionsError {
    /// A figure of the path or the rate.
    #[error(transparent)]
    Path(#[from] PathFigureError),
    /// A figure of the buffer or the readchunk.
    #[error(transparent)]
    Playout(#[from] PlayoutError),
}

impl Conditions {
    /// The playout under these conditions.
    pub fn playout(&self, setting: &Setting) -> Result<Playout, ConditionsError> {
        let path = self.path(setting)?;
        let usual = Effort { datagrams: setting.datagrams, copies: 0 };
        let last = Effort { datagrams: setting.last_datagrams, copies: self.copies };
        let recovery = RecoveryEffort::once().with_usual(usual).with_last(last);
        let timing = RoundTiming::timed(&path);
        let timing = setting.margin.map_or(timing, |margin| timing.with_margin(margin));
        let playout = Playout::new(path, self.buffer, recovery)?;
        Ok(playout.with_timing(timing).with_readchunk(setting.readchunk, setting.wanted)?)
    }

    /// The glitches that are expected under these conditions, and the cost.
    pub fn outcome(&self, setting: &Setting) -> Result<Outcome, ConditionsError> {
        Ok(self.playout(setting)?.outcome())
    }

    fn path(&self, setting: &Setting) -> Result<PathFigures, PathFigureError> {
        let path = PathFigures::new(self.rtt, setting.jitter, self.rate, setting.block)?;
        path.with_loss(self.loss, setting.return_loss.unwrap_or(self.loss), setting.burst)
    }
}

impl Setting {
    /// The paper's rounds: a NAK in one datagram, one round trip from one to the next.
    pub fn of_paper() -> Self {
        let (datagrams, last_datagrams, margin) = (1, 1, Some(Duration::ZERO));
        Self { datagrams, last_datagrams, margin, ..Self::default() }
    }
}

impl Default for Setting {
    /// Independent losses, as many on the way back, packets that are filled, NAKs in two datagrams
    /// and the last one in four, and readchunks of a second whose packets are wanted one by one.
    fn default() -> Self {
        Self {
            return_loss: None,
            burst: 1.0,
            jitter: Duration::ZERO,
            block: FULL_PACKET,
            datagrams: 2,
            last_datagrams: 4,
            margin: None,
            readchunk: Duration::from_secs(1),
            wanted: WantedTime::default(),
        }
    }
}

/// The payload of a full packet: an Ethernet frame less the headers of IPv4, UDP and SRT.
const FULL_PACKET: usize = 1_456;
