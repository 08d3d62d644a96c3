//! libsrt's policies of retransmission, and the choice of a policy toward a peer.

use punctual_units::Instant;

use super::deadline::Deadline;
use super::playout::{GLITCH_TARGET, PlayoutPolicy};
use crate::config::{Config, RetransmitAlgorithm};
use crate::handshake::Negotiated;
use crate::policy::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};

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
        return Box::new(PlayoutPolicy::new(GLITCH_TARGET, ceiling(config)));
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
    use punctual_rtt::Rtt;
    use punctual_wire::SeqNo;
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
