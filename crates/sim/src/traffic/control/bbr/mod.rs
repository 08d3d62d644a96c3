//! BBR, versions 1 and 3, and their common parts.

mod version1;
mod version3;

use std::time::Duration;

use punctual_units::Bitrate;

pub(in crate::traffic) use self::version1::Bbr1;
pub(in crate::traffic) use self::version3::Bbr3;

/// The window that recovery and `ProbeRtt` come back to.
#[derive(Debug, Default)]
struct SavedWindow {
    /// The first round trip, in which a packet is sent for each that arrives.
    conserves: bool,
    prior_window: u64,
    is_on: bool,
}

impl SavedWindow {
    /// Keeps the window, which becomes small now; `probes` if it is small already for `ProbeRtt`.
    fn save(&mut self, window: u64, probes: bool) {
        let prior = if self.is_on || probes { self.prior_window } else { 0 };
        self.prior_window = prior.max(window);
    }
}

fn scale_rate(rate: Bitrate, gain: f64) -> Bitrate {
    Bitrate::from_bits_per_sec(scale(rate.as_bits_per_sec(), gain))
}

#[expect(clippy::cast_precision_loss, reason = "53 bits are plenty")]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it saturates")]
fn scale(bytes: u64, gain: f64) -> u64 {
    (bytes as f64 * gain) as u64
}

/// As in Linux: the queue shrinks by 1 % of the rate.
const PACING_MARGIN: f64 = 0.99;
/// Packets.
const LEAST_WINDOW: u64 = 4;
const ROUND_TRIP_LIFETIME: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
/// The round trip for the pacing rate before one is known.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(1);
const LEAST_RTT: Duration = Duration::from_micros(1);
/// Bytes.
const LARGEST_QUANTUM: u64 = 64 << 10;
