//! Detection of lost packets, and the probe timeout.

use std::time::Duration;

use punctual_units::Instant;

use crate::flight::{Flight, SentPacket};
use crate::timing::PathTiming;

/// How a sender finds lost packets.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum LossDetection {
    /// RFC 9002 section 6: a packet is lost when one three later is acknowledged, or a later one
    /// and 9/8 of a round trip has passed. A probe timeout declares nothing lost; it sends two
    /// probes, and doubles with each timeout in a row.
    Rfc9002,
    /// picoquic in June 2023. A packet is lost when one three later is acknowledged; when a later
    /// one is and the delay of reordering and the peer's delay have passed; or by timeout: when the
    /// newest packet in flight is overdue, or the packet itself for twice as long. The first
    /// timeout in a row declares one packet lost and sends one packet; the timer then doubles, at
    /// most twice. Packets that are overdue for twice as long afterwards are lost one by one. The
    /// eighth timeout in a row ends the connection.
    Picoquic2023,
}

impl LossDetection {
    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rfc9002 => "rfc9002",
            Self::Picoquic2023 => "picoquic-2023",
        }
    }
}

/// The state of loss detection.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    detection: LossDetection,
    /// Probe timeouts since a packet was acknowledged.
    timeouts: u32,
    latest_timeout: Instant,
    due: Option<Instant>,
}

/// The verdict on the packets in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum LossVerdict {
    /// This packet is lost, and later ones may be.
    Lost(u64),
    /// This packet is lost by timeout. A packet is to be sent before the next verdict.
    LostByTimeout(u64),
    /// Nothing is acknowledged for long: probes are to be sent.
    ProbeTimeout,
    /// Nothing is lost now.
    Nothing,
}

impl Detector {
    pub(crate) fn new(detection: LossDetection) -> Self {
        Self { detection, timeouts: 0, latest_timeout: Instant::ORIGIN, due: None }
    }

    /// When the next verdict is due, after the verdict was [`LossVerdict::Nothing`].
    pub(crate) fn due(&self) -> Option<Instant> {
        self.due
    }

    /// Packets that a probe timeout sends.
    pub(crate) fn probes(&self) -> u32 {
        match self.detection {
            LossDetection::Rfc9002 => 2,
            LossDetection::Picoquic2023 => 1,
        }
    }

    /// Probe timeouts since a packet was acknowledged.
    pub(crate) fn timeouts(&self) -> u32 {
        self.timeouts
    }

    /// Whether too many timeouts came in a row, so that the connection is over.
    pub(crate) fn has_given_up(&self) -> bool {
        self.detection == LossDetection::Picoquic2023 && self.timeouts > MOST_TIMEOUTS
    }

    /// A packet was acknowledged for the first time.
    pub(crate) fn acknowledged(&mut self) {
        self.timeouts = 0;
    }

    /// The next verdict.
    pub(crate) fn check(
        &mut self,
        now: Instant,
        flight: &mut Flight,
        timing: &PathTiming,
    ) -> LossVerdict {
        self.due = None;
        match self.detection {
            LossDetection::Rfc9002 => self.check_rfc9002(now, flight, timing),
            LossDetection::Picoquic2023 => self.check_picoquic(now, flight, timing),
        }
    }

    fn check_rfc9002(
        &mut self,
        now: Instant,
        flight: &mut Flight,
        timing: &PathTiming,
    ) -> LossVerdict {
        if flight.oldest().is_none() {
            return LossVerdict::Nothing;
        }
        if let Some(highest) = flight.highest() {
            let longest = timing.estimate().smoothed.max(timing.latest());
            let delay = (longest * 9 / 8).max(GRANULARITY);
            for packet in flight.in_flight().take_while(|it| it.number < highest.number) {
                if packet.number + PACKET_THRESHOLD <= highest.number || now >= packet.sent + delay
                {
                    return LossVerdict::Lost(packet.number);
                }
                let due = packet.sent + delay;
                self.due = Some(self.due.map_or(due, |before| before.min(due)));
            }
        }
        if self.due.is_some() {
            return LossVerdict::Nothing;
        }
        let Some(newest) = flight.newest() else { return LossVerdict::Nothing };
        let from = newest.sent.max(self.latest_timeout);
        let due = from + timing.timeout() * (1 << self.timeouts.min(MOST_DOUBLINGS));
        if now < due {
            self.due = Some(due);
            return LossVerdict::Nothing;
        }
        self.timeouts += 1;
        self.latest_timeout = now;
        LossVerdict::ProbeTimeout
    }

    fn check_picoquic(
        &mut self,
        now: Instant,
        flight: &mut Flight,
        timing: &PathTiming,
    ) -> LossVerdict {
        let highest = flight.highest();
        let newest = flight.newest().map(|it| it.sent);
        let Some(packet) = flight.oldest() else { return LossVerdict::Nothing };
        let later = highest.filter(|highest| highest.number > packet.number);
        let (due, by_timeout) = match later {
            Some(highest) if highest.number >= packet.number + PACKET_THRESHOLD => (now, false),
            Some(highest) => {
                let reordering = (timing.estimate().smoothed / 4).min(MOST_REORDERING);
                let since = highest.sent.saturating_since(packet.sent);
                let reordered =
                    (highest.arrived + reordering + timing.max_ack_delay()).saturating_sub(since);
                (reordered.min(packet.sent + timing.timeout()), false)
            }
            None => self.overdue(packet, newest.unwrap_or(packet.sent), timing.timeout()),
        };
        if now < due {
            self.due = Some(due);
            return LossVerdict::Nothing;
        }
        let (number, sent) = (packet.number, packet.sent);
        if !by_timeout {
            return LossVerdict::Lost(number);
        }
        if sent > self.latest_timeout {
            self.timeouts += 1;
            self.latest_timeout = now;
        }
        LossVerdict::LostByTimeout(number)
    }

    /// When a packet is overdue, and whether that is a probe timeout.
    fn overdue(&self, packet: &SentPacket, newest: Instant, timeout: Duration) -> (Instant, bool) {
        let timeout = (timeout * (1 << self.timeouts.min(2))).min(LONGEST_TIMEOUT);
        let of_newest = newest + timeout;
        let of_itself = packet.sent + timeout * 2;
        if of_newest > of_itself { (of_itself, self.timeouts == 0) } else { (of_newest, true) }
    }
}

/// RFC 9002 section 6.1.1: kPacketThreshold.
const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 6.1.2: kGranularity.
const GRANULARITY: Duration = Duration::from_millis(1);
/// The timer of RFC 9002 doubles without limit; this keeps it within the clock.
const MOST_DOUBLINGS: u32 = 16;
/// Timeouts in a row after which picoquic ends the connection.
const MOST_TIMEOUTS: u32 = 7;
/// The longest time for which picoquic takes a packet for reordered.
const MOST_REORDERING: Duration = Duration::from_millis(5);
/// The longest timer of picoquic.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use punctual_rtt::{BuiltInRtt, TimerRule};

    use super::*;
    use crate::delivery_rate::DeliverySnapshot;
    use crate::flight::{Kind, State};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    /// Packets sent 10 ms apart over a path of 100 ms: the timer is 100 + 4 × 50 + 10 ms.
    fn state(packets: u64) -> (Flight, PathTiming) {
        let mut flight = Flight::default();
        for number in 0..packets {
            flight.sent(SentPacket {
                number,
                bytes: 100,
                sent: at(1_000 + number * 10),
                kind: Kind::Ordinary,
                stream: Vec::new(),
                stamp: DeliverySnapshot::default(),
                state: State::InFlight,
                is_repeated: false,
            });
        }
        let rule = TimerRule::FourVariances;
        let mut timing = PathTiming::new(BuiltInRtt::Rfc9002, rule, MS(10), MS(333));
        timing.acknowledged(at(900), 0, at(800), MS(0));
        assert_eq!(timing.timeout(), MS(310));
        (flight, timing)
    }

    #[test]
    fn three_later_packets_make_a_packet_lost_with_either_detection() {
        for detection in [LossDetection::Rfc9002, LossDetection::Picoquic2023] {
            let (mut flight, timing) = state(5);
            let mut detector = Detector::new(detection);
            // So early that it is lost by no time: it was sent 31 ms ago.
            flight.acknowledge(at(1_031), 3);
            assert_eq!(detector.check(at(1_031), &mut flight, &timing), LossVerdict::Lost(0));
        }
    }

    #[test]
    fn one_later_packet_makes_it_lost_after_nine_eighths_of_a_round_trip() {
        let (mut flight, timing) = state(2);
        let mut detector = Detector::new(LossDetection::Rfc9002);
        flight.acknowledge(at(1_110), 1);
        assert_eq!(detector.check(at(1_110), &mut flight, &timing), LossVerdict::Nothing);
        assert_eq!(detector.due(), Some(at(1_000) + Duration::from_micros(112_500)));
        assert_eq!(detector.check(at(1_113), &mut flight, &timing), LossVerdict::Lost(0));
    }

    #[test]
    fn picoquic_waits_for_reordering_and_the_peers_delay() {
        let (mut flight, timing) = state(2);
        let mut detector = Detector::new(LossDetection::Picoquic2023);
        flight.acknowledge(at(1_110), 1);
        assert_eq!(detector.check(at(1_110), &mut flight, &timing), LossVerdict::Nothing);
        // 1110 + 5 + 10 - 10.
        assert_eq!(detector.due(), Some(at(1_115)));
        assert_eq!(detector.check(at(1_115), &mut flight, &timing), LossVerdict::Lost(0));
    }

    #[test]
    fn a_probe_timeout_doubles_and_loses_nothing() {
        let (mut flight, timing) = state(3);
        let mut detector = Detector::new(LossDetection::Rfc9002);
        assert_eq!(detector.check(at(1_100), &mut flight, &timing), LossVerdict::Nothing);
        assert_eq!(detector.due(), Some(at(1_330)));
        assert_eq!(detector.check(at(1_330), &mut flight, &timing), LossVerdict::ProbeTimeout);
        assert_eq!(detector.check(at(1_330), &mut flight, &timing), LossVerdict::Nothing);
        assert_eq!(detector.due(), Some(at(1_330 + 620)));
        detector.acknowledged();
        assert_eq!(detector.timeouts(), 0);
    }

    #[test]
    fn a_timeout_of_picoquic_loses_one_packet_and_doubles() {
        let (mut flight, timing) = state(3);
        let mut detector = Detector::new(LossDetection::Picoquic2023);
        assert_eq!(detector.check(at(1_200), &mut flight, &timing), LossVerdict::Nothing);
        assert_eq!(detector.due(), Some(at(1_330)), "310 ms after the newest");
        assert_eq!(detector.check(at(1_330), &mut flight, &timing), LossVerdict::LostByTimeout(0));
        flight.lose(0);
        assert_eq!(detector.timeouts(), 1);
        assert_eq!(detector.check(at(1_330), &mut flight, &timing), LossVerdict::Nothing);
        // 620 ms after the newest come before 1240 ms after packet 1.
        assert_eq!(detector.due(), Some(at(1_640)));
    }

    #[test]
    fn packets_long_overdue_after_a_timeout_are_plain_losses() {
        let (mut flight, timing) = state(2);
        let mut detector = Detector::new(LossDetection::Picoquic2023);
        detector.timeouts = 1;
        detector.latest_timeout = at(1_000);
        // A probe keeps the newest packet young.
        flight.sent(SentPacket {
            number: 2,
            sent: at(2_000),
            ..flight.packet(0).expect("it was sent").clone()
        });
        assert_eq!(detector.check(at(2_239), &mut flight, &timing), LossVerdict::Nothing);
        assert_eq!(detector.check(at(2_240), &mut flight, &timing), LossVerdict::Lost(0));
    }
}
