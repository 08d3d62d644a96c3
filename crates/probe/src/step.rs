//! One rate of the ramp: what was seen of the link at it, and whether the link carried it.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_proto::Statistics;
use punctual_units::Bitrate;

use crate::course::Second;
use crate::events::LossEvents;
use crate::measurement::{Congestion, Verdict};
use crate::report::Totals;

/// A sample of both ends' counters, at its time on the scale of the probe.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sample {
    pub(crate) at: Duration,
    /// The latest round trip, µs.
    pub(crate) rtt: Option<u32>,
    /// One-way delay beyond an unknown constant, µs.
    pub(crate) transit: Option<i32>,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) gaps: u64,
    pub(crate) reordered: u64,
    /// Time that it would take to send what waits in the sender.
    pub(crate) backlog: Duration,
}

/// What the end that sends counts, in all.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SenderTotals {
    pub(crate) retransmitted: u64,
    pub(crate) acks_expected: u64,
    pub(crate) acks_missed: u64,
    pub(crate) ack_gaps: u64,
}

/// What a step is compared with: the clear steps before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Baseline {
    /// Share of packets lost.
    pub(crate) loss: f64,
    /// Median delay, µs.
    pub(crate) delay: i64,
    /// Median round trip, µs.
    pub(crate) rtt: u32,
}

/// One rate, tried for some time.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) rate: Bitrate,
    pub(crate) soak: bool,
    pub(crate) from: Duration,
    /// When it ended; `None` while it lasts.
    pub(crate) until: Option<Duration>,
    pub(crate) verdict: Verdict,
    /// Seen at it.
    pub(crate) rtts: Vec<u32>,
    pub(crate) transits: Vec<i32>,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    pub(crate) gaps: u64,
    pub(crate) reordered: u64,
    pub(crate) events: LossEvents,
    longest_run: u64,
    /// The receiver's totals at the first and the last report of this step.
    pub(crate) totals: Option<(Totals, Totals)>,
    /// What this end counted when it began and at the last look.
    pub(crate) own: Option<(SenderTotals, SenderTotals)>,
    /// Messages that were to be sent, by the pace.
    packets_per_sec: f64,
    planned: Duration,
    /// Moments that were taken in.
    samples: u32,
    block: Block,
    blocks: Vec<Second>,
    pending: VecDeque<Pending>,
    last: Duration,
}

/// A second of a step, or less if steps are short.
#[derive(Debug, Default)]
struct Block {
    from: Duration,
    received: u64,
    lost: u64,
    reordered: u64,
    delays: Vec<i64>,
    backlog: Duration,
}

/// A loss whose round trip is still being looked at.
#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Duration,
    lost: u64,
    longest: u64,
    rtt: u32,
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
    pub(crate) fn new(
        rate: Bitrate,
        payload: usize,
        from: Duration,
        planned: Duration,
        soak: bool,
    ) -> Self {
        Self {
            rate,
            soak,
            from,
            until: None,
            verdict: Verdict::Unfinished,
            rtts: Vec::new(),
            transits: Vec::new(),
            samples: 0,
            received: 0,
            lost: 0,
            gaps: 0,
            reordered: 0,
            events: LossEvents::default(),
            longest_run: 0,
            totals: None,
            own: None,
            packets_per_sec: float(rate.as_bits_per_sec()) / (8.0 * float(payload as u64)),
            planned,
            block: Block { from, ..Block::default() },
            blocks: Vec::new(),
            pending: VecDeque::new(),
            last: from,
        }
    }

    /// Whether a sample at `at` belongs to this step.
    pub(crate) fn covers(&self, at: Duration) -> bool {
        at >= self.from && self.until.is_none_or(|until| at < until)
    }

    /// The longest run of losses, packets, as far as it could be told.
    pub(crate) fn longest_run(&self) -> u64 {
        self.longest_run
    }

    /// For how much of the time something was wrong.
    pub(crate) fn troubled(&self) -> Duration {
        let troubled = self.blocks.iter().filter(|block| block.trouble.is_some()).count();
        self.block_time() * u32::try_from(troubled).unwrap_or(u32::MAX)
    }

    /// What was seen of the link second by second.
    pub(crate) fn course(&self) -> &[Second] {
        &self.blocks
    }

    /// For how long it was watched.
    pub(crate) fn watched(&self) -> Duration {
        self.last - self.from
    }

    /// Share of packets that the link lost.
    pub(crate) fn loss(&self) -> f64 {
        share(self.lost.saturating_sub(self.reordered), self.received, self.lost)
    }

    /// What arrived, as a rate of payloads.
    pub(crate) fn delivered(&self) -> Bitrate {
        let sent = self.packets_per_sec * self.watched().as_secs_f64();
        let arrived = if sent > 0.0 { float(self.received) / sent } else { 0.0 };
        scaled(self.rate, arrived)
    }

    /// Median of the round trips, µs.
    pub(crate) fn rtt(&self) -> Option<u32> {
        median(&self.rtts)
    }

    /// Median of what stands for the delay, µs.
    pub(crate) fn delay(&self) -> Option<i64> {
        let medians: Vec<i64> = self.blocks.iter().filter_map(|block| block.delay).collect();
        median(&medians)
    }

    /// Takes in a sample of this step; what is known of the link without congestion is in `base`.
    pub(crate) fn take(&mut self, sample: &Sample, base: Option<&Baseline>) {
        if self.samples >= MOST_SAMPLES {
            return;
        }
        self.samples += 1;
        self.last = self.last.max(sample.at);
        self.rtts.extend(sample.rtt);
        self.transits.extend(sample.transit);
        self.received += sample.received;
        self.lost += sample.lost;
        self.gaps += sample.gaps;
        self.reordered += sample.reordered;
        self.note_losses(sample);
        if sample.at >= self.block.from + self.block_time() {
            self.end_block(base);
            self.block = Block { from: sample.at, ..Block::default() };
        }
        let block = &mut self.block;
        block.received += sample.received;
        block.lost += sample.lost;
        block.reordered += sample.reordered;
        block.backlog = block.backlog.max(sample.backlog);
        let delay = sample.transit.map(i64::from).or(sample.rtt.map(i64::from));
        block.delays.extend(delay);
    }

    /// Whether the link cannot carry this rate, as far as is known yet; told once.
    pub(crate) fn congested_early(&mut self) -> Option<Congestion> {
        if self.verdict != Verdict::Unfinished {
            return None;
        }
        let troubled = self.blocks.iter().filter(|block| block.trouble.is_some()).count();
        let in_a_row = self.blocks.iter().rev().take_while(|block| block.trouble.is_some()).count();
        if in_a_row < TROUBLE_IN_A_ROW && troubled * 2 <= BLOCKS {
            return None;
        }
        self.verdict = Verdict::Congested(self.main_trouble()?);
        self.main_trouble()
    }

    /// The verdict, now that no more samples of this step will come.
    pub(crate) fn conclude(&mut self, base: Option<&Baseline>) {
        self.flush_pending(None);
        if self.verdict != Verdict::Unfinished {
            return;
        }
        if self.block.from + self.block_time() / 2 <= self.last {
            self.end_block(base);
        }
        let whole = self.planned.mul_f64(0.6);
        let troubled = self.blocks.iter().filter(|block| block.trouble.is_some()).count();
        self.verdict = match self.main_trouble() {
            Some(trouble) if troubled * 2 >= self.blocks.len() => Verdict::Congested(trouble),
            _ if self.received == 0 && self.watched() > self.block_time() => {
                Verdict::Congested(Congestion::Throughput { delivered: Bitrate::ZERO })
            }
            _ if self.watched() < whole => Verdict::Unfinished,
            _ => Verdict::Clear,
        };
    }

    /// Judges the block that ends.
    fn end_block(&mut self, base: Option<&Baseline>) {
        let time = (self.last.max(self.block.from) - self.block.from).max(self.block_time() / 2);
        let time = time.min(self.block_time() * 2);
        let expected = self.packets_per_sec * time.as_secs_f64();
        let block = &self.block;
        let delay = median(&block.delays);
        let lost = block.lost.saturating_sub(block.reordered);
        let loss = share(lost, block.received, block.lost);
        let arrived = float(block.received) / expected.max(1.0);
        let calm = base.map(|base| base.delay);
        let least = self.blocks.iter().filter_map(|block| block.delay).min();
        let queue = match (delay, calm.or(least)) {
            (Some(delay), Some(calm)) => delay - calm,
            _ => 0,
        };
        let rtt = base.map(|base| base.rtt).or(median(&self.rtts)).unwrap_or(0);
        let standing = (i64::from(rtt) * 3 / 4).max(LEAST_QUEUE_US);
        let too_lossy = base.map_or(0.3, |base| base.loss * 2.0 + 0.03);
        let trouble = if queue > standing {
            let micros = u64::try_from(queue).unwrap_or(0);
            Some(Congestion::Queue { delay: Duration::from_micros(micros) })
        } else if loss > too_lossy {
            Some(Congestion::Loss { share: loss })
        } else if block.backlog > BACKLOG {
            Some(Congestion::Backlog { waiting: block.backlog })
        } else if arrived < 0.9 {
            Some(Congestion::Throughput { delivered: scaled(self.rate, arrived) })
        } else {
            None
        };
        self.blocks.push(Second {
            rate: self.rate,
            time,
            delivered: scaled(self.rate, arrived),
            delay,
            worst: block.delays.iter().copied().max(),
            trouble,
            first: self.blocks.is_empty(),
        });
    }

    /// The trouble of most blocks; of equals, the first.
    fn main_trouble(&self) -> Option<Congestion> {
        let troubles: Vec<Congestion> = self.blocks.iter().filter_map(|b| b.trouble).collect();
        let same =
            |a: &Congestion, b: &Congestion| std::mem::discriminant(a) == std::mem::discriminant(b);
        let count = |one: &Congestion| troubles.iter().filter(|other| same(one, other)).count();
        let most = troubles.iter().map(count).max()?;
        // The middle one of its kind stands for all.
        let kind = troubles.iter().find(|one| count(one) == most)?;
        let of_kind: Vec<&Congestion> = troubles.iter().filter(|one| same(one, kind)).collect();
        of_kind.get(of_kind.len() / 2).copied().copied()
    }

    fn note_losses(&mut self, sample: &Sample) {
        if let Some(rtt) = sample.rtt {
            for pending in &mut self.pending {
                pending.rtt = pending.rtt.max(rtt);
            }
        }
        self.flush_pending(Some(sample.at));
        let lost = sample.lost.saturating_sub(sample.reordered);
        if lost > 0 {
            // With several gaps in one sample, all but one may be as short as can be.
            let longest = sample.lost.saturating_sub(sample.gaps.saturating_sub(1)).max(1);
            let rtt = sample.rtt.unwrap_or(0);
            self.longest_run = self.longest_run.max(longest);
            self.pending.push_back(Pending { at: sample.at, lost, longest, rtt });
        }
    }

    /// Files the losses whose round trip has shown by `now`, or all.
    fn flush_pending(&mut self, now: Option<Duration>) {
        let calm = self.rtt().filter(|_| !self.pending.is_empty()).unwrap_or(0);
        while let Some(&Pending { at, lost, longest, rtt }) = self.pending.front() {
            if now.is_some_and(|now| now < at + LOSS_WATCH) {
                return;
            }
            self.pending.pop_front();
            let span = Duration::from_secs_f64(float(longest) / self.packets_per_sec.max(1.0));
            // Round trips vary; only a spike is an event of its own.
            let spike = rtt > calm.saturating_mul(3) / 2 && rtt > calm + 20_000;
            let rtt = spike.then(|| Duration::from_micros(rtt.into()));
            self.events.add(lost, span, rtt);
        }
    }

    fn block_time(&self) -> Duration {
        (self.planned / BLOCKS_DIVISOR).clamp(SHORTEST_BLOCK, LONGEST_BLOCK)
    }
}

/// The middle value of these.
pub(crate) fn median<T: Copy + Ord>(values: &[T]) -> Option<T> {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    (!sorted.is_empty()).then(|| *sorted.select_nth_unstable(middle).1)
}

/// `part` of all packets: of those that came and those that went missing.
fn share(part: u64, received: u64, missing: u64) -> f64 {
    // What went missing and came after all is in both.
    let all = received.max(missing).max(1);
    (float(part) / float(all)).min(1.0)
}

/// `rate` times `factor`.
pub(crate) fn scaled(rate: Bitrate, factor: f64) -> Bitrate {
    #[expect(clippy::cast_possible_truncation, reason = "rates are far below 2^53")]
    #[expect(clippy::cast_sign_loss, reason = "neither is negative")]
    let bits = (float(rate.as_bits_per_sec()) * factor.max(0.0)) as u64;
    Bitrate::from_bits_per_sec(bits)
}

#[expect(clippy::cast_precision_loss, reason = "counts and rates are far below 2^53")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

/// A standing queue of less time than that is none: the delay of mobile links wanders by as much.
const LEAST_QUEUE_US: i64 = 60_000;
/// More than that waiting in the sender is a queue of its own.
const BACKLOG: Duration = Duration::from_millis(300);
/// So many blocks of trouble one after the other are congestion, at once.
const TROUBLE_IN_A_ROW: usize = 5;
/// So many blocks of trouble at all are.
const BLOCKS: usize = 15;
const BLOCKS_DIVISOR: u32 = 15;
const SHORTEST_BLOCK: Duration = Duration::from_millis(200);
const LONGEST_BLOCK: Duration = Duration::from_secs(1);
/// How long after a loss its round trip may show.
const LOSS_WATCH: Duration = Duration::from_millis(1_500);
/// Moments of a step that are kept: more than half an hour of them.
const MOST_SAMPLES: u32 = 200_000;
