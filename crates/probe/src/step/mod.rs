//! One rate that is tried: the samples of the link at it, and the verdict.

mod load;
mod loss_tracker;
mod packet_counts;
mod seconds;

use std::time::Duration;

use punctual_proto::Statistics;
use punctual_units::Bitrate;

use crate::events::LossEvents;
use crate::history::Second;
use crate::measurement::{Congestion, RateVerdict, StepKind, StepResult};
use crate::report::Totals;

pub(crate) use load::{Load, scaled};
use loss_tracker::LossTracker;
pub(crate) use packet_counts::PacketCounts;
use seconds::Seconds;

/// A sample of both ends' counters, at its time since the probe began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    /// The latest round trip, µs.
    pub(crate) rtt: Option<u32>,
    /// One-way delay plus an unknown constant, µs.
    pub(crate) transit: Option<i32>,
    /// Packets since the sample before.
    pub(crate) counts: PacketCounts,
    /// Time that it would take to send the messages that wait in the sender.
    pub(crate) backlog: Duration,
}

/// Counters of the sending end, since the connection was established.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderTotals {
    pub(crate) retransmitted: u64,
    pub(crate) acks_expected: u64,
    pub(crate) acks_missed: u64,
    pub(crate) ack_gaps: u64,
}

/// The link without congestion: the mean of the clear steps so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    /// Share of packets lost.
    pub(crate) loss: f64,
    /// Median delay, µs.
    pub(crate) delay: i64,
    /// Median round trip, µs.
    pub(crate) rtt: u32,
}

/// One rate that is tried for some time.
#[derive(Debug)]
pub(crate) struct Step {
    kind: StepKind,
    load: Load,
    from: Duration,
    /// When sending at this rate ended; `None` while it lasts.
    until: Option<Duration>,
    planned: Duration,
    /// When the last sample was taken.
    last: Duration,
    samples: u32,
    rtts: Vec<u32>,
    transits: Vec<i32>,
    counts: PacketCounts,
    losses: LossTracker,
    seconds: Seconds,
    /// The receiver's totals at the first and the last report of this step.
    receiver: Option<(Totals, Totals)>,
    /// This end's totals at the beginning and at the last look.
    sender: Option<(SenderTotals, SenderTotals)>,
    verdict: RateVerdict,
}

impl SenderTotals {
    pub(crate) fn of(statistics: &Statistics) -> Self {
        Self {
            retransmitted: statistics.packets_retransmitted,
            acks_expected: statistics.acks_expected,
            acks_missed: statistics.acks_missed,
            ack_gaps: statistics.ack_gaps,
        }
    }
}

impl Step {
    /// A step that begins at `from` and is to last for `planned`.
    pub(crate) fn new(load: Load, from: Duration, planned: Duration, kind: StepKind) -> Self {
        Self {
            kind,
            load,
            from,
            until: None,
            planned,
            last: from,
            samples: 0,
            rtts: Vec::new(),
            transits: Vec::new(),
            counts: PacketCounts::default(),
            losses: LossTracker::new(load.packets_per_sec()),
            seconds: Seconds::new(load, from, planned),
            receiver: None,
            sender: None,
            verdict: RateVerdict::Unfinished,
        }
    }

    pub(crate) fn kind(&self) -> StepKind {
        self.kind
    }

    /// Rate of the payloads.
    pub(crate) fn rate(&self) -> Bitrate {
        self.load.rate()
    }

    pub(crate) fn from(&self) -> Duration {
        self.from
    }

    /// Whether messages are still sent at this rate.
    pub(crate) fn is_under_way(&self) -> bool {
        self.until.is_none()
    }

    /// Sending at this rate ends, unless it has ended before.
    pub(crate) fn end(&mut self, at: Duration) {
        self.until.get_or_insert(at);
    }

    /// Whether a sample at `at` belongs to this step.
    pub(crate) fn covers(&self, at: Duration) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }

    /// Whether the link carried the rate, as far as it is known.
    pub(crate) fn verdict(&self) -> RateVerdict {
        self.verdict
    }

    pub(crate) fn is_congested(&self) -> bool {
        matches!(self.verdict, RateVerdict::Congested(_))
    }

    /// The time from the beginning to the last sample.
    pub(crate) fn watched(&self) -> Duration {
        self.last - self.from
    }

    /// The part of that time with a sign of congestion.
    pub(crate) fn troubled(&self) -> Duration {
        self.seconds.length() * u32::try_from(self.seconds.troubled()).unwrap_or(u32::MAX)
    }

    /// The link second by second.
    pub(crate) fn history(&self) -> &[Second] {
        self.seconds.judged()
    }

    pub(crate) fn counts(&self) -> &PacketCounts {
        &self.counts
    }

    pub(crate) fn loss_events(&self) -> &LossEvents {
        self.losses.events()
    }

    /// The longest run of losses in packets, as far as the samples tell.
    pub(crate) fn longest_run(&self) -> u64 {
        self.losses.longest_run()
    }

    /// Round trips in their order, µs.
    pub(crate) fn rtts(&self) -> &[u32] {
        &self.rtts
    }

    /// One-way delays plus a constant, in their order, µs.
    pub(crate) fn transits(&self) -> &[i32] {
        &self.transits
    }

    /// Median of the round trips, µs.
    pub(crate) fn rtt(&self) -> Option<u32> {
        median(&self.rtts)
    }

    /// Median of the one-way delays plus a constant, or of the round trips where they are unknown;
    /// µs.
    pub(crate) fn delay(&self) -> Option<i64> {
        self.seconds.delay()
    }

    /// The receiver's totals at the first and the last report of this step.
    pub(crate) fn receiver(&self) -> Option<(Totals, Totals)> {
        self.receiver
    }

    /// The sender's totals at the beginning and at the last look.
    pub(crate) fn sender(&self) -> Option<(SenderTotals, SenderTotals)> {
        self.sender
    }

    pub(crate) fn result(&self) -> StepResult {
        StepResult {
            rate: self.rate(),
            time: self.watched(),
            kind: self.kind,
            delivered: self.load.delivered(self.counts.received, self.watched()),
            loss: self.counts.loss(),
            rtt: self.rtt().map(|us| Duration::from_micros(us.into())),
            verdict: self.verdict,
        }
    }

    /// Takes in the receiver's totals of a report.
    pub(crate) fn note_receiver(&mut self, totals: &Totals) {
        let (_, last) = self.receiver.get_or_insert((*totals, *totals));
        *last = *totals;
    }

    /// Takes in the sender's totals before the present look and at it.
    pub(crate) fn note_sender(&mut self, before: SenderTotals, now: SenderTotals) {
        let (_, last) = self.sender.get_or_insert((before, now));
        *last = now;
    }

    /// Takes in a sample of this step.
    pub(crate) fn take(&mut self, sample: &Sample, base: Option<&Baseline>) {
        if self.samples >= MOST_SAMPLES {
            return;
        }
        self.samples += 1;
        self.last = self.last.max(sample.at);
        self.rtts.extend(sample.rtt);
        self.transits.extend(sample.transit);
        self.counts.add(&sample.counts);
        let rtts = &self.rtts;
        self.losses.take(sample, || median(rtts).unwrap_or(0));
        self.seconds.take(sample, || median(rtts), base);
    }

    /// A sign that the link cannot carry this rate, as soon as it is certain; told once.
    pub(crate) fn congested_early(&mut self) -> Option<Congestion> {
        if self.verdict != RateVerdict::Unfinished || !self.seconds.are_congested() {
            return None;
        }
        let sign = self.seconds.main_trouble()?;
        self.verdict = RateVerdict::Congested(sign);
        Some(sign)
    }

    /// The final verdict: no more samples of this step will come.
    pub(crate) fn conclude(&mut self, base: Option<&Baseline>) {
        let rtts = &self.rtts;
        self.losses.finish(|| median(rtts).unwrap_or(0));
        if self.verdict != RateVerdict::Unfinished {
            return;
        }
        self.seconds.finish(self.last, || median(rtts), base);
        self.verdict = match self.seconds.main_trouble() {
            Some(sign) if self.seconds.troubled() * 2 >= self.seconds.judged().len() => {
                RateVerdict::Congested(sign)
            }
            _ if self.counts.received == 0 && self.watched() > self.seconds.length() => {
                RateVerdict::Congested(Congestion::Throughput { delivered: Bitrate::ZERO })
            }
            _ if self.watched() < self.planned.mul_f64(LEAST_WATCHED) => RateVerdict::Unfinished,
            _ => RateVerdict::Clear,
        };
    }
}

/// The middle value of these.
pub(crate) fn median<T: Copy + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    (!sorted.is_empty()).then(|| *sorted.select_nth_unstable(middle).1)
}

#[expect(clippy::cast_precision_loss, reason = "counts and rates are far below 2^53")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// Samples of a step that are kept: more than half an hour of them.
const MOST_SAMPLES: u32 = 200_000;
/// A step has to be watched for this share of its planned time to count as carried.
const LEAST_WATCHED: f64 = 0.6;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A step of 10 s at 100 packets a second, watched for this time with `received` packets each
    /// 100 ms.
    fn watched(time: Duration, received: u64) -> Step {
        let load = Load::new(Bitrate::from_bits_per_sec(800_000), 1_000);
        let mut step = Step::new(load, MS(0), MS(10_000), StepKind::Ramp);
        for at in (0..).map(|tenth| MS(tenth * 100)).take_while(|&at| at <= time) {
            let counts = PacketCounts { received, ..PacketCounts::default() };
            step.take(&Sample { at, rtt: Some(20_000), counts, ..Sample::default() }, None);
        }
        step.conclude(None);
        step
    }

    #[test]
    fn a_rate_is_carried_if_it_was_watched_for_long_enough() {
        assert_eq!(watched(MS(5_900), 10).verdict(), RateVerdict::Unfinished);
        assert_eq!(watched(MS(6_000), 10).verdict(), RateVerdict::Clear);
    }

    #[test]
    fn a_link_that_carries_half_of_a_rate_is_congested() {
        let half = watched(MS(10_000), 5);
        let RateVerdict::Congested(Congestion::Throughput { delivered }) = half.verdict() else {
            panic!("{:?}", half.verdict());
        };
        assert!((390..=410).contains(&(delivered.as_bits_per_sec() / 1_000)), "{delivered}");
    }

    #[test]
    fn a_link_through_which_nothing_comes_is_congested() {
        let verdict = watched(MS(3_000), 0).verdict();
        let delivered = Bitrate::ZERO;
        assert_eq!(verdict, RateVerdict::Congested(Congestion::Throughput { delivered }));
    }

    #[test]
    fn samples_belong_to_the_step_during_which_they_were_taken() {
        let mut step = watched(MS(0), 1);
        assert!(step.is_under_way() && step.covers(MS(99_000)));
        step.end(MS(10_000));
        step.end(MS(20_000));
        assert_eq!((step.covers(MS(9_999)), step.covers(MS(10_000))), (true, false));
    }
}
