//! The value of one figure with which a goal is just met.

use std::time::Duration;

use punctual_units::{Bitrate, DisplayDuration};

use super::conditions::{Conditions, Setting};
use super::playout::Outcome;
use super::question::{QuestionError, SolvableFigure};

/// A mean time to a glitch, in seconds, and an overhead; what is `None` does not matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Goal {
    pub(super) mean_time: Option<f64>,
    pub(super) overhead: Option<f64>,
}

impl Goal {
    pub(super) fn is_met(&self, outcome: &Outcome) -> bool {
        self.mean_time.is_none_or(|wanted| outcome.mean_time >= wanted) && self.is_cheap(outcome)
    }

    fn is_cheap(&self, outcome: &Outcome) -> bool {
        self.overhead.is_none_or(|most| outcome.overhead <= most)
    }
}

/// The conditions with the least buffer, or the greatest loss, round trip or rate, that meet the
/// goal; and whether any value in the figure's range does.
///
/// # Errors
///
/// [`QuestionError::OutOfReach`] or [`QuestionError::Overhead`] if no value of the figure meets it,
/// and errors of figures out of their ranges.
pub(super) fn solve(
    conditions: Conditions,
    figure: SolvableFigure,
    goal: &Goal,
    setting: &Setting,
) -> Result<(Conditions, bool), QuestionError> {
    let [easy, hard] = range(figure, &conditions, setting);
    let at = |value| with(figure, conditions, value);
    // A buffer that is too short for its round trip meets no goal.
    let meets =
        |value| at(value).outcome(setting).is_ok_and(|outcome: Outcome| goal.is_met(&outcome));
    let best = at(easy).outcome(setting)?;
    if meets(hard) {
        return Ok((at(hard), true));
    }
    // A slow stream notices losses late, so that its lowest rate is not the easiest.
    let places =
        (0..=SCAN).map(|step| hard * libm::pow(easy / hard, f64::from(step) / f64::from(SCAN)));
    let Some(start) =
        Some(easy).filter(|easy| meets(*easy)).or_else(|| places.into_iter().find(|it| meets(*it)))
    else {
        return Err(unreachable(&at(easy), figure, goal, &best));
    };
    let (mut good, mut bad) = (start, hard);
    for _ in 0..BISECTIONS {
        let middle = (good * bad).sqrt();
        if meets(middle) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    let round = rounded(figure, good);
    Ok((at(if meets(round) { round } else { good }), false))
}

/// The ends of a figure's range: the one where glitches are rarest first.
fn range(figure: SolvableFigure, conditions: &Conditions, setting: &Setting) -> [f64; 2] {
    match figure {
        SolvableFigure::Buffer => [3_600.0, (conditions.rtt.as_secs_f64() / 2.0).max(0.001)],
        SolvableFigure::Loss => [LEAST_LOSS, 0.5],
        // A buffer has at least half a round trip.
        SolvableFigure::RoundTrip => {
            [0.001, (conditions.buffer.as_secs_f64() * 2.0).clamp(0.001, 10.0)]
        }
        SolvableFigure::Rate => [slowest(setting), 1e10],
    }
}

/// The slowest stream, which has a packet in each readchunk.
fn slowest(setting: &Setting) -> f64 {
    let bits = f64::from(u32::try_from(setting.block).unwrap_or(u32::MAX)) * 8.0;
    (1.001 * bits / setting.readchunk.as_secs_f64().max(1e-9)).clamp(1e4, 1e10)
}

fn unreachable(
    at: &Conditions,
    figure: SolvableFigure,
    goal: &Goal,
    best: &Outcome,
) -> QuestionError {
    if let Some(wanted) = goal.overhead
        && !goal.is_cheap(best)
    {
        return QuestionError::Overhead { wanted, loss: at.loss, least: best.overhead };
    }
    let bound = match figure {
        SolvableFigure::Buffer => {
            format!("with a buffer of {:#}, the longest", DisplayDuration(at.buffer))
        }
        SolvableFigure::Loss => "with a loss of 0.0000001 %".to_owned(),
        SolvableFigure::RoundTrip => format!("at a round trip of {}", DisplayDuration(at.rtt)),
        SolvableFigure::Rate => format!("at a rate of {}", at.rate),
    };
    QuestionError::OutOfReach {
        wanted: goal.mean_time.unwrap_or_default(),
        bound,
        best: best.mean_time,
        rounds: best.rounds,
    }
}

/// The conditions with this value of the figure: seconds, b/s, or a share.
fn with(figure: SolvableFigure, conditions: Conditions, value: f64) -> Conditions {
    let time = || Duration::from_secs_f64(value.clamp(0.0, 3_600.0));
    match figure {
        SolvableFigure::Buffer => Conditions { buffer: time(), ..conditions },
        SolvableFigure::RoundTrip => Conditions { rtt: time(), ..conditions },
        SolvableFigure::Loss => Conditions { loss: value.clamp(0.0, 0.5), ..conditions },
        SolvableFigure::Rate => Conditions { rate: bits(value), ..conditions },
    }
}

/// The next value on the easier side that is short to write: times in steps of 0.1 ms, others
/// with three digits.
fn rounded(figure: SolvableFigure, value: f64) -> f64 {
    let digits = || libm::exp10(libm::log10(value).floor() - 2.0);
    match figure {
        SolvableFigure::Buffer => (value * 1e4).ceil() / 1e4,
        SolvableFigure::RoundTrip => (value * 1e4).floor() / 1e4,
        SolvableFigure::Loss | SolvableFigure::Rate => (value / digits()).floor() * digits(),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range of rates is positive and far smaller"
)]
fn bits(value: f64) -> Bitrate {
    Bitrate::from_bits_per_sec(value.round() as u64)
}

/// The least loss that is tried.
const LEAST_LOSS: f64 = 1e-9;
/// Bisections, after which a value is known to 12 digits.
const BISECTIONS: u32 = 48;
/// Steps of the search for a value where the goal is met, if it is not at the end of the range.
const SCAN: u32 = 64;
