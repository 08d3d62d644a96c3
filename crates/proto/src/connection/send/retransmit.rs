//! Which of the packets reported lost are sent again, and when.

use std::fmt;
use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use super::deadline::Deadline;
use crate::config::{Config, RetransmitAlgorithm};
use crate::handshake::Negotiated;

/// A packet that the peer reported lost and whose turn to be sent again has come.
#[derive(Clone, Copy, Debug)]
pub struct ReportedPacket {
    /// Its sequence number.
    pub seq: SeqNo,
    /// When the application submitted it.
    pub origin: Instant,
    /// When it was last sent again; `None` if only the original was sent.
    pub last_retransmit: Option<Instant>,
    /// How often it was sent again.
    pub retransmissions: u32,
    /// Until when it must leave to be of use: the peer gives it up when the next packet that it has
    /// is due, so this is that packet's origin and the peer's latency. `None` where the peer waits
    /// for everything, and where nothing was reported: the packet asks a silent peer whether it is
    /// still there.
    pub deadline: Option<Instant>,
    /// The same for what leaves after the packet behind it: if that one arrives first, this one is
    /// given up when that one is due.
    pub next_deadline: Option<Instant>,
}

/// What a sender knows of its stream and path when it answers a report.
#[derive(Clone, Copy, Debug)]
pub struct SenderView {
    /// The round-trip time.
    pub rtt: Rtt,
    /// Packets sent for the first time so far.
    pub originals: u64,
    /// Share of them that were reported lost, over the last thousands; of fewer it is taken for
    /// small.
    pub loss: f64,
    /// How fast packets may be sent again at most; `None` for no limit of its own.
    pub limit: Option<Bitrate>,
    /// How long after an answer the next can leave, if that one is lost.
    pub round: Duration,
}

/// What is done about a packet that was reported lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// Nothing: the report tells of the time before the last answer can have arrived.
    Old,
    /// Nothing: it would come too late to be played.
    TooLate,
    /// It is sent again now.
    Send {
        /// So many times more, unless it is acknowledged first.
        more: u32,
        /// The time between these copies.
        apart: Duration,
    },
}

impl Answer {
    /// It is sent again now, once.
    pub const ONCE: Self = Self::Send { more: 0, apart: Duration::ZERO };
}

/// Decides whether a packet that was reported lost is sent again now, and how often.
///
/// A packet that is refused leaves the loss list and comes back only if the peer reports it again.
pub trait RetransmitPolicy: fmt::Debug + Send {
    /// What to do about `packet`, whose turn has come at `now`.
    fn answer(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Answer;
}

/// Every report is answered (seeds: "aggressive"; libsrt's RETRANSMITALGO 0).
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggressive;

impl RetransmitPolicy for Aggressive {
    fn answer(&mut self, _now: Instant, _packet: &ReportedPacket, _view: &SenderView) -> Answer {
        Answer::ONCE
    }
}

/// Not again within RTT - 4 RTTVar of the last retransmission: until then a report was sent before
/// the retransmission can have arrived (libsrt's RETRANSMITALGO 1). Where RTTVar exceeds RTT / 4,
/// nothing is held back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Efficient;

impl RetransmitPolicy for Efficient {
    fn answer(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Answer {
        let hold = view.rtt.smoothed.saturating_sub(view.rtt.variance * 4);
        let allows = packet.last_retransmit.is_none_or(|last| hold.is_zero() || now > last + hold);
        if allows { Answer::ONCE } else { Answer::Old }
    }
}

/// The policy that the configuration names, toward this peer.
pub(crate) fn policy(config: &Config, peer: &Negotiated) -> Box<dyn RetransmitPolicy> {
    match config.retransmit_algorithm() {
        RetransmitAlgorithm::Aggressive => Box::new(Aggressive),
        RetransmitAlgorithm::Efficient => efficient(peer.peer_periodic_nak),
        RetransmitAlgorithm::Deadline => deadline(config),
        RetransmitAlgorithm::Auto if peer.peer_times_requests => deadline(config),
        RetransmitAlgorithm::Auto => efficient(peer.peer_periodic_nak),
        RetransmitAlgorithm::Custom(factory) => factory.make(),
    }
}

/// The efficient algorithm relies on the peer's repeating its reports.
fn efficient(peer_repeats_reports: bool) -> Box<dyn RetransmitPolicy> {
    if peer_repeats_reports { Box::new(Efficient) } else { Box::new(Aggressive) }
}

fn deadline(config: &Config) -> Box<dyn RetransmitPolicy> {
    let given = |share: f64| (share > 0.0).then_some(share);
    Box::new(Deadline::new(given(config.loss_target()), given(config.retransmit_ceiling())))
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
        policy.answer(Instant::from_millis(now), &packet, &view) == Answer::ONCE
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
