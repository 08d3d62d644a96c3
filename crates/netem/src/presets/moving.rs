//! Mobile links on the move, made from a seed.
//!
//! The figures are ours. They are chosen to be of the size that published measurements of LTE in
//! motion have, and to differ in what makes life hard: slow fading, fast changes, gaps, and crowds.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::config::{Jitter, LinkConfig, QueueLimit};
use crate::loss::Loss;
use crate::presets::course::{Course, Pauses, State};
use crate::profile::{LinkProfile, PathProfile};

/// A phone carried through a town: street corners and shop fronts change the rate over seconds.
pub(super) fn walking(seed: u64) -> PathProfile {
    path(&WALKING, seed, 4, 500_000)
}

/// A car: coverage changes within seconds from very good to poor, a handover now and then.
pub(super) fn driving(seed: u64) -> PathProfile {
    path(&DRIVING, seed, 6, 750_000)
}

/// A train: one cell after the other, each change a gap of which the begin is lost.
pub(super) fn handover(seed: u64) -> PathProfile {
    path(&HANDOVER, seed, 5, 750_000)
}

/// A crowd: little room, held back by a deep queue, and pauses while others have their turn.
pub(super) fn stadium(seed: u64) -> PathProfile {
    path(&STADIUM, seed, 12, 400_000)
}

/// The course on the way up; the way down has room, as for a camera on the move.
fn path(course: &Course, seed: u64, jitter_ms: u64, queue: usize) -> PathProfile {
    let (trace, timeline) = course.make(seed);
    let up = LinkConfig {
        queue: QueueLimit::Bytes(queue),
        jitter: Jitter::Normal { std_dev: Duration::from_millis(jitter_ms) },
        ..LinkConfig::default()
    };
    let down = LinkConfig {
        rate: Some(Bitrate::from_mbps(30)),
        queue: QueueLimit::Time(Duration::from_millis(300)),
        delay: Duration::from_millis(25),
        jitter: Jitter::Normal { std_dev: Duration::from_millis(3) },
        loss: Loss::Random(0.001),
        ..LinkConfig::default()
    };
    PathProfile {
        down: LinkProfile::from(down).with_timeline(timeline.clone()),
        up: LinkProfile::from(up).with_timeline(timeline).with_trace(Some(trace)),
    }
}

const fn state(rate: i64, deviation: i64, delay_ms: i64, loss: i64, lasts_s: u64) -> State {
    State {
        rate,
        rate_deviation: deviation,
        delay: (delay_ms * 1_000, delay_ms * 200),
        loss,
        weak: rate / 2,
        lasts: lasts_s * 10,
    }
}

const WALKING: Course = Course {
    number: 1,
    states: &[
        // In sight of the mast, around a corner, inside a doorway.
        state(20_000, 4_000, 30, 500, 25),
        state(12_000, 3_000, 35, 1_000, 20),
        state(6_000, 1_500, 45, 3_000, 8),
    ],
    persistence: 990,
    rate_range: (4_000, 30_000),
    delay_range: (20_000, 90_000),
    loss_at_least_rate: 20_000,
    pauses: Pauses { gap: (20_000, 60_000), length: (50, 200), lost: 0 },
};

const DRIVING: Course = Course {
    number: 2,
    states: &[
        // Beside the mast, between masts, at the edge of a cell, under a bridge.
        state(25_000, 7_000, 30, 1_000, 8),
        state(12_000, 4_000, 40, 2_000, 10),
        state(5_000, 2_000, 55, 5_000, 5),
        state(1_500, 500, 90, 20_000, 1),
    ],
    persistence: 880,
    rate_range: (1_000, 40_000),
    delay_range: (20_000, 200_000),
    loss_at_least_rate: 50_000,
    pauses: Pauses { gap: (30_000, 90_000), length: (60, 300), lost: 30 },
};

const HANDOVER: Course = Course {
    number: 3,
    states: &[
        // Each cell has its own load.
        state(22_000, 4_000, 35, 1_000, 15),
        state(14_000, 3_000, 40, 1_000, 15),
        state(8_000, 2_000, 50, 2_000, 15),
    ],
    persistence: 940,
    rate_range: (3_000, 35_000),
    delay_range: (20_000, 120_000),
    loss_at_least_rate: 30_000,
    pauses: Pauses { gap: (10_000, 20_000), length: (100, 600), lost: 60 },
};

const STADIUM: Course = Course {
    number: 4,
    states: &[
        // While the crowd watches, while it sends, when everybody sends at once.
        state(5_000, 1_200, 60, 3_000, 30),
        state(2_500, 800, 90, 6_000, 30),
        state(1_000, 300, 150, 15_000, 8),
    ],
    persistence: 960,
    rate_range: (500, 8_000),
    delay_range: (40_000, 400_000),
    loss_at_least_rate: 50_000,
    pauses: Pauses { gap: (8_000, 30_000), length: (300, 1_500), lost: 0 },
};
