//! Which of the packets reported lost are sent again, and when.

use std::fmt;

use punctual_units::Instant;
use punctual_wire::SeqNo;

use crate::config::RetransmitAlgorithm;
use crate::connection::rtt::Rtt;

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
}

/// Decides whether a packet that was reported lost is sent again now.
///
/// A packet that is refused leaves the loss list and comes back only if the peer reports it again.
pub trait RetransmitPolicy: fmt::Debug + Send {
    /// Whether `packet` is to be sent again at `now`, with the round-trip time as it is known.
    fn allows(&mut self, now: Instant, packet: &ReportedPacket, rtt: Rtt) -> bool;
}

/// Every report is answered (seeds: "aggressive"; libsrt's RETRANSMITALGO 0).
#[derive(Clone, Copy, Debug, Default)]
pub struct Aggressive;

impl RetransmitPolicy for Aggressive {
    fn allows(&mut self, _now: Instant, _packet: &ReportedPacket, _rtt: Rtt) -> bool {
        true
    }
}

/// Not again within RTT - 4 RTTVar of the last retransmission: until then a report was sent before
/// the retransmission can have arrived (libsrt's RETRANSMITALGO 1). Where RTTVar exceeds RTT / 4,
/// nothing is held back.
#[derive(Clone, Copy, Debug, Default)]
pub struct Efficient;

impl RetransmitPolicy for Efficient {
    fn allows(&mut self, now: Instant, packet: &ReportedPacket, rtt: Rtt) -> bool {
        let hold = rtt.smoothed.saturating_sub(rtt.variance * 4);
        packet.last_retransmit.is_none_or(|last| hold.is_zero() || now > last + hold)
    }
}

/// The policy that `algorithm` names. The efficient one relies on the peer's repeating its reports.
pub(crate) fn policy(
    algorithm: RetransmitAlgorithm,
    peer_repeats_reports: bool,
) -> Box<dyn RetransmitPolicy> {
    match algorithm {
        RetransmitAlgorithm::Efficient if peer_repeats_reports => Box::new(Efficient),
        RetransmitAlgorithm::Aggressive | RetransmitAlgorithm::Efficient => Box::new(Aggressive),
        RetransmitAlgorithm::Custom(make) => make(),
    }
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
        };
        policy.allows(
            Instant::from_millis(now),
            &packet,
            Rtt { smoothed: MS(rtt), variance: MS(var) },
        )
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
        let mut policy = policy(RetransmitAlgorithm::Efficient, false);
        assert!(asked(policy.as_mut(), Some(100), 101, 20, 2));
    }
}
