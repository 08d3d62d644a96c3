use std::time::Duration;

use punctual_units::Instant;

/// The least length of a window.
const WINDOW: Duration = Duration::from_secs(1);
/// The least number of samples in a window: its least lateness is then close to the true one.
const WINDOW_SAMPLES: u32 = 8;
/// A path whose least RTT moved by more than this is another path: its delay is not drift.
const PATH_CHANGE: Duration = Duration::from_millis(2);
/// A change of the least RTT by more than this multiple of the usual change between windows is not
/// jitter.
const NOISE_FACTOR: u32 = 4;
/// The number of windows in a row with such a change that show a new path.
const PATH_WINDOWS: u32 = 4;
/// The time constant of the correction. It smooths jitter; the correction for a clock that is wrong
/// by 200 ppm lags by 1.6 ms.
const SETTLING: Duration = Duration::from_secs(8);
/// The correction changes by a thousandth of the time at most, which is five times the drift of a
/// bad clock.
const MAX_SLEW_DIVISOR: i64 = 1_000;
/// A packet that is earlier than all others of its window by more than this, in nanoseconds, does
/// not come from the peer.
const OUTLIER: i64 = 50_000_000;
/// The largest change of the correction at the end of a window, nanoseconds. A larger one would
/// make buffered packets late. A window of a standby link takes eight seconds, in which a bad clock
/// drifts by less than this.
const MAX_STEP: i64 = 2_000_000;

/// Measures the drift of the peer's clock against this end's.
///
/// Each control packet gives a sample: its lateness against the time base. The least lateness of a
/// window has no queueing delay and little jitter; libsrt takes the mean, which has both. If the
/// least lateness is far below the second least, the second one counts, because a single packet
/// proves nothing. The lateness that remains consists of the drift and of changes of the path: half
/// of a change of the least RTT belongs to the path. If the RTT changes by more than jitter and
/// stays there, the measurement starts again, so that a new route is not mistaken for drift.
#[derive(Debug)]
pub(crate) struct DriftTracer {
    window: Option<Window>,
    reference: Option<DriftReference>,
    last_rtt: Duration,
    /// Mean change of the least RTT from window to window.
    rtt_noise: Duration,
    /// Windows in a row whose RTT differs from the reference's.
    changed: u32,
    drift: i64,
}

#[derive(Debug)]
struct Window {
    start: Instant,
    samples: u32,
    /// The least and the second least.
    least: [i64; 2],
    least_rtt: Option<Duration>,
}

#[derive(Debug)]
struct DriftReference {
    lateness: i64,
    rtt: Duration,
}

impl DriftTracer {
    pub(crate) const fn new() -> Self {
        Self {
            window: None,
            reference: None,
            last_rtt: Duration::ZERO,
            rtt_noise: Duration::ZERO,
            changed: 0,
            drift: 0,
        }
    }

    /// The present correction, nanoseconds.
    pub(crate) const fn drift(&self) -> i64 {
        self.drift
    }

    /// A packet arrived `lateness` nanoseconds later than by the time base; `rtt` is the latest
    /// sample. Returns the new correction, in nanoseconds, at the end of a window.
    pub(crate) fn sample(
        &mut self,
        now: Instant,
        lateness: i64,
        rtt: Option<Duration>,
    ) -> Option<i64> {
        let window = self.window.get_or_insert(Window {
            start: now,
            samples: 0,
            least: [i64::MAX; 2],
            least_rtt: None,
        });
        window.samples += 1;
        let [first, second] = window.least;
        window.least = [first.min(lateness), second.min(first.max(lateness))];
        window.least_rtt = match (window.least_rtt, rtt) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if now - window.start < WINDOW || window.samples < WINDOW_SAMPLES {
            return None;
        }
        let window = self.window.take()?;
        self.close(&window, now - window.start)
    }

    fn close(&mut self, window: &Window, length: Duration) -> Option<i64> {
        let rtt = window.least_rtt.unwrap_or_default();
        let [least, second] = window.least;
        let lateness = if second.saturating_sub(least) > OUTLIER { second } else { least };
        let usual_change = self.rtt_noise * NOISE_FACTOR;
        let last_rtt = std::mem::replace(&mut self.last_rtt, rtt);
        let Some(reference) = &mut self.reference else {
            self.reference = Some(DriftReference { lateness, rtt });
            // The first RTT may be wrong by half, as the draft assumes for its variance.
            self.rtt_noise = rtt / 2;
            return None;
        };
        self.rtt_noise = (self.rtt_noise * 7 + rtt.abs_diff(last_rtt)) / 8;
        let jitter = PATH_CHANGE.max(reference.rtt / 8).max(usual_change);
        if rtt.abs_diff(reference.rtt) > jitter {
            self.changed += 1;
            if self.changed == PATH_WINDOWS {
                self.changed = 0;
                *reference = DriftReference { lateness: lateness - self.drift, rtt };
            }
            return None;
        }
        self.changed = 0;
        let path = (nanos(rtt) - nanos(reference.rtt)) / 2;
        let target = lateness - reference.lateness - path;
        let share = nanos(length.min(SETTLING)) / 1_000_000;
        let step = (target - self.drift) / (nanos(SETTLING) / 1_000_000) * share;
        let slew = (nanos(length) / MAX_SLEW_DIVISOR).min(MAX_STEP);
        self.drift += step.clamp(-slew, slew);
        Some(self.drift)
    }
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds ten samples a second for `seconds`; `lateness` and `rtt` by the sample's index.
    fn follow(seconds: u64, lateness: impl Fn(i64) -> i64, rtt: impl Fn(i64) -> Duration) -> i64 {
        let mut tracer = DriftTracer::new();
        let mut drift = 0;
        for i in 0..i64::try_from(seconds * 10).expect("small") {
            let now = Instant::from_millis(i.unsigned_abs() * 100);
            drift = tracer.sample(now, lateness(i), Some(rtt(i))).unwrap_or(drift);
        }
        drift
    }

    const MS: i64 = 1_000_000;

    #[test]
    fn a_clock_200_ppm_off_is_followed_closely() {
        for ppm in [-200, 200] {
            // 0.1 s between samples: 100 ns a sample for each ppm; jitter of up to 7 ms on top.
            let drift =
                follow(3_600, |i| i * 100 * ppm + i % 8 * MS, |_| Duration::from_millis(30));
            let expected = 3_600 * 1_000 * ppm;
            assert!((drift - expected).abs() < 2 * MS, "{drift} for {expected}");
        }
    }

    #[test]
    fn where_samples_are_rare_the_correction_moves_no_further_at_once() {
        // The first window saw nothing but packets that had waited in a queue for 20 ms.
        let lateness = |second: u64| if second < 8 { 0 } else { -20 * MS };
        let mut tracer = DriftTracer::new();
        let samples = (0..80).map(|second| (Instant::from_millis(second * 1_000), second));
        let corrections: Vec<i64> = samples
            .filter_map(|(now, second)| tracer.sample(now, lateness(second), None))
            .collect();
        assert!(corrections.len() > 5, "{corrections:?}");
        let steps = std::iter::once(0).chain(corrections.iter().copied()).zip(&corrections);
        for (before, &after) in steps {
            assert!((-2 * MS..=0).contains(&(after - before)), "{corrections:?}");
        }
    }

    #[test]
    fn a_new_route_is_not_drift() {
        let drift = follow(
            120,
            |i| if i < 600 { 0 } else { 40 * MS },
            |i| Duration::from_millis(if i < 600 { 30 } else { 70 }),
        );
        assert_eq!(drift, 0);
    }

    #[test]
    fn jitter_alone_is_not_drift() {
        let drift = follow(600, |i| (i * 7_919 % 101) * MS / 4, |_| Duration::from_millis(30));
        assert!(drift.abs() < 3 * MS, "{drift}");
    }

    #[test]
    fn jitter_both_ways_does_not_let_the_correction_wander() {
        // Noise as of a jitter of 0 to 16 ms each way, the round trip holding this way's.
        let noise = |i: i64, salt: i64| {
            (i.wrapping_mul(0x9E37_79B9) ^ salt).wrapping_mul(0x85EB_CA6B) >> 13 & 0xF
        };
        let drift = follow(
            7_200,
            |i| i * 20_000 + noise(i, 1) * MS,
            |i| Duration::from_millis(30 + (noise(i, 1) + noise(i, 2)).unsigned_abs()),
        );
        assert!((drift - 7_200 * 10 * 20_000).abs() < 8 * MS, "{drift}");
    }
}
