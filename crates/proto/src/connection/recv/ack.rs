use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{AckNo, SeqNo};

use crate::config::Config;
use crate::handshake::Negotiated;
use crate::report_times::ACK_PERIOD;
use crate::transmission::Transmission;

/// The least number of packets between a full ACK and a light one.
const LIGHT_ACK_PACKETS: u32 = 64;
/// A light ACK is sent when packets have filled this fraction of the remaining room. It only keeps
/// the sender's window open. libsrt sends one every 64 packets, also to a sender whose window is
/// far from full.
const LIGHT_ACK_SHARE: u32 = 8;
/// The largest number of ACKs that wait for their ACKACK.
const REMEMBERED: usize = 1_024;

/// The schedule of ACKs, and the ACKs that wait for their ACKACK.
#[derive(Debug)]
pub(crate) struct AckState {
    next_number: AckNo,
    sent: VecDeque<SentAck>,
    /// The next sequence number in the last ACK and the instant when it was sent; at first the
    /// instant when the connection began.
    last_sent: (SeqNo, Instant),
    last_full: Option<Instant>,
    /// The next sequence number in the newest ACK with an ACKACK; `None` if the peer has to get the
    /// room of the buffer again.
    settled: Option<SeqNo>,
    /// Packets since the last ACK of any kind.
    packets: u32,
    light_due: bool,
    /// The room, in packets, that the last ACK reported.
    reported_room: u32,
    reports: Reports,
    /// The packets given up by the last full ACK.
    reported_given_up: u32,
    /// When the last report without a number was sent, and whether a packet has arrived since the
    /// last report or ACK.
    last_report: Instant,
    has_news: bool,
    /// The newest round-trip time; zero before the first.
    latest_rtt: Duration,
}

#[derive(Clone, Copy, Debug)]
struct SentAck {
    number: AckNo,
    next: SeqNo,
    at: Instant,
    room: u32,
}

/// How an ACK is to be sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AckKind {
    Full,
    Small,
    /// A report of arrivals without a number, to which the peer sends no ACKACK.
    Report,
}

/// Whether ACKs report the packets that have arrived and the packets that were given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Reports {
    Nothing,
    /// Each full ACK does.
    InEachAck,
    /// Each full ACK does, and one is due also if only packets behind a missing one have arrived.
    AtOnce,
    /// Those of a live stream: each full ACK does, and also tells the newest packet. While no ACK
    /// is due since a packet is missing, reports without a number do the same.
    OfLive,
}

impl Reports {
    pub(crate) fn of(config: &Config, negotiated: &Negotiated) -> Self {
        match (negotiated.peer.counted_arrivals, config.transmission()) {
            (false, _) => Self::Nothing,
            (true, Transmission::Live) if config.live_reports() => Self::OfLive,
            (true, Transmission::Live) => Self::InEachAck,
            (true, _) => Self::AtOnce,
        }
    }
}

impl AckState {
    /// For a connection that began at `now`, whose first packet is `isn`.
    pub(crate) const fn new(isn: SeqNo, now: Instant, reports: Reports) -> Self {
        Self {
            next_number: AckNo::FIRST,
            sent: VecDeque::new(),
            last_sent: (isn, now),
            last_full: None,
            settled: Some(isn),
            packets: 0,
            light_due: false,
            reported_room: u32::MAX,
            reports,
            reported_given_up: 0,
            last_report: now,
            has_news: false,
            latest_rtt: Duration::ZERO,
        }
    }

    /// Counts a data packet towards the next light ACK; the buffer has room for `room` more.
    pub(crate) fn count_packet(&mut self, room: u32) {
        self.packets += 1;
        self.has_news = true;
        if self.packets >= LIGHT_ACK_PACKETS.max(room / LIGHT_ACK_SHARE) {
            self.packets = 0;
            self.light_due = true;
        }
    }

    /// Returns whether a light ACK is due, and takes the mark back.
    pub(crate) const fn take_light(&mut self) -> bool {
        std::mem::replace(&mut self.light_due, false)
    }

    pub(crate) const fn light_is_due(&self) -> bool {
        self.light_due
    }

    /// The instant of the next ACK or report, if it acknowledges the packets before `next`; `None`
    /// if the peer knows all already. An ACK is repeated if it has no ACKACK after `wait`.
    pub(crate) fn due(&self, now: Instant, next: SeqNo, wait: Duration) -> Option<Instant> {
        let ack = self.ack_due(now, next, wait);
        if self.reports != Reports::OfLive || !self.has_news {
            return ack;
        }
        let report = self.last_sent.1.max(self.last_report) + ACK_PERIOD;
        Some(ack.map_or(report, |ack| ack.min(report)).max(now))
    }

    fn ack_due(&self, now: Instant, next: SeqNo, wait: Duration) -> Option<Instant> {
        let (last, at) = self.last_sent;
        let has_arrivals = self.reports == Reports::AtOnce && self.packets > 0;
        if self.settled == Some(next) && !has_arrivals {
            return None;
        }
        // With a round trip of zero, an ACK without an ACKACK would be repeated without a pause.
        let repeats = last == next && !has_arrivals;
        let wait = if repeats { wait.max(ACK_PERIOD) } else { ACK_PERIOD };
        Some((at + wait).max(now))
    }

    /// Whether only a report is due, and no ACK.
    fn only_reports(&self, now: Instant, next: SeqNo, room: u32, wait: Duration) -> bool {
        let ack_is_due = self.ack_due(now, next, wait).is_some_and(|at| at <= now);
        self.reports == Reports::OfLive
            && self.has_news
            && !(ack_is_due || self.is_news(next) || self.frees(room))
    }

    /// Whether the timer runs for an ACK of `next` that is not a repetition. An ACK of a later
    /// number would then be due at the same instant.
    pub(crate) fn counts_down(&self, next: SeqNo) -> bool {
        self.settled != Some(next) && self.last_sent.0 != next
    }

    /// Whether the timer runs for an ACK while a packet is missing, if it has to run at all.
    pub(crate) const fn counts_arrivals_down(&self) -> bool {
        self.has_news || !matches!(self.reports, Reports::OfLive)
    }

    /// Whether the last ACK had another number than `next`.
    pub(crate) fn is_news(&self, next: SeqNo) -> bool {
        self.last_sent.0 != next
    }

    /// Whether an ACK with the new room has to be sent at once: the peer knows of a quarter of it
    /// at most.
    pub(crate) const fn frees(&self, room: u32) -> bool {
        room > self.reported_room && room / 4 >= self.reported_room
    }

    /// The ACK of `next` with this room that is due at `now` is sent, after this total of packets
    /// was given up. Returns its number, 0 for a report, and its kind.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        next: SeqNo,
        room: u32,
        given_up: u32,
        wait: Duration,
    ) -> (AckNo, AckKind) {
        let only_reports = self.only_reports(now, next, room, wait);
        self.has_news = false;
        if only_reports {
            self.last_report = now;
            return (AckNo::new(0), AckKind::Report);
        }
        let number = self.next_number;
        self.next_number = number.next();
        if self.sent.len() >= REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(SentAck { number, next, at: now, room });
        self.last_sent = (next, now);
        self.packets = 0;
        self.light_due = false;
        if self.frees(room) {
            // If it is lost, the peer may wait for room without end.
            self.settled = None;
        }
        self.reported_room = room;
        let kind = match self.last_full {
            Some(last) if now < last + ACK_PERIOD && given_up == self.reported_given_up => {
                AckKind::Small
            }
            _ => AckKind::Full,
        };
        if kind == AckKind::Full {
            self.last_full = Some(now);
            self.reported_given_up = given_up;
        }
        (number, kind)
    }

    /// An ACKACK arrived. Returns the round-trip time; `None` for the number of an ACK that was
    /// never sent or already has an ACKACK.
    pub(crate) fn acknowledged(&mut self, now: Instant, number: AckNo) -> Option<Duration> {
        // The newest ACK has the number before the next one. Where the numbers wrap, 0 is left out.
        let back = self.next_number.value().wrapping_sub(number.value()) & 0x7FFF_FFFF;
        let places = [back, back.saturating_sub(1)];
        let index = places
            .into_iter()
            .filter_map(|back| self.sent.len().checked_sub(back as usize))
            .find(|&index| self.sent.get(index).is_some_and(|ack| ack.number == number))?;
        let ack = self.sent[index];
        self.sent.drain(..=index);
        self.latest_rtt = now - ack.at;
        let knows_the_room = ack.room >= self.reported_room || ack.room > self.reported_room / 4;
        if knows_the_room {
            self.settled = Some(ack.next);
        }
        Some(self.latest_rtt)
    }

    /// Whether ACKs tell the newest packet.
    pub(crate) fn tell_newest(&self) -> bool {
        self.reports == Reports::OfLive
    }

    /// The newest round-trip time, if ACKs report arrivals; zero before the first.
    pub(crate) fn reported_rtt(&self) -> Option<Duration> {
        (self.reports != Reports::Nothing).then_some(self.latest_rtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_millis(40);

    #[test]
    fn an_ack_is_repeated_after_the_timeout_until_it_is_acknowledged() {
        let start = Instant::from_millis(100);
        let mut acks = AckState::new(SeqNo::new(0), start, Reports::Nothing);
        assert_eq!(acks.due(start, SeqNo::new(0), WAIT), None, "nothing new");
        assert_eq!(acks.due(start, SeqNo::new(5), WAIT), Some(start + ACK_PERIOD));
        let (number, kind) = acks.send(start, SeqNo::new(5), 100, 0, WAIT);
        assert_eq!((number, kind), (AckNo::FIRST, AckKind::Full));
        let repeat = start + WAIT;
        assert_eq!(acks.due(start, SeqNo::new(5), WAIT), Some(repeat));
        assert_eq!(
            acks.acknowledged(start + Duration::from_millis(21), number),
            Some(Duration::from_millis(21))
        );
        assert_eq!(acks.due(repeat, SeqNo::new(5), WAIT), None);
        assert_eq!(acks.acknowledged(repeat, number), None, "answered before");
    }

    #[test]
    fn a_second_ack_within_ten_milliseconds_is_small() {
        let start = Instant::from_millis(100);
        let mut acks = AckState::new(SeqNo::new(0), start, Reports::Nothing);
        acks.send(start, SeqNo::new(5), 0, 0, WAIT);
        assert!(acks.frees(3));
        assert_eq!(
            acks.send(start + Duration::from_millis(3), SeqNo::new(5), 3, 0, WAIT).1,
            AckKind::Small
        );
        assert!(!acks.frees(11));
        assert!(acks.frees(12), "four times the reported room");
    }

    #[test]
    fn an_ack_that_tells_of_room_is_repeated_until_it_is_acknowledged() {
        let start = Instant::from_millis(100);
        let mut acks = AckState::new(SeqNo::new(0), start, Reports::Nothing);
        let (stalling, _) = acks.send(start, SeqNo::new(5), 0, 0, WAIT);
        let (freeing, _) = acks.send(start, SeqNo::new(5), 3, 0, WAIT);
        let repeat = Some(start + WAIT);
        assert_eq!(acks.due(start, SeqNo::new(5), WAIT), repeat);
        acks.acknowledged(start, stalling);
        assert_eq!(acks.due(start, SeqNo::new(5), WAIT), repeat, "that was the other one");
        acks.acknowledged(start, freeing);
        assert_eq!(acks.due(start, SeqNo::new(5), WAIT), None);
    }

    #[test]
    fn a_live_stream_is_reported_while_no_ack_is_due_each_10_ms() {
        let start = Instant::from_millis(100);
        let ms = |ms| start + Duration::from_millis(ms);
        let mut acks = AckState::new(SeqNo::new(0), start, Reports::OfLive);
        acks.count_packet(1_000);
        let (number, kind) = acks.send(ms(10), SeqNo::new(1), 1_000, 0, WAIT);
        assert_eq!((number, kind), (AckNo::FIRST, AckKind::Full));
        acks.acknowledged(ms(20), number);
        assert_eq!(acks.due(ms(20), SeqNo::new(1), WAIT), None);
        // A packet behind a missing one.
        assert!(!acks.counts_arrivals_down());
        acks.count_packet(999);
        assert!(acks.counts_arrivals_down());
        assert_eq!(acks.due(ms(15), SeqNo::new(1), WAIT), Some(ms(20)));
        let report = acks.send(ms(20), SeqNo::new(1), 999, 0, WAIT);
        assert_eq!(report, (AckNo::new(0), AckKind::Report));
        acks.count_packet(998);
        assert_eq!(acks.due(ms(22), SeqNo::new(1), WAIT), Some(ms(30)));
        // The missing one has arrived.
        let (number, kind) = acks.send(ms(25), SeqNo::new(4), 1_000, 0, WAIT);
        assert_eq!((number, kind), (AckNo::FIRST.next(), AckKind::Full));
        assert_eq!(acks.due(ms(30), SeqNo::new(4), WAIT), Some(ms(25) + WAIT), "repeated");
    }

    #[test]
    fn ack_numbers_wrap_past_zero_and_still_measure_the_round_trip() {
        let start = Instant::from_millis(100);
        let mut acks = AckState::new(SeqNo::new(0), start, Reports::Nothing);
        acks.next_number = AckNo::new(0x7FFF_FFFE);
        let ms = |i: u32| start + Duration::from_millis(u64::from(i) * 10);
        let numbers: Vec<AckNo> =
            (0..4).map(|i| acks.send(ms(i), SeqNo::new(i), 100, 0, WAIT).0).collect();
        assert_eq!(numbers, [0x7FFF_FFFE, 0x7FFF_FFFF, 1, 2].map(AckNo::new));
        for (i, number) in (0..4).zip(numbers) {
            let at = ms(i) + Duration::from_millis(21);
            assert_eq!(acks.acknowledged(at, number), Some(Duration::from_millis(21)));
        }
        assert_eq!(acks.due(ms(9), SeqNo::new(3), WAIT), None, "the newest is settled");
    }

    #[test]
    fn light_acks_come_closer_as_the_room_shrinks() {
        let mut acks = AckState::new(SeqNo::new(0), Instant::ORIGIN, Reports::Nothing);
        let mut lights = |room| {
            let counted = (0..6_400).filter(|_| {
                acks.count_packet(room);
                acks.take_light()
            });
            counted.count()
        };
        assert_eq!(lights(8_000), 6);
        assert_eq!(lights(100), 100);
    }
}
