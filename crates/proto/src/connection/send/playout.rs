use std::time::Duration;

use punctual_units::Instant;

use super::deadline::Deadline;
use crate::policy::retransmit::{Decision, ReportedPacket, RetransmitPolicy, SenderView};

/// The retransmission policy of a stream of bytes with a playout point: that of live streams, whose
/// deadline is the playout point, but it gives up no packet. The share of packets that may arrive
/// too late follows from the mean time between two glitches and the packet rate.
#[derive(Debug)]
pub(super) struct PlayoutPolicy {
    deadline: Deadline,
    glitch_target: Duration,
    rate: PacketRate,
}

/// The rate of originals, measured over some seconds.
#[derive(Debug, Default)]
struct PacketRate {
    since: Option<(Instant, u64)>,
    per_second: f64,
}

/// The mean time between two glitches of a stream of bytes, packets that arrive after the playout
/// point: as many copies of last retransmissions are sent as it needs at the measured loss and
/// packet rate.
pub const GLITCH_TARGET: Duration = Duration::from_secs(86_400);
/// The time over which the packet rate is measured.
const MEASURED: Duration = Duration::from_secs(2);
/// The packet rate before the first measurement, that of 10 Mb/s.
const FIRST_RATE: f64 = 1_000.0;
/// The largest share of packets that may arrive too late.
const MOST: f64 = 0.1;

impl PlayoutPolicy {
    /// A policy with this mean time between two glitches, and this ceiling, packets that may be
    /// retransmitted for each original before it sends no copies; `None` for as many copies as the
    /// mean time needs.
    pub(super) fn new(glitch_target: Duration, ceiling: Option<f64>) -> Self {
        let rate = PacketRate { per_second: FIRST_RATE, ..PacketRate::default() };
        let mut policy = Self { deadline: Deadline::for_reliable(ceiling), glitch_target, rate };
        policy.follow_rate();
        policy
    }

    fn follow_rate(&mut self) {
        let packets = self.rate.per_second.max(1.0) * self.glitch_target.as_secs_f64();
        self.deadline.set_target((1.0 / packets).min(MOST));
    }
}

impl RetransmitPolicy for PlayoutPolicy {
    fn decide(&mut self, now: Instant, packet: &ReportedPacket, view: &SenderView) -> Decision {
        if self.rate.measure(now, view.originals) {
            self.follow_rate();
        }
        self.deadline.decide(now, packet, view)
    }
}

impl PacketRate {
    /// Counts the originals up to `now`. Returns whether the rate was measured again.
    fn measure(&mut self, now: Instant, originals: u64) -> bool {
        let (since, before) = *self.since.get_or_insert((now, originals));
        let time = now.saturating_since(since);
        if time < MEASURED {
            return false;
        }
        self.per_second = originals.saturating_sub(before) as f64 / time.as_secs_f64();
        self.since = Some((now, originals));
        true
    }
}

#[cfg(test)]
mod tests {
    use punctual_rtt::Rtt;
    use punctual_wire::SeqNo;

    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;
    const AT: fn(u64) -> Instant = Instant::from_millis;
    const RTT: Rtt =
        Rtt { smoothed: Duration::from_millis(100), variance: Duration::from_millis(1) };

    fn reported(playout_point: u64) -> ReportedPacket {
        ReportedPacket {
            seq: SeqNo::new(1),
            origin: AT(0),
            last_retransmit: None,
            retransmissions: 0,
            deadline: None,
            next_deadline: Some(AT(playout_point)),
        }
    }

    /// Copies of the last retransmission that is in time, in a stream of 1000 packets per second of
    /// which a hundredth are lost.
    fn copies(glitch_target: Duration) -> u32 {
        let mut policy = PlayoutPolicy::new(glitch_target, None);
        let mut copies = 0;
        for i in 0..2_000 {
            let now = AT(1_000 + 100 * i);
            let view = SenderView {
                rtt: RTT,
                originals: 100 * i,
                loss: 0.01,
                limit: None,
                round: MS(110),
            };
            if let Decision::Retransmit { copies: more, .. } =
                policy.decide(now, &reported(1_080 + 100 * i), &view)
            {
                copies = more;
            }
        }
        copies
    }

    #[test]
    fn rarer_glitches_need_more_copies() {
        // A hundredth of the packets need their last retransmission; each copy divides the share of
        // late ones by a hundred.
        assert_eq!(copies(MS(1_000)), 0);
        assert!(copies(Duration::from_secs(60)) >= 1);
    }

    #[test]
    fn a_packet_after_its_playout_point_is_retransmitted_once() {
        let mut policy = PlayoutPolicy::new(Duration::from_secs(3_600), None);
        let view = SenderView { rtt: RTT, originals: 100, loss: 0.01, limit: None, round: MS(110) };
        assert_eq!(policy.decide(AT(5_000), &reported(1_000), &view), Decision::ONCE);
    }
}
