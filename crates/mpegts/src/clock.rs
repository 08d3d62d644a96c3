use std::time::Duration;

use crate::pcr::duration_of;
use crate::pid_check::{ClockStep, Step};
use crate::{Fault, Pcr};

/// Compares the clock of a program with its places in the stream, and with the time of arrival.
#[derive(Clone, Debug)]
pub(crate) struct Clock {
    /// The latest reference: its number in the stream, and its arrival.
    last: (u64, Duration),
    place: Place,
    arrival: PcrArrivals,
}

/// A program's clock beside the time of arrival.
///
/// It shows the encoder, the network and the receiver together: a jitter on the way is no fault of
/// the encoder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockReport {
    /// The difference between the latest and the earliest arrival, by the clock in the stream,
    /// within the latest full second.
    pub jitter: Duration,
    /// How much faster the clock of the receiver goes than that in the stream, in parts in a
    /// million; `None` before ten seconds of the stream.
    pub drift: Option<f64>,
    /// The largest deviation of a reference from its place in the stream within the latest full
    /// second; `None` if the stream has no constant rate.
    pub deviation: Option<Duration>,
}

impl Clock {
    pub(crate) fn new(number: u64, arrival: Duration) -> Self {
        Self {
            last: (number, arrival),
            place: Place::default(),
            arrival: PcrArrivals::new(arrival),
        }
    }

    /// Takes in a reference; gives the faults that it shows.
    pub(crate) fn push(
        &mut self,
        clock: ClockStep,
        number: u64,
        arrival: Duration,
    ) -> impl Iterator<Item = Fault> {
        let (earlier, earlier_arrival) = std::mem::replace(&mut self.last, (number, arrival));
        let is_jump = clock.step.is_discontinuity();
        let mut interval = Duration::ZERO;
        let mut is_off = false;
        match clock.step {
            // Neither a jump of the clock nor a stall of the network is an interval.
            Step::Forward(ticks) => {
                let waited = arrival.saturating_sub(earlier_arrival);
                interval = duration_of(ticks).min(waited);
                is_off = self.place.push(ticks, number - earlier);
                if is_jump && interval <= PCR_INTERVAL {
                    self.arrival = PcrArrivals::new(arrival);
                } else {
                    self.arrival.push(ticks, arrival);
                }
            }
            Step::First | Step::Back => {
                self.place = Place::default();
                self.arrival = PcrArrivals::new(arrival);
            }
        }
        if self.arrival.has_new_second {
            self.place.end_second();
        }
        let found = [
            (Fault::PcrRepetition, interval > PCR_REPETITION),
            (Fault::PcrInterval, interval > PCR_INTERVAL),
            (Fault::PcrDiscontinuity, is_jump),
            (Fault::PcrAccuracy, is_off),
        ];
        found.into_iter().filter_map(|(fault, is_there)| is_there.then_some(fault))
    }

    pub(crate) fn report(&self) -> Option<ClockReport> {
        let jitter = self.arrival.jitter?;
        let deviation = self.place.reported.filter(|_| self.place.is_constant());
        Some(ClockReport {
            jitter,
            drift: self.arrival.drift,
            deviation: deviation.map(ticks_time),
        })
    }
}

/// The clock beside the places of its references. Between two references of a stream of constant
/// rate lie packets in proportion to the time.
#[derive(Clone, Debug, Default)]
struct Place {
    /// Ticks in a packet, on average.
    rate: f64,
    /// References in a row that lie near their place.
    steady: u32,
    /// The largest deviation within this second, in ticks.
    largest: f64,
    /// That of the second before.
    reported: Option<f64>,
}

impl Place {
    /// Takes in a step over this number of packets. Says whether it is off its place.
    fn push(&mut self, ticks: u64, packets: u64) -> bool {
        let (ticks, packets) = (ticks as f64, packets.max(1) as f64);
        let deviation = (ticks - self.rate * packets).abs();
        if deviation > ticks * NEAR {
            *self = Self { rate: ticks / packets, ..Self::default() };
            return false;
        }
        self.rate += (ticks / packets - self.rate) / 16.0;
        self.steady = self.steady.saturating_add(1);
        let is_constant = self.is_constant();
        if is_constant {
            self.largest = self.largest.max(deviation);
        }
        is_constant && deviation > PCR_ACCURACY
    }

    fn is_constant(&self) -> bool {
        self.steady >= STEADY
    }

    fn end_second(&mut self) {
        self.reported = Some(std::mem::take(&mut self.largest));
    }
}

/// The clock beside the time of arrival, in nanoseconds since the first reference.
#[derive(Clone, Debug)]
struct PcrArrivals {
    start: Duration,
    ticks: u64,
    /// The end of the second at hand.
    end: Duration,
    earliest: i128,
    latest: i128,
    /// The end of the first full second, and its earliest arrival.
    first: Option<(Duration, i128)>,
    jitter: Option<Duration>,
    drift: Option<f64>,
    has_new_second: bool,
}

impl PcrArrivals {
    fn new(start: Duration) -> Self {
        Self {
            start,
            ticks: 0,
            end: start.saturating_add(Duration::from_secs(1)),
            earliest: 0,
            latest: 0,
            first: None,
            jitter: None,
            drift: None,
            has_new_second: false,
        }
    }

    fn push(&mut self, ticks: u64, arrival: Duration) {
        self.ticks = self.ticks.saturating_add(ticks);
        let by_clock = i128::from(self.ticks) * 1_000_000_000 / i128::from(Pcr::HZ);
        let by_arrival = arrival.saturating_sub(self.start).as_nanos().cast_signed();
        let offset = by_arrival - by_clock;
        self.has_new_second = arrival >= self.end;
        if self.has_new_second {
            self.end_second(arrival);
            (self.earliest, self.latest) = (offset, offset);
        }
        self.earliest = self.earliest.min(offset);
        self.latest = self.latest.max(offset);
    }

    fn end_second(&mut self, now: Duration) {
        let spread = u64::try_from(self.latest - self.earliest).unwrap_or(u64::MAX);
        self.jitter = Some(Duration::from_nanos(spread));
        let (since, earliest) = *self.first.get_or_insert((now, self.earliest));
        let elapsed = now.saturating_sub(since);
        if elapsed >= DRIFT_TIME {
            let change = (self.earliest - earliest) as f64;
            self.drift = Some(change / elapsed.as_nanos() as f64 * 1e6);
        }
        self.end = now.saturating_add(Duration::from_secs(1));
    }
}

fn ticks_time(ticks: f64) -> Duration {
    Duration::from_secs_f64(ticks / Pcr::HZ as f64)
}

const PCR_REPETITION: Duration = Duration::from_millis(100);
const PCR_INTERVAL: Duration = Duration::from_millis(40);
/// 500 ns in ticks.
const PCR_ACCURACY: f64 = 13.5;
/// The share of a step by which a reference may be off its place in a stream of constant rate.
const NEAR: f64 = 0.01;
/// References near their place that show a constant rate.
const STEADY: u32 = 32;
const DRIFT_TIME: Duration = Duration::from_secs(10);
