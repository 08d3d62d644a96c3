use std::time::Duration;

use punctual_rtt::Rtt;
use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use super::buffer::Stored;
use super::tsbpd::Tsbpd;
use super::{ReceiveHalf, SUSPICIOUS_GAP};

/// The delay that hosts and networks may cause: less silence means nothing.
const LEAST_SILENCE: Duration = Duration::from_millis(10);
/// A pause so many times as long as usual is silence.
const UNUSUAL: u32 = 4;
/// So many packets whose place was passed are more than stragglers.
const SEVERAL: usize = 8;
/// After a silence a stream may be so many times as fast as before.
const FASTER: u64 = 8;
/// The time that counts as the latency where messages have no timestamps.
const UNTIMED: Duration = Duration::from_secs(1);

/// Packets whose numbers lie elsewhere than those of the stream so far.
///
/// Either the stream goes on there, after an outage or because its sender gave up what lies
/// between; or somebody says so in its name. Nothing is done for them but keeping them, until the
/// numbers so far have fallen silent for a round trip.
#[derive(Debug)]
pub(super) struct Elsewhere {
    /// When the first of them came, and the last packet of the stream so far.
    began: Instant,
    silent_since: Instant,
    /// How long they must go on.
    patience: Duration,
    first: SeqNo,
    newest: SeqNo,
    confirmed: bool,
    /// They are believed, and wait until what is stored has been delivered.
    waits: bool,
    /// Their places were passed.
    is_behind: bool,
    packets: Vec<Arrived>,
}

/// A packet as it came.
#[derive(Debug)]
pub(super) struct Arrived {
    pub(super) seq: SeqNo,
    pub(super) retransmitted: bool,
    pub(super) stored: Stored,
}

impl Elsewhere {
    /// The first packet elsewhere. The stream so far was last heard at `silent_since`.
    fn new(now: Instant, silent_since: Instant, patience: Duration, packet: Arrived) -> Self {
        Self {
            began: now,
            silent_since,
            patience,
            first: packet.seq,
            newest: packet.seq,
            confirmed: false,
            waits: false,
            is_behind: false,
            packets: vec![packet],
        }
    }

    /// Takes in a packet that goes on where these stand; otherwise gives it back. At most `limit`
    /// are kept.
    fn add(&mut self, packet: Arrived, limit: usize) -> Result<(), Arrived> {
        let ahead = packet.seq.distance_from(self.newest);
        // A network may double a packet, but only its sender marks it as sent again.
        let goes_on = if ahead == 0 {
            packet.retransmitted
        } else {
            ahead.unsigned_abs() < SUSPICIOUS_GAP && self.fits(&packet, ahead > 0)
        };
        if !goes_on {
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

    /// Whether its time stamp is in the order of the numbers.
    fn fits(&self, packet: &Arrived, is_newer: bool) -> bool {
        let newest = self.packets.iter().rev().find(|other| other.seq == self.newest);
        newest.is_none_or(|newest| {
            let (before, after) = (newest.stored.time, packet.stored.time);
            if is_newer { before <= after } else { after <= before }
        })
    }

    /// For how long the stream so far had been silent when the first of them came.
    fn silence(&self) -> Duration {
        self.began.saturating_since(self.silent_since)
    }

    /// Whether they have gone on long enough while nothing else came.
    fn has_gone_on(&self, now: Instant) -> bool {
        self.confirmed && now >= self.began + self.patience
    }

    /// When they are believed although nothing more comes.
    pub(super) fn next(&self) -> Option<Instant> {
        (self.confirmed && !self.waits && !self.is_behind).then(|| self.began + self.patience * 2)
    }
}

impl ReceiveHalf {
    /// Whether a packet does not belong to the stream so far: it lies far ahead, or its place was
    /// passed although its time has not come.
    #[cold]
    pub(super) fn leads_elsewhere(
        &self,
        now: Instant,
        header: &DataHeader,
        stored: &Stored,
    ) -> bool {
        let seq = header.seq;
        if seq.distance_from(self.buffer.end()) >= SUSPICIOUS_GAP.cast_signed() {
            return true;
        }
        let is_early = self.timing.due(stored.time).is_some_and(|due| due > now);
        !self.delivery.is_file() && !header.retransmitted && self.buffer.has_passed(seq) && is_early
    }

    /// Whether a packet lies far ahead of the stream so far.
    pub(crate) fn is_far_ahead(&self, seq: SeqNo) -> bool {
        !self.delivery.is_file()
            && seq.distance_from(self.buffer.end()) >= SUSPICIOUS_GAP.cast_signed()
    }

    /// The stream so far goes on: what came elsewhere was nonsense.
    #[cold]
    pub(super) fn forget_elsewhere(&mut self) {
        if let Some(elsewhere) = self.elsewhere.take() {
            self.counts.ignored += elsewhere.packets.len() as u64;
        }
    }

    /// A packet came that does not belong to the stream so far.
    #[cold]
    pub(super) fn take_elsewhere(&mut self, now: Instant, packet: Arrived, rtt: Rtt) {
        let limit = self.buffer.limit();
        let left = match &mut self.elsewhere {
            Some(elsewhere) => elsewhere.add(packet, limit).err(),
            None => Some(packet),
        };
        if let Some(packet) = left {
            self.forget_elsewhere();
            let latency = self.timing.tsbpd().map_or(UNTIMED, Tsbpd::latency);
            let patience = patience(rtt.smoothed, self.link.usual_pause(), latency);
            let heard = self.link.newest_arrival().unwrap_or(Instant::ORIGIN);
            let behind = self.announced.behind(self.buffer.end());
            let mut elsewhere = Elsewhere::new(now, heard, patience, packet);
            // The sender has said what lies between.
            elsewhere.confirmed = behind != self.buffer.end()
                && elsewhere.first.distance_from(behind).unsigned_abs() < SUSPICIOUS_GAP;
            elsewhere.is_behind = elsewhere.first.is_before(self.buffer.end());
            self.elsewhere = Some(Box::new(elsewhere));
        }
        self.look_elsewhere(now, rtt);
    }

    /// Goes on elsewhere if the stream so far has fallen silent.
    pub(super) fn look_elsewhere(&mut self, now: Instant, rtt: Rtt) {
        let is_believed = self.elsewhere.as_ref().is_some_and(|it| self.believes_in(now, it));
        let Some(mut elsewhere) = self.elsewhere.take_if(|_| is_believed) else { return };
        let beyond = elsewhere.first.distance_from(self.buffer.end());
        if beyond < 0 {
            self.go_back(elsewhere.first);
        } else if !self.keeps_all() && beyond.unsigned_abs() as usize >= self.buffer.room() {
            // A sender that goes beyond the room has given up what lies before. libsrt closes the
            // connection here ("sequence discrepancy"). What is stored is delivered first; then
            // the receiver goes on where the sender is.
            if self.buffer.packets() > 0 {
                elsewhere.waits = true;
                self.elsewhere = Some(elsewhere);
                return;
            }
            self.jump(now, elsewhere.first);
        }
        for Arrived { seq, retransmitted, stored } in elsewhere.packets {
            self.store(now, seq, retransmitted, stored, rtt);
        }
    }

    fn believes_in(&self, now: Instant, elsewhere: &Elsewhere) -> bool {
        if self.delivery.is_file() {
            return elsewhere.confirmed;
        }
        if elsewhere.is_behind {
            // Packets that were given up may come late while the stream continues. Only packets
            // that come for long in place of the stream are the stream.
            return elsewhere.packets.len() >= SEVERAL && elsewhere.has_gone_on(now);
        }
        elsewhere.has_gone_on(now)
            || elsewhere.confirmed
                && elsewhere.silence() >= elsewhere.patience
                && self.fits_silence(elsewhere)
            || elsewhere.confirmed && self.is_behind_a_burst(now, elsewhere)
    }

    /// Whether a burst of packets was lost before these: their time stamps leave out as much time
    /// as their numbers leave out packets, at the stream's usual pace. A queue that overflows loses
    /// so without any silence. To believe it early costs nothing: what comes of the stream so far
    /// finds its place, and is due before these.
    #[cold]
    fn is_behind_a_burst(&self, now: Instant, elsewhere: &Elsewhere) -> bool {
        let (Some(tsbpd), Some(first)) = (self.timing.tsbpd(), elsewhere.packets.first()) else {
            return false;
        };
        let (Some(pause), Some(heard)) = (self.link.mean_pause(), self.link.newest_arrival())
        else {
            return false;
        };
        let transit_micros = self.timing.transit_micros();
        let transit = Duration::from_micros(transit_micros.unsigned_abs());
        let newest = if transit_micros < 0 { heard + transit } else { heard - transit };
        let time = tsbpd.origin(first.stored.time).saturating_since(newest);
        let numbers = first.seq.distance_from(self.buffer.end()).unsigned_abs();
        let has_gone_on = now >= elsewhere.began + (pause * UNUSUAL).max(LEAST_SILENCE);
        has_gone_on && pause.saturating_mul(numbers) <= time * 2
    }

    /// Whether the numbers that were left out are about as many as the silence was long.
    fn fits_silence(&self, elsewhere: &Elsewhere) -> bool {
        let beyond = u64::from(elsewhere.first.distance_from(self.buffer.end()).unsigned_abs());
        let rate = u64::from(self.link.arrival_rate());
        let silence = u64::try_from(elsewhere.silence().as_millis()).unwrap_or(u64::MAX);
        rate == 0 || beyond <= (rate * FASTER).saturating_mul(silence) / 1_000
    }

    /// The stream goes on behind where this end has been led: what is here is somebody else's.
    fn go_back(&mut self, seq: SeqNo) {
        self.counts.ignored += self.buffer.restart(seq) as u64;
        self.counts.went_back();
        self.announced.clear();
        self.naks.clear();
    }
}

/// How long a stream must be silent before it is believed to go on elsewhere: a round trip, but no
/// less than what is unusual, and no more than what leaves time to ask for what is missing.
pub(super) fn patience(rtt: Duration, usual_pause: Duration, latency: Duration) -> Duration {
    let most = latency / 3;
    rtt.max(usual_pause * UNUSUAL).clamp(LEAST_SILENCE.min(most), most)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use punctual_wire::{MsgNo, Timestamp};

    use super::super::buffer::MessagePart;
    use super::*;

    const MS: fn(u64) -> Instant = Instant::from_millis;
    const PATIENCE: Duration = Duration::from_millis(20);

    fn packet(seq: u32, ms: u32, retransmitted: bool) -> Arrived {
        let tsbpd = Tsbpd::new(Instant::ORIGIN, Timestamp::from_micros(0), Duration::ZERO);
        let time = tsbpd.peer_time(MS(100), Timestamp::from_micros(ms * 1_000));
        let stored =
            Stored { payload: Bytes::new(), time, place: MessagePart::of_live(MsgNo::FIRST) };
        Arrived { seq: SeqNo::new(seq), retransmitted, stored }
    }

    #[test]
    fn what_goes_on_is_kept_and_what_does_not_is_given_back() {
        let mut elsewhere = Elsewhere::new(MS(100), MS(95), PATIENCE, packet(5_000, 100, false));
        assert!(elsewhere.add(packet(5_000, 100, false), 9).is_err(), "doubled on the way");
        assert!(elsewhere.add(packet(5_100, 101, false), 9).is_err(), "elsewhere again");
        assert!(elsewhere.add(packet(5_001, 99, false), 9).is_err(), "newer, but older");
        assert!(!elsewhere.confirmed);
        for (seq, ms) in [(5_001, 101), (4_999, 99), (5_003, 104)] {
            assert!(elsewhere.add(packet(seq, ms, false), 3).is_ok());
        }
        assert_eq!(elsewhere.first, SeqNo::new(4_999));
        assert!(!elsewhere.has_gone_on(MS(119)) && elsewhere.has_gone_on(MS(120)));
        assert_eq!(elsewhere.packets.len(), 3, "the limit");
    }

    #[test]
    fn the_last_packet_sent_again_says_so_as_well() {
        let mut elsewhere = Elsewhere::new(MS(100), MS(0), PATIENCE, packet(5_000, 100, false));
        assert!(elsewhere.add(packet(5_000, 100, true), 9).is_ok());
        assert_eq!(elsewhere.silence(), Duration::from_millis(100));
        assert!(elsewhere.confirmed);
    }

    #[test]
    fn patience_is_a_round_trip_within_bounds() {
        let ms = Duration::from_millis;
        let patience = |rtt, pause, latency| patience(ms(rtt), ms(pause), ms(latency));
        assert_eq!(patience(30, 1, 120), ms(30));
        assert_eq!(patience(1, 1, 120), ms(10));
        assert_eq!(patience(1, 9, 120), ms(36));
        assert_eq!(patience(90, 9, 120), ms(40));
        assert_eq!(patience(1, 1, 20), ms(20) / 3);
    }
}
