//! Courses of a mobile link, made from a seed: the rates that the air allows, and its pauses.

use std::time::Duration;

use punctual_units::Bitrate;
use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::Rng;

use crate::generators::{generator, normal, uniform};
use crate::timeline::{Action, Event, Timeline};
use crate::trace::{Trace, TraceRow};

/// The parameters of a course. It has a row each 100 ms and goes straight from one to the next.
///
/// A Markov chain goes from state to state: the positions of the device in the cell. Within a state
/// the rate varies about its mean (an autoregressive process of first order: fading and the other
/// users), and so does the delay (how long the scheduler lets the device wait). Where the rate
/// falls low, packets are also lost. All of it in integers, so that a seed makes the same course
/// everywhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Course {
    /// Tells this course from others that are made of the same seed.
    pub(super) number: u64,
    /// The states; it starts in the first, and goes from each to any other alike.
    pub(super) states: &'static [State],
    /// The part of the rate's deviation from its mean that is left after 100 ms, in 1024ths.
    pub(super) persistence: i64,
    /// The least and the largest rate, in kb/s.
    pub(super) rate_range: (i64, i64),
    /// The least and the largest delay, in µs.
    pub(super) delay_range: (i64, i64),
    /// Loss at the lowest rate, in millionths; it begins at [`State::weak`].
    pub(super) loss_at_least_rate: i64,
    /// Times at which nothing comes through.
    pub(super) pauses: Pauses,
}

/// The position of a device in its cell.
#[derive(Clone, Copy, Debug)]
pub(super) struct State {
    /// Mean rate in kb/s.
    pub(super) rate: i64,
    /// Standard deviation of the rate in kb/s.
    pub(super) rate_deviation: i64,
    /// Mean delay in µs, and its standard deviation.
    pub(super) delay: (i64, i64),
    /// Loss in millionths while the rate is good.
    pub(super) loss: i64,
    /// The rate in kb/s below which loss rises.
    pub(super) weak: i64,
    /// Its mean duration, in tenths of a second.
    pub(super) lasts: u64,
}

/// Times at which nothing comes through, and what waits comes together afterwards.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pauses {
    /// The shortest and the longest time from one to the next, in ms.
    pub(super) gap: (i64, i64),
    /// The shortest and the longest of them, in ms.
    pub(super) length: (i64, i64),
    /// The time at their beginning in which everything is lost, in ms.
    pub(super) lost: u64,
}

impl Course {
    /// The course of this seed.
    pub(super) fn make(&self, seed: u64) -> (Trace, Timeline) {
        (self.trace(seed), self.timeline(seed))
    }

    fn trace(&self, seed: u64) -> Trace {
        let mut states = generator(seed, FIRST + 4 * self.number);
        let mut rates = generator(seed, FIRST + 4 * self.number + 1);
        let mut delays = generator(seed, FIRST + 4 * self.number + 2);
        let mut state = 0;
        let (mut rate, mut delay) = (0, 0);
        let mut rows: Vec<TraceRow> = (0..ROWS)
            .map(|number| {
                state = self.next_state(state, &mut states);
                let now = &self.states[state];
                rate = wander(rate, self.persistence, now.rate_deviation, &mut rates);
                delay = wander(delay, DELAY_PERSISTENCE, now.delay.1, &mut delays);
                self.row(number, now, now.rate + rate, now.delay.0 + delay)
            })
            .collect();
        // The end is the begin, so that nothing jumps where the course begins anew.
        rows.push(TraceRow { at: PERIOD, ..rows[0] });
        Trace::from_valid_rows(rows).interpolated()
    }

    fn next_state(&self, state: usize, states: &mut Pcg64Mcg) -> usize {
        let others = self.states.len() - 1;
        let (whether, which) = (states.next_u64(), states.next_u64());
        if others == 0 || whether % self.states[state].lasts.max(1) != 0 {
            return state;
        }
        let step = 1 + usize::try_from(which % others as u64).unwrap_or(0);
        (state + step) % self.states.len()
    }

    #[expect(clippy::cast_precision_loss, reason = "millionths are exact")]
    fn row(&self, number: u32, state: &State, rate: i64, delay: i64) -> TraceRow {
        let (least, most) = self.rate_range;
        let rate = rate.clamp(least, most);
        let delay = delay.clamp(self.delay_range.0, self.delay_range.1);
        let weakness = (state.weak - rate).max(0) * 1_000 / (state.weak - least).max(1);
        let loss = state.loss + weakness * self.loss_at_least_rate / 1_000;
        TraceRow {
            at: STEP * number,
            rate: Some(Bitrate::from_bits_per_sec(rate.unsigned_abs() * 1_000)),
            delay: Some(Duration::from_micros(delay.unsigned_abs())),
            loss: Some(loss as f64 / 1e6),
        }
    }

    fn timeline(&self, seed: u64) -> Timeline {
        let mut chance = generator(seed, FIRST + 4 * self.number + 3);
        let mut within = |(from, to): (i64, i64)| {
            let middle = i64::midpoint(from, to);
            let value = middle + uniform((to - from) / 2, chance.next_u64());
            Duration::from_millis(value.unsigned_abs())
        };
        let mut timeline = Timeline::new();
        let mut at = within(self.pauses.gap);
        loop {
            let duration = within(self.pauses.length);
            if at + duration >= PERIOD {
                return timeline;
            }
            let mut push = |action| {
                timeline.push(Event { at, every: Some(PERIOD), until: None, action });
            };
            if self.pauses.lost > 0 {
                push(Action::Outage(Duration::from_millis(self.pauses.lost)));
            }
            push(Action::Stall { duration, drain: None });
            at += within(self.pauses.gap);
        }
    }
}

/// The next deviation from a mean: a part of the last one, and a new part that keeps the standard
/// deviation at its value.
fn wander(last: i64, persistence: i64, deviation: i64, chance: &mut Pcg64Mcg) -> i64 {
    let new = (1_024 * 1_024 - persistence * persistence).max(0).isqrt();
    let step = normal(deviation, [chance.next_u64(), chance.next_u64()]);
    (last * persistence + step * new) / 1_024
}

/// Numbers of generators that links do not use.
const FIRST: u64 = 1_000;

/// The time from row to row. A mobile scheduler decides each millisecond, but its decisions change
/// with the fading, and slowly at a low speed; flows notice changes within 100 ms.
const STEP: Duration = Duration::from_millis(100);
/// Rows of a course before it begins anew.
const ROWS: u32 = 3_000;
/// The length of a course, which is longer than the published experiments.
pub(super) const PERIOD: Duration = Duration::from_secs(300);
/// The part of the delay's deviation that is left after 100 ms, in 1024ths: it varies over some
/// seconds.
const DELAY_PERSISTENCE: i64 = 1_004;
