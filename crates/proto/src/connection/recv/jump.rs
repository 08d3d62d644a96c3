//! Jumps of the sequence numbers: the stream continues far ahead, after an outage or because its
//! sender has dropped the packets between, or further back; or an attacker forges packets.

use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::SUSPICIOUS_GAP;
use super::announced_drops::AnnouncedDrops;
use super::buffer::Stored;
use super::store::ReceiveStore;
use super::timing::Timing;
use crate::measured_path::ReceivedPath;

/// The shortest silence that counts; hosts and networks cause shorter ones at any time.
const LEAST_SILENCE: Duration = Duration::from_millis(10);
/// A pause of at least this multiple of the usual one is a silence.
const UNUSUAL: u32 = 4;
/// The number of packets with passed numbers that are more than stragglers.
const MORE_THAN_STRAGGLERS: usize = 8;
/// The greatest rate of a stream after a silence, as a multiple of its rate before.
const FASTER: u64 = 8;
/// The time that counts as the latency where messages have no timestamps.
const UNTIMED: Duration = Duration::from_secs(1);

/// The parts of the receiving half by which a jump of the stream is recognised.
#[derive(Clone, Copy)]
pub(super) struct StreamView<'a> {
    pub(super) store: &'a ReceiveStore,
    pub(super) timing: &'a Timing,
    pub(super) path: &'a ReceivedPath,
    pub(super) drops: &'a AnnouncedDrops,
}

impl StreamView<'_> {
    /// Whether a packet does not belong to the stream so far: it lies far ahead, or its number was
    /// passed by packets that must have been forged.
    #[cold]
    pub(super) fn excludes(&self, now: Instant, header: &DataHeader, stored: &Stored) -> bool {
        let seq = header.seq;
        if seq.distance_from(self.end()) >= SUSPICIOUS_GAP.cast_signed() {
            return true;
        }
        !self.is_of_file()
            && !header.retransmitted
            && self.store.missing(self.timing).shows_forgery(now, seq, stored)
    }

    const fn is_of_file(&self) -> bool {
        self.store.delivery().is_file()
    }

    /// The number after the newest packet.
    const fn end(&self) -> SeqNo {
        self.store.window().end()
    }

    /// The time that candidates must continue while the stream is silent.
    fn confirmation_time(&self, rtt: Rtt) -> Duration {
        let latency = self.timing.latency().unwrap_or(UNTIMED);
        confirmation_time(rtt.smoothed, self.path.usual_pause(), latency)
    }

    /// Whether the stream cannot continue at `first` by waiting for the packets before it.
    fn is_beyond_room(&self, first: SeqNo) -> bool {
        !self.store.delivery().keeps_all() && self.store.window().is_beyond_room(first)
    }

    /// Whether the sender has announced that it dropped all packets before `first`.
    fn has_announced(&self, first: SeqNo) -> bool {
        let behind = self.drops.behind(self.end());
        behind != self.end() && first.distance_from(behind).unsigned_abs() < SUSPICIOUS_GAP
    }

    /// Whether a burst of packets was lost before the candidates: their timestamps leave out as
    /// much time as their numbers leave out packets, at the stream's usual pace. A queue that
    /// overflows loses packets in this way, without a silence. A wrong decision here has no cost:
    /// packets of the stream so far still find their places, and are due before the candidates.
    #[cold]
    fn lost_a_burst_before(&self, now: Instant, candidates: &Candidates) -> bool {
        let (Some(pause), Some(heard)) = (self.path.mean_pause(), self.path.newest_arrival())
        else {
            return false;
        };
        let Some(first) = candidates.packets.first() else { return false };
        let Some(time) = self.timing.sent_after(heard, first.stored.time) else {
            return false;
        };
        let numbers = first.seq.distance_from(self.end()).unsigned_abs();
        let has_continued = now >= candidates.began + (pause * UNUSUAL).max(LEAST_SILENCE);
        has_continued && pause.saturating_mul(numbers) <= time * 2
    }

    /// Whether the silence was long enough for as many packets as the numbers leave out.
    fn silence_explains(&self, candidates: &Candidates) -> bool {
        let beyond = u64::from(candidates.first.distance_from(self.end()).unsigned_abs());
        let rate = u64::from(self.path.packets_per_sec());
        let silence = u64::try_from(candidates.silence().as_millis()).unwrap_or(u64::MAX);
        rate == 0 || beyond <= (rate * FASTER).saturating_mul(silence) / 1_000
    }

    /// Whether the candidates are the stream.
    fn believes(&self, now: Instant, candidates: &Candidates) -> bool {
        if self.is_of_file() {
            return candidates.confirmed;
        }
        if candidates.is_behind {
            // Dropped packets may arrive late while the stream continues. Only packets that arrive
            // for long, while the stream is silent, are the stream.
            return candidates.packets.len() >= MORE_THAN_STRAGGLERS
                && candidates.have_continued(now);
        }
        candidates.have_continued(now)
            || candidates.confirmed
                && candidates.silence() >= candidates.confirmation
                && self.silence_explains(candidates)
            || candidates.confirmed && self.lost_a_burst_before(now, candidates)
    }
}

/// A jump that is believed, with the packets from there.
#[derive(Debug)]
pub(super) struct Jump {
    pub(super) kind: JumpKind,
    /// The lowest number of the packets.
    pub(super) first: SeqNo,
    pub(super) packets: Vec<Arrived>,
}

/// The place from which a stream continues.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum JumpKind {
    /// Before the newest packet so far.
    Back,
    /// Ahead, within the buffer's room: the packets between are missing.
    WithinRoom,
    /// Ahead, beyond the buffer's room.
    BeyondRoom,
}

/// Keeps packets whose numbers do not belong to the stream so far, until it is clear whether the
/// stream has jumped to them.
///
/// Nothing else is done for such packets until the numbers so far have been silent for a round
/// trip: a single forged packet must not move the stream.
#[derive(Debug, Default)]
pub(super) struct JumpDetector {
    candidates: Option<Box<Candidates>>,
}

impl JumpDetector {
    /// Takes in a packet that does not belong to the stream so far. Returns the number of earlier
    /// candidates that it proves wrong.
    #[cold]
    pub(super) fn add(
        &mut self,
        now: Instant,
        packet: Arrived,
        rtt: Rtt,
        stream: StreamView<'_>,
    ) -> u64 {
        let limit = stream.store.window().limit();
        let refused = match &mut self.candidates {
            Some(candidates) => candidates.add(packet, limit).err(),
            None => Some(packet),
        };
        let Some(packet) = refused else { return 0 };
        let discarded = self.discard();
        let silent_since = stream.path.newest_arrival().unwrap_or(Instant::ORIGIN);
        let confirmation = stream.confirmation_time(rtt);
        let mut candidates = Candidates::new(now, silent_since, confirmation, packet);
        candidates.confirmed = stream.has_announced(candidates.first);
        candidates.is_behind = candidates.first.is_before(stream.end());
        if candidates.is_behind {
            // Without latency that time would be zero, and any stragglers would be believed.
            candidates.confirmation = candidates.confirmation.max(LEAST_SILENCE);
        }
        self.candidates = Some(Box::new(candidates));
        discarded
    }

    /// The jump, if the stream so far has been silent for long enough.
    ///
    /// A sender that continues beyond the room has given up the packets between. libsrt closes the
    /// connection here ("sequence discrepancy"). This end first delivers the packets that it
    /// stores, and then jumps.
    pub(super) fn decide(&mut self, now: Instant, stream: StreamView<'_>) -> Option<Jump> {
        let mut candidates =
            self.candidates.take_if(|candidates| stream.believes(now, candidates))?;
        let kind = if candidates.is_behind {
            JumpKind::Back
        } else if stream.is_beyond_room(candidates.first) {
            JumpKind::BeyondRoom
        } else {
            JumpKind::WithinRoom
        };
        if kind == JumpKind::BeyondRoom && stream.store.held().packets > 0 {
            candidates.wait = true;
            self.candidates = Some(candidates);
            return None;
        }
        Some(Jump { kind, first: candidates.first, packets: candidates.packets })
    }

    /// Whether there are candidates.
    #[inline(always)]
    pub(super) const fn is_undecided(&self) -> bool {
        self.candidates.is_some()
    }

    /// The number of candidates.
    pub(super) fn packets(&self) -> u64 {
        self.candidates.as_ref().map_or(0, |candidates| candidates.packets.len() as u64)
    }

    /// The stream so far continues: discards the candidates and returns their number.
    #[cold]
    pub(super) fn discard(&mut self) -> u64 {
        self.candidates.take().map_or(0, |candidates| candidates.packets.len() as u64)
    }

    /// The instant at which the candidates are believed although nothing more arrives.
    pub(super) fn next(&self) -> Option<Instant> {
        self.candidates.as_ref()?.next()
    }
}

/// Packets to which the stream may have jumped.
#[derive(Debug)]
struct Candidates {
    /// When the first of them arrived.
    began: Instant,
    /// When the newest packet of the stream so far arrived.
    silent_since: Instant,
    /// The time that they must continue.
    confirmation: Duration,
    first: SeqNo,
    newest: SeqNo,
    /// Whether a second packet continues the first one.
    confirmed: bool,
    /// Whether they are believed, and wait until the stored packets have been delivered.
    wait: bool,
    /// Whether they lay before the newest packet of the stream when they began. Retransmissions may
    /// bring the stream up to candidates that lay ahead, which does not make them a jump back.
    is_behind: bool,
    packets: Vec<Arrived>,
}

/// A packet that arrived.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) seq: SeqNo,
    pub(super) retransmitted: bool,
    pub(super) stored: Stored,
}

impl Candidates {
    fn new(now: Instant, silent_since: Instant, confirmation: Duration, packet: Arrived) -> Self {
        Self {
            began: now,
            silent_since,
            confirmation,
            first: packet.seq,
            newest: packet.seq,
            confirmed: false,
            wait: false,
            is_behind: false,
            packets: vec![packet],
        }
    }

    /// Takes in a packet that continues these; returns any other. At most `limit` are kept.
    fn add(&mut self, packet: Arrived, limit: usize) -> Result<(), Arrived> {
        let ahead = packet.seq.distance_from(self.newest);
        // A network may duplicate a packet, but only its sender marks it as retransmitted.
        let continues = if ahead == 0 {
            packet.retransmitted
        } else {
            // A retransmission may be as old as all that the sender still has.
            let is_old = packet.retransmitted && ahead < 0;
            let near = if is_old { limit } else { SUSPICIOUS_GAP as usize };
            (ahead.unsigned_abs() as usize) < near && self.fits(&packet, ahead > 0)
        };
        if !continues {
            return Err(packet);
        }
        self.confirmed = true;
        if packet.seq.is_before(self.first) {
            self.first = packet.seq;
        }
        if packet.seq.is_after(self.newest) {
            self.newest = packet.seq;
        }
        if self.packets.len() < limit {
            self.packets.push(packet);
        }
        Ok(())
    }

    /// Whether the packet's timestamp is in the order of the numbers.
    fn fits(&self, packet: &Arrived, is_newer: bool) -> bool {
        let newest = self.packets.iter().rev().find(|other| other.seq == self.newest);
        newest.is_none_or(|newest| {
            let (before, after) = (newest.stored.time, packet.stored.time);
            if is_newer { before <= after } else { after <= before }
        })
    }

    /// The time that the stream had been silent when the first of them arrived.
    fn silence(&self) -> Duration {
        self.began.saturating_since(self.silent_since)
    }

    /// Whether they have continued for long enough, while nothing of the stream arrived.
    fn have_continued(&self, now: Instant) -> bool {
        self.confirmed && now >= self.began + self.confirmation
    }

    fn next(&self) -> Option<Instant> {
        (self.confirmed && !self.wait && !self.is_behind)
            .then(|| self.began + self.confirmation * 2)
    }
}

/// The time that candidates must continue, and that the stream must be silent: a round trip, at
/// least an unusual pause, and at most a third of the latency, which leaves time for NAKs.
fn confirmation_time(rtt: Duration, usual_pause: Duration, latency: Duration) -> Duration {
    let most = latency / 3;
    rtt.max(usual_pause * UNUSUAL).clamp(LEAST_SILENCE.min(most), most)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_wire::{MsgNo, Timestamp};

    use super::super::buffer::MessagePart;
    use super::super::tsbpd::Tsbpd;
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const CONFIRMATION: Duration = Duration::from_millis(20);

    fn packet(seq: u32, ms: u32, retransmitted: bool) -> Arrived {
        let tsbpd = Tsbpd::new(Instant::ORIGIN, Timestamp::from_micros(0));
        let time = tsbpd.peer_time(MS(100), Timestamp::from_micros(ms * 1_000));
        let stored =
            Stored { payload: Bytes::new(), time, place: MessagePart::of_live(MsgNo::FIRST) };
        Arrived { seq: SeqNo::new(seq), retransmitted, stored }
    }

    #[test]
    fn retransmissions_of_all_that_the_sender_has_continue_candidates() {
        let mut candidates = Candidates::new(MS(0), MS(0), CONFIRMATION, packet(9_000, 900, false));
        assert!(candidates.add(packet(7_500, 750, false), 8_192).is_err());
        assert!(candidates.add(packet(7_500, 750, true), 1_000).is_err(), "more than it has");
        assert!(candidates.add(packet(7_500, 950, true), 8_192).is_err(), "its time does not fit");
        candidates.add(packet(7_500, 750, true), 8_192).expect("a retransmission");
        assert!(candidates.confirmed);
        assert_eq!(candidates.first, SeqNo::new(7_500));
    }

    #[test]
    fn packets_that_continue_candidates_are_kept_and_others_given_back() {
        let mut candidates =
            Candidates::new(MS(100), MS(95), CONFIRMATION, packet(5_000, 100, false));
        assert!(candidates.add(packet(5_000, 100, false), 9).is_err(), "duplicated on the way");
        assert!(candidates.add(packet(5_100, 101, false), 9).is_err(), "far from the candidates");
        assert!(candidates.add(packet(5_001, 99, false), 9).is_err(), "next number, but older");
        assert!(!candidates.confirmed);
        for (seq, ms) in [(5_001, 101), (4_999, 99), (5_003, 104)] {
            assert!(candidates.add(packet(seq, ms, false), 3).is_ok());
        }
        assert_eq!(candidates.first, SeqNo::new(4_999));
        assert!(!candidates.have_continued(MS(119)) && candidates.have_continued(MS(120)));
        assert_eq!(candidates.packets.len(), 3, "the limit");
    }

    #[test]
    fn a_retransmission_of_the_newest_candidate_confirms_it() {
        let mut candidates =
            Candidates::new(MS(100), MS(0), CONFIRMATION, packet(5_000, 100, false));
        assert!(candidates.add(packet(5_000, 100, true), 9).is_ok());
        assert_eq!(candidates.silence(), Duration::from_millis(100));
        assert!(candidates.confirmed);
    }

    #[test]
    fn the_confirmation_time_is_a_round_trip_within_bounds() {
        let ms = Duration::from_millis;
        let time = |rtt, pause, latency| confirmation_time(ms(rtt), ms(pause), ms(latency));
        assert_eq!(time(30, 1, 120), ms(30));
        assert_eq!(time(1, 1, 120), ms(10));
        assert_eq!(time(1, 9, 120), ms(36));
        assert_eq!(time(90, 9, 120), ms(40));
        assert_eq!(time(1, 1, 20), ms(20) / 3);
    }
}
