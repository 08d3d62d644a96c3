//! Congestion control: how much may be in flight, and how packets are paced.

mod bbr;
mod cubic;
mod leave_slow_start;
mod newreno;

use std::fmt::Debug;
use std::time::Duration;

use punctual_units::Instant;

use crate::pacer::PacingRule;
use bbr::Bbr;
use cubic::Cubic;
use newreno::NewReno;

/// The congestion control of a sender.
///
/// Each has the parameters of picoquic in June 2023, with which the published results were made.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Control {
    /// `NewReno` (RFC 9002 section 7), which leaves slow start when the round-trip time rises.
    NewReno,
    /// CUBIC (RFC 9438) with a reduction to 7/8, which reacts to losses of more than a fifth of the
    /// packets alone, and leaves slow start when the round-trip time rises.
    Cubic,
    /// `BBRv1` (draft-cardwell-iccrg-bbr-congestion-control-00). On paths with a round trip of more
    /// than 50 ms it starts by slow start, which it leaves when the round-trip time rises. It
    /// halves its window when more than a fifth of the packets is lost.
    Bbr,
}

impl Control {
    /// Every one.
    pub const ALL: [Self; 3] = [Self::Bbr, Self::Cubic, Self::NewReno];

    /// The name in plans.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "newreno",
            Self::Cubic => "cubic",
            Self::Bbr => "bbr",
        }
    }

    pub(crate) fn build(self) -> Box<dyn CongestionControl> {
        match self {
            Self::NewReno => Box::new(NewReno::new()),
            Self::Cubic => Box::new(Cubic::new()),
            Self::Bbr => Box::new(Bbr::new()),
        }
    }
}

/// The path as a congestion control sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathView {
    pub(crate) now: Instant,
    /// Bytes of a full packet.
    pub(crate) mtu: u64,
    pub(crate) smoothed: Duration,
    /// The least round-trip time so far, and the latest, without the peer's delay.
    pub(crate) least: Duration,
    pub(crate) latest: Duration,
    /// Bytes sent that are neither acknowledged nor lost.
    pub(crate) in_flight: u64,
    /// The number of the next packet, and the highest that was acknowledged.
    pub(crate) next_number: u64,
    pub(crate) highest_acknowledged: u64,
    /// The latest rate of delivery and the greatest between two acknowledgements, bytes a second.
    pub(crate) rate: u64,
    pub(crate) peak_rate: u64,
    /// Bytes delivered so far, and those when the newest acknowledged packet was sent.
    pub(crate) delivered: u64,
    pub(crate) delivered_before: u64,
    /// Whether the application limited the latest sample of the rate.
    pub(crate) is_rate_limited: bool,
    /// Whether the application, not the window, limited the packets that are acknowledged now.
    pub(crate) is_app_limited: bool,
    pub(crate) bytes_lost: u64,
}

/// How a packet was found to be lost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    /// Later packets were acknowledged.
    Acknowledgement,
    /// Nothing was acknowledged for long.
    Timeout,
}

/// Decides how much may be in flight. Each acknowledgement is told in this order: its packets one
/// by one, its round trip, its rate.
pub(crate) trait CongestionControl: Debug {
    /// A packet was acknowledged.
    fn acknowledged(&mut self, path: &PathView, bytes: u64);
    /// An acknowledgement gave a sample of the round-trip time.
    fn measured_round_trip(&mut self, path: &PathView);
    /// The rate of delivery was measured.
    fn measured_rate(&mut self, path: &PathView);
    /// The packet of this number was declared lost.
    fn lost(&mut self, path: &PathView, number: u64, cause: Cause);
    /// A packet that was declared lost was acknowledged.
    fn was_not_lost(&mut self, path: &PathView);
    /// Bytes that may be in flight.
    fn window(&self) -> u64;
    /// How packets are paced.
    fn pacing(&self) -> PacingRule;
    /// Whether the next pause of the pacer is to last until a train of packets may go.
    fn wants_train(&self) -> bool {
        false
    }
    /// Whether it has left its first slow start, so that the window says something about the path.
    fn knows_path(&self) -> bool;
}

/// The first window: ten packets of the largest size.
const INITIAL_WINDOW: u64 = 10 * LARGEST_PACKET;
/// No window is less.
const LEAST_WINDOW: u64 = 2 * LARGEST_PACKET;
const LARGEST_PACKET: u64 = 1_536;
/// The round-trip time for which the first window is meant, and the greatest that is believed.
const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);
const GREATEST_ROUND_TRIP: Duration = Duration::from_millis(610);

/// The first window on a path with this least round-trip time: longer paths get more, so that slow
/// start lasts as long on them.
fn first_window(least: Duration) -> u64 {
    let least = least.clamp(USUAL_ROUND_TRIP, GREATEST_ROUND_TRIP);
    to_bytes(to_f64(INITIAL_WINDOW) * (least.as_secs_f64() / USUAL_ROUND_TRIP.as_secs_f64()))
}

/// Half of what the peak rate would bring in a round trip.
fn half_of_peak(path: &PathView, round_trip: Duration) -> u64 {
    to_bytes(to_f64(path.peak_rate) * round_trip.as_secs_f64() / 2.0)
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn to_f64(bytes: u64) -> f64 {
    bytes as f64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is clamped")]
fn to_bytes(bytes: f64) -> u64 {
    bytes.clamp(0.0, 1e15) as u64
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A path of 100 ms with 50,000 bytes in flight.
    pub(crate) fn path(now_ms: u64) -> PathView {
        PathView {
            now: Instant::from_millis(now_ms),
            mtu: 1_000,
            smoothed: Duration::from_millis(100),
            least: Duration::from_millis(100),
            latest: Duration::from_millis(100),
            in_flight: 50_000,
            next_number: 100,
            highest_acknowledged: 50,
            rate: 0,
            peak_rate: 0,
            delivered: 0,
            delivered_before: 0,
            is_rate_limited: false,
            is_app_limited: false,
            bytes_lost: 0,
        }
    }

    #[test]
    fn long_paths_begin_with_a_larger_window() {
        let first = |ms| first_window(Duration::from_millis(ms));
        assert_eq!([first(10), first(200), first(5_000)], [15_360, 30_720, 93_696]);
    }
}
