//! Congestion control of TCP flows: the window, and the pacing rate.

mod bbr;
mod cubic;
mod hystart;
mod least_rtt;
mod new_reno;

use std::fmt::Debug;
use std::time::Duration;

use punctual_rates::RoundCounter;
use punctual_units::{Bitrate, Instant};

pub(super) use self::bbr::{Bbr1, Bbr3};
pub(super) use self::cubic::TcpCubic;
pub(super) use self::new_reno::TcpNewReno;
use super::tcp::delivery_rate::RateSample;

/// Decides the number of bytes in flight, and perhaps the rate of sending.
///
/// The sender finds losses and chooses the segments to send; a control only reacts. All bytes are
/// those of IP packets.
pub(super) trait CongestionControl: Debug + Send {
    /// The largest number of bytes in flight.
    fn window(&self) -> u64;

    /// The rate at which packets leave. The default is `None`: as soon as the window lets them.
    fn pacing_rate(&self) -> Option<Bitrate> {
        None
    }

    /// Whether the sender spreads the reduction of the window over a round trip (RFC 6937). The
    /// default is yes; a control that paces does not need it.
    fn reduces_in_proportion(&self) -> bool {
        true
    }

    /// An answer arrived, or the sender found losses.
    fn on_ack(&mut self, ack: &AckSummary);

    /// Recovery begins: these are the first losses since the last recovery ended. It is called
    /// after [`on_ack`](Self::on_ack) for the same event.
    fn on_loss(&mut self, ack: &AckSummary);

    /// All packets that recovery began with have arrived. The default ignores it.
    fn on_recovered(&mut self) {}

    /// The retransmission timeout passed with `flight` bytes in flight, which are lost. `repeated`
    /// if it passed before without an answer since.
    fn on_timeout(&mut self, now: Instant, flight: u64, repeated: bool);

    /// The sender sends again after the application had no data and nothing was in flight. The
    /// default ignores it.
    fn on_restart(&mut self) {}
}

/// The news that an answer brings to a control.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckSummary {
    pub(super) now: Instant,
    /// Packets that are newly known to have arrived.
    pub(super) packets: u64,
    /// The part of `packets` that may enlarge the window, because recovery does not wait for them.
    pub(super) growing: u64,
    /// Packets that are newly known to be lost.
    pub(super) lost: u64,
    /// Bytes in flight before this answer.
    pub(super) prior_flight: u64,
    /// Bytes in flight after it.
    pub(super) flight: u64,
    /// The round trip of the newest packet that the answer tells of.
    pub(super) rtt: Option<Duration>,
    /// The smoothed round trip; zero before the first sample.
    pub(super) smoothed_rtt: Duration,
    /// Bytes that arrived since the flow began.
    pub(super) delivered: u64,
    /// The rate at which packets arrived.
    pub(super) rate: Option<RateSample>,
    /// Whether the window was full since the newest packet was sent. If not, the source was the
    /// limit, and the window has no reason to grow.
    pub(super) window_limited: bool,
}

impl AckSummary {
    /// Whether a new round trip begins with this answer.
    fn begins_round(&self, rounds: &mut RoundCounter) -> bool {
        self.rate.is_some_and(|rate| rounds.acknowledged(rate.prior_delivered, self.delivered))
    }
}

/// Packets (RFC 6928).
const INITIAL_WINDOW: u64 = 10;

#[cfg(test)]
mod testing {
    use super::*;

    /// An answer at `now` to `packets` packets, by a sender that fills its window.
    pub(super) fn ack(now: Duration, packets: u64, rtt: Duration) -> AckSummary {
        AckSummary {
            now: Instant::ORIGIN + now,
            packets,
            growing: packets,
            lost: 0,
            prior_flight: 0,
            flight: 0,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            delivered: 0,
            rate: None,
            window_limited: true,
        }
    }
}
