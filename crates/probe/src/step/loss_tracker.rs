//! Losses, each with the round trip that was measured soon after it.

use std::collections::VecDeque;
use std::time::Duration;

use super::{PacketCounts, Sample, float};
use crate::events::LossEvents;

/// Collects the losses of a step. A loss is filed only after a while, because a spike of the round
/// trip that caused it shows in later samples.
#[derive(Debug)]
pub(crate) struct LossTracker {
    packets_per_sec: f64,
    events: LossEvents,
    longest_run: u64,
    /// Losses whose round trip may still show.
    pending: VecDeque<Pending>,
}

#[derive(Clone, Copy, Debug)]
struct Pending {
    at: Duration,
    counts: PacketCounts,
    /// The longest round trip since the loss, µs.
    rtt: u32,
}

impl LossTracker {
    pub(crate) fn new(packets_per_sec: f64) -> Self {
        Self {
            packets_per_sec,
            events: LossEvents::default(),
            longest_run: 0,
            pending: VecDeque::new(),
        }
    }

    /// Takes in a sample. `usual_rtt` computes the median round trip of the step in µs.
    pub(crate) fn take(&mut self, sample: &Sample, usual_rtt: impl Fn() -> u32) {
        if let Some(rtt) = sample.rtt {
            for pending in &mut self.pending {
                pending.rtt = pending.rtt.max(rtt);
            }
        }
        while let Some(pending) = self.pending.pop_front() {
            if sample.at < pending.at + RTT_WATCH {
                self.pending.push_front(pending);
                break;
            }
            self.file(&pending, usual_rtt());
        }
        if sample.counts.lost() > 0 {
            self.longest_run = self.longest_run.max(sample.counts.longest_gap());
            let (at, counts) = (sample.at, sample.counts);
            self.pending.push_back(Pending { at, counts, rtt: sample.rtt.unwrap_or(0) });
        }
    }

    /// Files all losses: no more samples will come.
    pub(crate) fn finish(&mut self, usual_rtt: impl Fn() -> u32) {
        while let Some(pending) = self.pending.pop_front() {
            self.file(&pending, usual_rtt());
        }
    }

    /// The losses that have been filed.
    pub(crate) fn events(&self) -> &LossEvents {
        &self.events
    }

    /// The longest run of losses in packets, as far as the samples tell.
    pub(crate) fn longest_run(&self) -> u64 {
        self.longest_run
    }

    fn file(&mut self, pending: &Pending, usual_rtt: u32) {
        let run = float(pending.counts.longest_gap());
        let span = Duration::from_secs_f64(run / self.packets_per_sec.max(1.0));
        // Round trips vary; only a spike belongs to the loss.
        let rtt = pending.rtt;
        let spike = rtt > usual_rtt.saturating_mul(3) / 2 && rtt > usual_rtt + SPIKE_US;
        let rtt = spike.then(|| Duration::from_micros(rtt.into()));
        self.events.add(pending.counts.lost(), span, rtt);
    }
}

/// The time after a loss in which a spike of the round trip may show.
const RTT_WATCH: Duration = Duration::from_millis(1_500);
/// A spike is longer than the median round trip by at least this.
const SPIKE_US: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::LossEvent;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn sample(at: u64, missing: u64, rtt_ms: u32) -> Sample {
        let counts = PacketCounts { received: 20, missing, gaps: 1, reordered: 0 };
        Sample { at: MS(at), rtt: Some(rtt_ms * 1_000), counts, ..Sample::default() }
    }

    fn filed(samples: &[Sample]) -> (Vec<LossEvent>, usize) {
        let mut tracker = LossTracker::new(1_000.0);
        for sample in samples {
            tracker.take(sample, || 40_000);
        }
        let before = tracker.events().iter().count();
        tracker.finish(|| 40_000);
        (tracker.events().iter().collect(), before)
    }

    #[test]
    fn a_loss_is_filed_with_the_spike_that_follows_it() {
        let (events, early) = filed(&[sample(0, 10, 40), sample(900, 0, 200)]);
        let rtt = Some(MS(200));
        assert_eq!(events, [LossEvent { events: 1, packets: 10, span: MS(10), rtt }]);
        assert_eq!(early, 0, "its round trip may still show");
    }

    #[test]
    fn a_spike_long_after_a_loss_does_not_belong_to_it() {
        let (events, early) =
            filed(&[sample(0, 10, 40), sample(1_500, 0, 41), sample(1_600, 0, 200)]);
        assert_eq!((events[0].rtt, early), (None, 1));
    }
}
