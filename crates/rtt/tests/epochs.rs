//! An estimator that updates once per round trip, written against the trait alone, serves the
//! number spaces of QUIC and of SRT alike.

use std::time::Duration;

use punctual_rtt::{PacketNumber, Rtt, RttEstimator, RttSample};
use punctual_units::Instant;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Updates its estimate when a packet that was sent in the current epoch is acknowledged, from the
/// mean and the extremes of the samples that the epoch had.
#[derive(Debug, Default)]
struct OncePerRoundTrip {
    next: PacketNumber,
    epoch_start: PacketNumber,
    epoch: Option<Epoch>,
    least: Duration,
    estimate: Option<Rtt>,
    updates: u32,
}

#[derive(Debug)]
struct Epoch {
    samples: u32,
    sum: Duration,
    least: Duration,
    greatest: Duration,
}

impl Epoch {
    fn include(current: Option<Self>, rtt: Duration) -> Self {
        match current {
            None => Self { samples: 1, sum: rtt, least: rtt, greatest: rtt },
            Some(epoch) => Self {
                samples: epoch.samples + 1,
                sum: epoch.sum + rtt,
                least: epoch.least.min(rtt),
                greatest: epoch.greatest.max(rtt),
            },
        }
    }
}

impl RttEstimator for OncePerRoundTrip {
    fn sent(&mut self, _now: Instant, number: PacketNumber) {
        self.next = number.next();
    }

    fn acknowledged(&mut self, sample: &RttSample) {
        let Some(Rtt { smoothed, variance }) = self.estimate else {
            self.least = sample.rtt;
            self.estimate = Some(Rtt { smoothed: sample.rtt, variance: sample.rtt / 2 });
            self.epoch_start = self.next;
            return;
        };
        let undelayed = sample.rtt.saturating_sub(sample.ack_delay);
        let rtt = if undelayed >= self.least { undelayed } else { sample.rtt };
        self.least = self.least.min(rtt);
        let epoch = Epoch::include(self.epoch.take(), rtt);
        if sample.number < self.epoch_start {
            self.epoch = Some(epoch);
            return;
        }
        let deviation = smoothed.abs_diff(epoch.least).max(smoothed.abs_diff(epoch.greatest));
        self.estimate = Some(Rtt {
            variance: (variance * 3 + deviation) / 4,
            smoothed: (smoothed * 7 + epoch.sum / epoch.samples) / 8,
        });
        self.epoch_start = self.next;
        self.updates += 1;
    }

    fn peer_reported(&mut self, _now: Instant, _reported: Rtt) -> Option<Rtt> {
        // A peer's classic estimate would undo the measurement by epochs.
        None
    }

    fn estimate(&self) -> Option<Rtt> {
        self.estimate
    }
}

/// A packet each millisecond for two seconds, each acknowledged after `rtt(milliseconds so far)`.
fn exchange(
    numbers: impl Fn(u64) -> PacketNumber,
    ack_delay: Duration,
    rtt: impl Fn(u64) -> Duration,
) -> OncePerRoundTrip {
    let mut estimator = OncePerRoundTrip::default();
    let mut events: Vec<_> = (0..2_000_u64)
        .flat_map(|i| {
            let (number, sent) = (numbers(i), Instant::from_millis(1_000 + i));
            let rtt = rtt(i) + ack_delay;
            [(sent, number, None), (sent + rtt, number, Some(rtt))]
        })
        .collect();
    events.sort_by_key(|&(now, number, _)| (now, number));
    for (now, number, acknowledged) in events {
        match acknowledged {
            None => estimator.sent(now, number),
            Some(rtt) => estimator.acknowledged(&RttSample { now, number, rtt, ack_delay }),
        }
    }
    estimator
}

#[test]
fn the_estimate_is_updated_once_per_round_trip() {
    let estimator = exchange(PacketNumber::new, Duration::ZERO, |_| MS(100));
    // The first sample begins the first epoch, and there are samples for 1,999 ms from there on.
    assert_eq!(estimator.updates, 19);
    assert_eq!(estimator.estimate().map(|rtt| rtt.smoothed), Some(MS(100)));
}

#[test]
fn an_epoch_keeps_the_variance_that_single_samples_hide() {
    // Two seconds in which the round trip swings between 80 and 120 ms each 400 ms.
    let swing = |ms: u64| MS(80 + (ms % 400).abs_diff(200) / 5);
    let epochs = exchange(PacketNumber::new, Duration::ZERO, swing).estimate().expect("samples");
    let mut classic = punctual_rtt::ClassicRtt::default();
    for i in 0..2_000_u64 {
        let (now, number) = (Instant::from_millis(1_000 + i), PacketNumber::new(i));
        let sample = RttSample { now, number, rtt: swing(i), ack_delay: Duration::ZERO };
        classic.acknowledged(&sample);
    }
    let classic = classic.estimate().expect("samples");
    assert!(epochs.variance > 2 * classic.variance, "{epochs:?} beside {classic:?}");
}

#[test]
fn the_reported_delay_of_acknowledgements_is_no_part_of_the_path() {
    let estimator =
        exchange(PacketNumber::new, MS(25), |ms| if ms == 0 { MS(60) } else { MS(100) });
    let smoothed = estimator.estimate().expect("samples").smoothed;
    assert!(smoothed > MS(95) && smoothed <= MS(100), "{smoothed:?}");
}

#[test]
fn srt_numbers_that_wrap_in_mid_stream_give_the_same_estimate() {
    let rtt = |ms: u64| MS(80 + ms % 70);
    let quic = exchange(PacketNumber::new, Duration::ZERO, rtt);
    // The ACK numbers of SRT have 31 bits, and wrap after the hundredth of these.
    let newest = std::cell::Cell::new(PacketNumber::new(0x7FFF_FF9B));
    let srt = exchange(
        |i| {
            let on_the_wire = (0x7FFF_FF9C + i) & 0x7FFF_FFFF;
            let truncated = u32::try_from(on_the_wire).expect("31 bits");
            newest.set(newest.get().expand(truncated, 31));
            newest.get()
        },
        Duration::ZERO,
        rtt,
    );
    assert_eq!(srt.estimate(), quic.estimate());
    assert_eq!(srt.updates, quic.updates);
    assert!(srt.updates > 10);
}

#[test]
fn an_estimator_may_refuse_the_report_of_the_peer() {
    let mut estimator = exchange(PacketNumber::new, Duration::ZERO, |_| MS(100));
    let reported = Rtt { smoothed: MS(1), variance: MS(1) };
    assert_eq!(estimator.peer_reported(Instant::from_millis(9_000), reported), None);
    assert_eq!(estimator.estimate().map(|rtt| rtt.smoothed), Some(MS(100)));
}
