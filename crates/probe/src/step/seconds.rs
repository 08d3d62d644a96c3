//! A step second by second: each second is judged when it ends.

use std::time::Duration;

use super::{Baseline, Load, PacketCounts, Sample, float, median};
use crate::history::Second;
use crate::measurement::Congestion;

/// The seconds of a step, which are shorter where the step is short.
#[derive(Debug)]
pub(crate) struct Seconds {
    load: Load,
    /// The length of each.
    length: Duration,
    current: Current,
    judged: Vec<Second>,
}

/// The second that is under way.
#[derive(Debug, Default)]
struct Current {
    from: Duration,
    counts: PacketCounts,
    delays: Vec<i64>,
    backlog: Duration,
}

impl Seconds {
    /// The seconds of a step that begins at `from` and is to last for `planned`.
    pub(crate) fn new(load: Load, from: Duration, planned: Duration) -> Self {
        Self {
            load,
            length: (planned / PER_STEP).clamp(SHORTEST, LONGEST),
            current: Current { from, ..Current::default() },
            judged: Vec::new(),
        }
    }

    /// The length of each.
    pub(crate) fn length(&self) -> Duration {
        self.length
    }

    /// Takes in a sample, the latest one. `usual_rtt` is the median round trip without congestion
    /// in µs, as far as it is known.
    pub(crate) fn take(
        &mut self,
        sample: &Sample,
        usual_rtt: impl Fn() -> Option<u32>,
        base: Option<&Baseline>,
    ) {
        if sample.at >= self.current.from + self.length {
            self.judge(sample.at, usual_rtt, base);
            self.current = Current { from: sample.at, ..Current::default() };
        }
        let current = &mut self.current;
        current.counts.add(&sample.counts);
        current.backlog = current.backlog.max(sample.backlog);
        current.delays.extend(sample.transit.map(i64::from).or(sample.rtt.map(i64::from)));
    }

    /// The step has ended, and its last sample was taken at `last`.
    pub(crate) fn finish(
        &mut self,
        last: Duration,
        usual_rtt: impl Fn() -> Option<u32>,
        base: Option<&Baseline>,
    ) {
        if self.current.from + self.length / 2 <= last {
            self.judge(last, usual_rtt, base);
        }
    }

    /// The seconds that have been judged.
    pub(crate) fn judged(&self) -> &[Second] {
        &self.judged
    }

    /// Number of seconds with a sign of congestion.
    pub(crate) fn troubled(&self) -> usize {
        self.judged.iter().filter(|second| second.trouble.is_some()).count()
    }

    /// Whether the signs are enough to end the step early.
    pub(crate) fn are_congested(&self) -> bool {
        let in_a_row = self.judged.iter().rev().take_while(|second| second.trouble.is_some());
        in_a_row.count() >= TROUBLE_IN_A_ROW || self.troubled() * 2 > PER_STEP as usize
    }

    /// Median of the delays of the seconds, µs.
    pub(crate) fn delay(&self) -> Option<i64> {
        let medians: Vec<i64> = self.judged.iter().filter_map(|second| second.delay).collect();
        median(&medians)
    }

    /// The most frequent sign of congestion; of equally frequent ones the first.
    pub(crate) fn main_trouble(&self) -> Option<Congestion> {
        let signs: Vec<Congestion> = self.judged.iter().filter_map(|s| s.trouble).collect();
        let same =
            |a: &Congestion, b: &Congestion| std::mem::discriminant(a) == std::mem::discriminant(b);
        let count = |one: &Congestion| signs.iter().filter(|other| same(one, other)).count();
        let most = signs.iter().map(count).max()?;
        // The middle one of its kind represents them.
        let kind = signs.iter().find(|one| count(one) == most)?;
        let of_kind: Vec<&Congestion> = signs.iter().filter(|one| same(one, kind)).collect();
        of_kind.get(of_kind.len() / 2).copied().copied()
    }

    /// Judges the current second, which ends at `end`.
    fn judge(
        &mut self,
        end: Duration,
        usual_rtt: impl Fn() -> Option<u32>,
        base: Option<&Baseline>,
    ) {
        let current = &self.current;
        let time = (end.max(current.from) - current.from).max(self.length / 2);
        let time = time.min(self.length * 2);
        let arrived = float(current.counts.received) / self.load.packets_in(time).max(1.0);
        let delay = median(&current.delays);
        let calm = base.map(|base| base.delay);
        let least = self.judged.iter().filter_map(|second| second.delay).min();
        let queue = match (delay, calm.or(least)) {
            (Some(delay), Some(calm)) => delay - calm,
            _ => 0,
        };
        let rtt = base.map(|base| base.rtt).or_else(usual_rtt).unwrap_or(0);
        let queue_limit = (i64::from(rtt) * 3 / 4).max(LEAST_QUEUE_US);
        let loss = current.counts.loss();
        let loss_limit = base.map_or(0.3, |base| base.loss * 2.0 + 0.03);
        let trouble = if queue > queue_limit {
            let micros = u64::try_from(queue).unwrap_or(0);
            Some(Congestion::Queue { delay: Duration::from_micros(micros) })
        } else if loss > loss_limit {
            Some(Congestion::Loss { share: loss })
        } else if current.backlog > LONGEST_BACKLOG {
            Some(Congestion::Backlog { waiting: current.backlog })
        } else if arrived < LEAST_ARRIVED {
            Some(Congestion::Throughput { delivered: self.load.scaled(arrived) })
        } else {
            None
        };
        self.judged.push(Second {
            rate: self.load.rate(),
            time,
            delivered: self.load.scaled(arrived),
            delay,
            worst: current.delays.iter().copied().max(),
            trouble,
            first: self.judged.is_empty(),
        });
    }
}

/// A shorter queue is no sign of congestion: the delay of mobile links varies by as much.
const LEAST_QUEUE_US: i64 = 60_000;
/// A sender whose messages wait for longer than this has a queue.
const LONGEST_BACKLOG: Duration = Duration::from_millis(300);
/// Less than this share of the packets is too little throughput.
const LEAST_ARRIVED: f64 = 0.9;
/// This number of seconds with trouble, one after the other, is congestion at once.
const TROUBLE_IN_A_ROW: usize = 5;
/// Seconds that a step of 15 s has.
const PER_STEP: u32 = 15;
const SHORTEST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use punctual_units::Bitrate;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Samples of `seconds`, ten a second, each with this number of packets and this delay.
    fn watch(seconds: &mut Seconds, from: u64, count: u64, received: u64, delay_ms: i32) {
        for tenth in 0..count * 10 {
            let counts = PacketCounts { received, ..PacketCounts::default() };
            let transit = Some(delay_ms * 1_000);
            let at = MS(from * 1_000 + tenth * 100);
            let sample = Sample { at, transit, counts, ..Sample::default() };
            seconds.take(&sample, || Some(20_000), None);
        }
    }

    fn fifteen() -> Seconds {
        // 100 packets a second.
        let load = Load::new(Bitrate::from_bits_per_sec(800_000), 1_000);
        Seconds::new(load, Duration::ZERO, Duration::from_secs(15))
    }

    #[test]
    fn seconds_that_carry_the_load_show_no_trouble() {
        let mut seconds = fifteen();
        watch(&mut seconds, 0, 10, 10, 30);
        seconds.finish(MS(10_000), || None, None);
        assert_eq!((seconds.judged().len(), seconds.troubled()), (10, 0));
        assert_eq!(seconds.delay(), Some(30_000));
    }

    #[test]
    fn five_seconds_of_a_growing_queue_are_congestion() {
        let mut seconds = fifteen();
        watch(&mut seconds, 0, 5, 10, 30);
        watch(&mut seconds, 5, 5, 10, 130);
        assert!(!seconds.are_congested(), "four of them have been judged");
        watch(&mut seconds, 10, 1, 10, 130);
        assert!(seconds.are_congested());
        let sign = seconds.main_trouble();
        assert_eq!(sign, Some(Congestion::Queue { delay: MS(100) }));
    }

    #[test]
    fn the_most_frequent_sign_is_the_main_one() {
        let mut seconds = fifteen();
        watch(&mut seconds, 0, 1, 10, 30);
        watch(&mut seconds, 1, 1, 10, 130);
        watch(&mut seconds, 2, 3, 5, 30);
        assert!(matches!(seconds.main_trouble(), Some(Congestion::Throughput { .. })));
    }
}
