//! The path of a receiver, by the packets that arrive.

mod delivery_rate;
mod pairs;

use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{DataHeader, SeqNo};

use self::delivery_rate::DeliveryRate;
use self::pairs::ProbePairs;
use crate::probe_pairs::PROBE_INTERVAL;

/// The number of arrivals from which the rate is computed.
const ARRIVALS: usize = 16;
/// The number of probe pairs from which the capacity is computed.
const PROBES: usize = 64;

/// The receiver's estimates of its path: the times between arriving packets, their rate, and the
/// capacity by the gaps of probe pairs (draft sections 4.7 and 5.2.3).
///
/// Packets that the operating system hands over together have no measurable gap; such a pair is
/// left out. The capacity is a rough estimate, above all on shared and cellular links.
///
/// File congestion control sets its rate by these estimates. So those of a file or of a stream of
/// bytes take into account how often this end reads the network, and are made otherwise.
#[derive(Debug)]
pub(crate) struct ReceivedPath {
    /// The payload of a full packet.
    full: usize,
    file: Option<Box<FileRates>>,
    arrivals: [Instant; ARRIVALS],
    arrived: usize,
    /// The newest original.
    newest: SeqNo,
    /// When the first original arrived.
    first: Instant,
    /// Gaps of probe pairs in nanoseconds, scaled to a full payload. Made when the first comes.
    gaps: Vec<u64>,
    next_gap: usize,
    /// The same gaps by their size.
    sorted: Vec<u64>,
    probe_started: Option<Instant>,
    /// The longest time between two arrivals, of late.
    usual_pause: Duration,
}

/// The rates of a file or of a stream of bytes.
#[derive(Debug)]
struct FileRates {
    delivery: DeliveryRate,
    pairs: ProbePairs,
}

impl ReceivedPath {
    /// The path of a live stream whose full packets have `full` bytes of payload.
    pub(crate) const fn of_live(full: usize) -> Self {
        Self {
            full,
            file: None,
            arrivals: [Instant::ORIGIN; ARRIVALS],
            arrived: 0,
            newest: SeqNo::new(0),
            first: Instant::ORIGIN,
            gaps: Vec::new(),
            next_gap: 0,
            sorted: Vec::new(),
            probe_started: None,
            usual_pause: Duration::ZERO,
        }
    }

    /// The path of a file or a stream of bytes; otherwise as [`of_live`](Self::of_live).
    pub(crate) fn of_file(full: usize) -> Self {
        let rates = FileRates { delivery: DeliveryRate::new(), pairs: ProbePairs::new() };
        Self { file: Some(Box::new(rates)), ..Self::of_live(full) }
    }

    /// A data packet of a file arrived, of any kind.
    #[inline(never)]
    pub(crate) fn file_packet_arrived(
        &mut self,
        now: Instant,
        header: &DataHeader,
        payload: usize,
    ) {
        if let Some(file) = &mut self.file {
            file.delivery.arrived(now);
            file.pairs.arrived(now, header.seq, header.retransmitted, payload, self.full);
        }
    }

    /// The original `seq` arrived as the newest packet.
    #[inline(always)]
    pub(crate) fn newest_arrived(&mut self, now: Instant, seq: SeqNo, payload: usize) {
        self.arrivals[self.arrived % ARRIVALS] = now;
        self.newest = seq;
        self.arrived += 1;
        if self.arrived.is_multiple_of(ARRIVALS) {
            self.note_pauses();
        }
        match PairPlace::of(seq) {
            PairPlace::First => self.probe_started = Some(now),
            PairPlace::Second => self.end_probe(now, payload),
            PairPlace::None => self.probe_started = None,
        }
    }

    /// The longest time between two originals, of late.
    pub(crate) const fn usual_pause(&self) -> Duration {
        self.usual_pause
    }

    /// Looks at the last arrivals, the oldest first.
    #[inline(never)]
    fn note_pauses(&mut self) {
        if self.arrived == ARRIVALS {
            self.first = self.arrivals[0];
        }
        // In nanoseconds, since a `Duration` costs several times as much to divide and to compare.
        let arrivals = self.arrivals.map(Instant::as_nanos);
        let pauses = arrivals.windows(2).map(|pair| pair[1].saturating_sub(pair[0]));
        let usual = u64::try_from(self.usual_pause.as_nanos()).unwrap_or(u64::MAX);
        let longest = pauses.fold(usual - usual / 16, u64::max);
        self.usual_pause = Duration::from_nanos(longest);
    }

    /// The mean time between two originals since the first; `None` before there are some.
    pub(crate) fn mean_pause(&self) -> Option<Duration> {
        let pauses = u32::try_from(self.arrived.checked_sub(1)?).unwrap_or(u32::MAX);
        (self.arrived >= ARRIVALS).then(|| {
            self.newest_arrival().unwrap_or_default().saturating_since(self.first) / pauses
        })
    }

    /// The arrival of the newest original.
    pub(crate) const fn newest_arrival(&self) -> Option<Instant> {
        match self.arrived.checked_sub(1) {
            Some(newest) => Some(self.arrivals[newest % ARRIVALS]),
            None => None,
        }
    }

    /// The newest original, and its arrival.
    pub(crate) const fn newest(&self) -> Option<(SeqNo, Instant)> {
        match self.newest_arrival() {
            Some(at) => Some((self.newest, at)),
            None => None,
        }
    }

    /// A packet arrived out of order: the unfinished probe pair is left out.
    pub(crate) const fn disturbed(&mut self) {
        self.probe_started = None;
    }

    /// Packets per second that arrive; 0 if unknown.
    pub(crate) fn packets_per_sec(&self) -> u32 {
        if let Some(file) = &self.file {
            return file.delivery.packets_per_sec(file.capacity());
        }
        if self.arrived < ARRIVALS {
            return 0;
        }
        let newest = self.arrivals[(self.arrived - 1) % ARRIVALS];
        let oldest = self.arrivals[self.arrived % ARRIVALS];
        per_second(newest - oldest, ARRIVALS as u64 - 1)
    }

    /// The estimated capacity in packets of full size per second; 0 if unknown. Gaps above eight
    /// times the median, or below an eighth of it, are left out.
    pub(crate) fn capacity(&self) -> u32 {
        if let Some(file) = &self.file {
            return file.capacity();
        }
        let Some(&median) = self.sorted.get(self.sorted.len() / 2) else { return 0 };
        let first = self.sorted.partition_point(|&gap| gap <= median / 8);
        let end = self.sorted.partition_point(|&gap| gap < median * 8);
        let kept = &self.sorted[first..end];
        per_second(Duration::from_nanos(kept.iter().sum()), kept.len() as u64)
    }

    fn end_probe(&mut self, now: Instant, payload: usize) {
        let Some(started) = self.probe_started.take() else { return };
        let gap = (now - started).as_nanos();
        if gap == 0 || payload == 0 {
            return;
        }
        let scaled = gap * self.full as u128 / payload as u128;
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX).clamp(1, 60_000_000_000);
        if self.gaps.len() < PROBES {
            self.gaps.push(scaled);
        } else {
            let oldest = std::mem::replace(&mut self.gaps[self.next_gap], scaled);
            self.sorted.remove(self.place(oldest));
        }
        self.sorted.insert(self.place(scaled), scaled);
        self.next_gap = (self.next_gap + 1) % PROBES;
    }

    /// The place of a gap among the sorted ones.
    fn place(&self, gap: u64) -> usize {
        self.sorted.partition_point(|&other| other < gap)
    }
}

impl FileRates {
    /// Packets of full size per second that the link seems to carry; 0 if unknown.
    fn capacity(&self) -> u32 {
        self.pairs.capacity(self.delivery.grain())
    }
}

/// The place of a packet in a probe pair.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum PairPlace {
    None,
    First,
    Second,
}

impl PairPlace {
    /// The place of the packet with this number.
    const fn of(seq: SeqNo) -> Self {
        match seq.value() % PROBE_INTERVAL {
            0 => Self::First,
            1 => Self::Second,
            _ => Self::None,
        }
    }
}

fn per_second(time: Duration, count: u64) -> u32 {
    let rate = (u128::from(count) * 1_000_000_000).checked_div(time.as_nanos()).unwrap_or(0);
    u32::try_from(rate).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_capacity_of_a_regular_stream() {
        let mut path = ReceivedPath::of_live(1_316);
        assert_eq!((path.packets_per_sec(), path.capacity(), path.newest()), (0, 0, None));
        let mut now = Instant::from_millis(1);
        for i in 0..160 {
            // A packet each millisecond; the second of a pair follows after 100 µs.
            now += Duration::from_micros(if i % 16 == 1 { 100 } else { 1_000 });
            path.newest_arrived(now, SeqNo::new(i), 1_316);
        }
        assert_eq!(path.newest(), Some((SeqNo::new(159), now)));
        assert!((1_000..=1_070).contains(&path.packets_per_sec()), "{}", path.packets_per_sec());
        assert_eq!(path.capacity(), 10_000);
    }

    #[test]
    fn a_disturbed_or_simultaneous_pair_does_not_count() {
        let mut path = ReceivedPath::of_live(1_316);
        let now = Instant::from_millis(1);
        path.newest_arrived(now, SeqNo::new(16), 1_316);
        path.newest_arrived(now, SeqNo::new(17), 1_316);
        path.newest_arrived(now, SeqNo::new(32), 1_316);
        path.disturbed();
        path.newest_arrived(now + Duration::from_micros(9), SeqNo::new(33), 1_316);
        assert_eq!(path.capacity(), 0);
    }
}
