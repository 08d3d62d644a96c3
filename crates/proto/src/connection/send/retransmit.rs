//! The policies of retransmission: which of the packets that the peer reported lost are
//! retransmitted, and when.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use super::deadline::Deadline;
use super::playout::Playout;
use crate::config::{Config, RetransmitAlgorithm};
use crate::handshake::Negotiated;

/// The next packet in the loss list.
#[derive(Clone, Copy, Debug)]
pub struct ReportedPacket {
    /// Its sequence number.
    pub seq: SeqNo,
    /// The instant at which the application submitted it.
    pub origin: Instant,
    /// Its last retransmission; `None` if only the original was sent.
    pub last_retransmit: Option<Instant>,
    /// The number of its retransmissions so far.
    pub retransmissions: u32,
    /// The latest instant at which its retransmission is of use: the peer drops it when the next
    /// packet that it has is due, at that packet's origin plus the peer's latency. `None` if the
    /// peer waits for all packets, or if this retransmission probes a silent peer.
    pub deadline: Option<Instant>,
    /// The same for a retransmission after that of the next packet: if that one arrives first, the
    /// peer drops this one when that one is due. In a stream of bytes with a playout point, where
    /// nothing is dropped, the playout point of the next packet.
    pub next_deadline: Option<Instant>,
}

/// The sender's knowledge of its stream and path when it decides on a retransmission.
#[derive(Clone, Copy, Debug)]
pub struct SenderView {
    /// The round-trip time.
    pub rtt: Rtt,
    /// The number of originals sent so far.
    pub originals: u64,
    /// The share of originals that were reported lost, over the last thousands; small while fewer
    /// were sent.
    pub loss: f64,
    /// The limit of the rate of retransmissions; `None` for no separate limit.
    pub limit: Option<Bitrate>,
    /// The time from a retransmission to the next one of the same packet, if the first one is lost.
    pub round: Duration,
}

/// The decision on a packet that was reported lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Decision {
    /// It is not retransmitted: the NAK was sent before the last retransmission can have arrived,
    /// or the limit of retransmissions is reached.
    Suppress,
    /// It is not retransmitted: it would arrive too late to be played.
    TooLate,
    /// It is retransmitted now.
    Retransmit {
        /// Further copies, unless the packet is acknowledged first.
        copies: u32,
        /// The time between the copies.
        spacing: Duration,
    },
}

impl Decision {
    /// It is retransmitted now, once.
    pub const ONCE: Self = Self::Retransmit { copies: 0, spacing: Duration::ZERO };
}

/// Decides whether a packet that was reported lost is retransmitted now, and with how many copies.
///
/// A packet that is not retransmitted leaves the loss list, and returns only with another NAK.
pub trait RetransmitPolicy: fmt::Debug + Send {
    /// The decision on `packet` at `now`.
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision;
}

/// Answers every NAK (libsrt's RETRANSMITALGO 0).
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggressive;

impl RetransmitPolicy for Aggressive {
    fn decide(&mut self, _now: Instant, _packet: &ReportedPacket, _view: &SenderView) -> Decision {
        Decision::ONCE
    }
}

/// Retransmits a packet no earlier than RTT - 4 RTTVar after its last retransmission: a NAK that
/// arrives before was sent before that retransmission can have arrived (libsrt's RETRANSMITALGO 1).
/// If RTTVar exceeds RTT / 4, no NAK is suppressed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Efficient;

impl RetransmitPolicy for Efficient {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision {
        let hold = view.rtt.smoothed.saturating_sub(view.rtt.variance * 4);
        let allows = packet.last_retransmit.is_none_or(|last| hold.is_zero() || now > last + hold);
        if allows { Decision::ONCE } else { Decision::Suppress }
    }
}

/// The policy of the configuration toward this peer.
pub(crate) fn policy(config: &Config, peer: &Negotiated) -> Box<dyn RetransmitPolicy> {
    let is_custom = matches!(config.retransmit_algorithm(), RetransmitAlgorithm::Custom(_));
    if peer.playout.is_some() && !is_custom {
        return Box::new(Playout::new(config.glitch_target(), ceiling(config)));
    }
    match config.retransmit_algorithm() {
        RetransmitAlgorithm::Aggressive => Box::new(Aggressive),
        RetransmitAlgorithm::Efficient => efficient(peer.peer.periodic_nak),
        RetransmitAlgorithm::Deadline => deadline(config),
        RetransmitAlgorithm::Auto if peer.peer.nak_timers => deadline(config),
        RetransmitAlgorithm::Auto => efficient(peer.peer.periodic_nak),
        RetransmitAlgorithm::Custom(factory) => factory.make(),
    }
}

/// The efficient algorithm, which needs a peer that repeats its NAKs.
fn efficient(peer_repeats_reports: bool) -> Box<dyn RetransmitPolicy> {
    if peer_repeats_reports { Box::new(Efficient) } else { Box::new(Aggressive) }
}

fn deadline(config: &Config) -> Box<dyn RetransmitPolicy> {
    let target = Some(config.loss_target()).filter(|&share| share > 0.0);
    Box::new(Deadline::new(target, ceiling(config)))
}

fn ceiling(config: &Config) -> Option<f64> {
    Some(config.retransmit_ceiling()).filter(|&share| share > 0.0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn asked(
        policy: &mut dyn RetransmitPolicy,
        last: Option<u64>,
        now: u64,
        rtt: u64,
        var: u64,
    ) -> bool {
        let packet = ReportedPacket {
            seq: SeqNo::new(1),
            origin: Instant::ORIGIN,
            last_retransmit: last.map(Instant::from_millis),
            retransmissions: u32::from(last.is_some()),
            deadline: None,
            next_deadline: None,
        };
        let rtt = Rtt { smoothed: MS(rtt), variance: MS(var) };
        let view = SenderView { rtt, originals: 0, loss: 0.0, limit: None, round: rtt.bound() };
        policy.decide(Instant::from_millis(now), &packet, &view) == Decision::ONCE
    }

    #[test]
    fn efficient_holds_back_until_rtt_less_four_deviations() {
        assert!(asked(&mut Efficient, None, 100, 20, 2), "the first retransmission is free");
        assert!(!asked(&mut Efficient, Some(100), 105, 20, 2));
        assert!(!asked(&mut Efficient, Some(100), 112, 20, 2), "exactly 12 ms later is too early");
        assert!(asked(&mut Efficient, Some(100), 113, 20, 2));
        assert!(asked(&mut Efficient, Some(100), 100, 20, 6), "4 RTTVar > RTT holds nothing back");
    }

    #[test]
    fn aggressive_answers_every_report() {
        assert!(asked(&mut Aggressive, Some(100), 100, 20, 2));
    }

    #[test]
    fn efficient_needs_a_peer_that_repeats_its_reports() {
        assert!(!asked(efficient(true).as_mut(), Some(100), 101, 20, 2));
        assert!(asked(efficient(false).as_mut(), Some(100), 101, 20, 2));
    }
}
