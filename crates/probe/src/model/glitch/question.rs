//! From three figures or more of rate, loss, round trip, buffer, mean time and overhead, the rest.
//!
//! Rate, loss, round trip, buffer and copies decide the mean time to a glitch and the overhead. So
//! a question that wants a mean time is solved for one figure that it leaves open: the least
//! buffer, else the highest loss, the longest round trip, or the highest rate. Each of them is
//! found by bisection, since the mean time only falls from one end of its range to the other. An
//! overhead that may not be exceeded limits the copies and the loss. Figures that are still open
//! are varied, and so are copies.

use std::time::Duration;

use punctual_units::Bitrate;
use thiserror::Error;

use super::conditions::{Conditions, ConditionsError, Setting};
use super::mean_time::DisplayMeanTime;
use super::playout::Outcome;
use super::solve::{Goal, solve};

/// A question: the figures that are known, at least three of them besides the copies.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Question {
    /// The bit rate.
    pub rate: Option<Bitrate>,
    /// The loss.
    pub loss: Option<f64>,
    /// The round-trip time.
    pub rtt: Option<Duration>,
    /// The buffer.
    pub buffer: Option<Duration>,
    /// The mean time to a glitch that is wanted at least, in seconds.
    pub mean_time: Option<f64>,
    /// The most that may be retransmitted for each original.
    pub overhead: Option<f64>,
    /// Copies of the last retransmission in time; `None` to vary them.
    pub copies: Option<u32>,
}

/// A figure that can be solved for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SolvableFigure {
    /// [`Conditions::buffer`]
    Buffer,
    /// [`Conditions::loss`]
    Loss,
    /// [`Conditions::rtt`]
    RoundTrip,
    /// [`Conditions::rate`]
    Rate,
}

/// The answers to a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The figure for which it was solved; `None` if none is left open or no mean time is wanted.
    pub solved: Option<SolvableFigure>,
    /// The figures that were varied.
    pub varied: Vec<SolvableFigure>,
    /// The answers, by the varied figures, then by the copies, and then by the buffer if it is
    /// varied. There is at least one.
    pub answers: Vec<Answer>,
}

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// All figures.
    pub conditions: Conditions,
    /// The glitches that are expected, and the cost.
    pub outcome: Outcome,
    /// Whether mean time and overhead are as the question wants them.
    pub is_enough: bool,
    /// Whether the solved figure is at the end of its range: more of it would be enough, too.
    pub is_at_bound: bool,
}

/// A question without an answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QuestionError {
    /// Fewer than three figures are known.
    #[error(
        "{0} of the six figures are known; name at least three of bit rate, loss, round-trip time, \
         buffer, mean time to a glitch and overhead"
    )]
    TooFew(usize),
    /// A figure is out of its range.
    #[error(transparent)]
    Conditions(#[from] ConditionsError),
    /// A mean time is out of its range.
    #[error(
        "the mean time to a glitch is {}; it must be 1 s to 100000 years",
        DisplayMeanTime(*.0)
    )]
    MeanTime(f64),
    /// The overhead is less than any recovery needs.
    #[error(
        "an overhead of {:.3} % is too little: to recover {:.3} % of loss, {:.3} % must be \
         retransmitted at least, which is p / (1 − p)",
        wanted * 100.0, loss * 100.0, least * 100.0
    )]
    Overhead {
        /// The overhead that is allowed.
        wanted: f64,
        /// The loss.
        loss: f64,
        /// The least overhead.
        least: f64,
    },
    /// No value of the figure that was left open is enough.
    #[error(
        "a glitch each {} on the mean is out of reach: even {bound}, there is one each {}, with {} \
         in time",
        DisplayMeanTime(*wanted), DisplayMeanTime(*best), rounds_text(*rounds)
    )]
    OutOfReach {
        /// The mean time that is wanted, in seconds.
        wanted: f64,
        /// The end of the figure's range, in words.
        bound: String,
        /// The mean time there, in seconds.
        best: f64,
        /// The rounds that are in time there.
        rounds: u32,
    },
}

impl Question {
    /// Answers the question.
    pub fn answers(&self, setting: &Setting) -> Result<Answers, QuestionError> {
        self.check()?;
        let open = self.open();
        // Without a mean time, an overhead still bounds the loss.
        let solvable =
            |figure: &&SolvableFigure| self.mean_time.is_some() || **figure == SolvableFigure::Loss;
        let has_goal = self.mean_time.is_some() || self.overhead.is_some();
        let solved = open.iter().find(solvable).copied().filter(|_| has_goal);
        let varied: Vec<SolvableFigure> =
            open.into_iter().filter(|figure| Some(*figure) != solved).collect();
        let goal = Goal { mean_time: self.mean_time, overhead: self.overhead };
        let mut answers = Vec::new();
        let mut first_error = None;
        for conditions in self.variants(&varied, setting) {
            match answer(conditions, solved, &goal, setting) {
                Ok(answer) => answers.push(answer),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        match first_error {
            Some(error) if answers.is_empty() => Err(error),
            _ => Ok(Answers { solved, varied, answers }),
        }
    }

    fn check(&self) -> Result<(), QuestionError> {
        let known = 4 - self.open().len();
        let known = known + usize::from(self.mean_time.is_some());
        let known = known + usize::from(self.overhead.is_some());
        if known < 3 {
            return Err(QuestionError::TooFew(known));
        }
        if let Some(wanted) = self.mean_time
            && !(1.0..=LONGEST_MEAN_TIME).contains(&wanted)
        {
            return Err(QuestionError::MeanTime(wanted));
        }
        if let (Some(wanted), Some(loss)) = (self.overhead, self.loss) {
            let least = loss / (1.0 - loss);
            if wanted < least {
                return Err(QuestionError::Overhead { wanted, loss, least });
            }
        }
        Ok(())
    }

    /// The figures that are left open, in the order in which they are solved for.
    fn open(&self) -> Vec<SolvableFigure> {
        let open = [
            (SolvableFigure::Buffer, self.buffer.is_none()),
            (SolvableFigure::Loss, self.loss.is_none()),
            (SolvableFigure::RoundTrip, self.rtt.is_none()),
            (SolvableFigure::Rate, self.rate.is_none()),
        ];
        open.into_iter().filter(|(_, is_open)| *is_open).map(|(figure, _)| figure).collect()
    }

    /// The conditions with each combination of the varied figures and the copies.
    fn variants(&self, varied: &[SolvableFigure], setting: &Setting) -> Vec<Conditions> {
        let start = Conditions {
            rate: self.rate.unwrap_or(Bitrate::from_mbps(10)),
            loss: self.loss.unwrap_or(0.02),
            rtt: self.rtt.unwrap_or(Duration::from_millis(200)),
            buffer: self.buffer.unwrap_or(Duration::from_secs(1)),
            copies: 0,
        };
        let copies: &[u32] = match (&self.copies, varied) {
            (Some(copies), _) => &[*copies],
            (None, []) => &[0, 1, 2, 3, 4],
            (None, _) => &[0, 3],
        };
        let mut variants = vec![start];
        for figure in varied.iter().rev().filter(|figure| **figure != SolvableFigure::Buffer) {
            variants = variants.into_iter().flat_map(|it| values(it, *figure, setting)).collect();
        }
        let with = |it| copies.iter().map(move |copies| Conditions { copies: *copies, ..it });
        let variants = variants.into_iter().flat_map(with);
        // The useful buffers follow from all other figures.
        if varied.contains(&SolvableFigure::Buffer) {
            return variants.flat_map(|it| values(it, SolvableFigure::Buffer, setting)).collect();
        }
        variants.collect()
    }
}

/// The conditions with each usual value of a figure.
fn values(conditions: Conditions, figure: SolvableFigure, setting: &Setting) -> Vec<Conditions> {
    let ms = Duration::from_millis;
    match figure {
        SolvableFigure::Rate => {
            let rates = [1, 6, 10, 20, 40, 100].map(Bitrate::from_mbps);
            rates.map(|rate| Conditions { rate, ..conditions }).to_vec()
        }
        SolvableFigure::Loss => [0.001, 0.005, 0.01, 0.02, 0.05, 0.1]
            .map(|loss| Conditions { loss, ..conditions })
            .to_vec(),
        SolvableFigure::RoundTrip => {
            [20, 50, 100, 200, 300].map(|rtt| Conditions { rtt: ms(rtt), ..conditions }).to_vec()
        }
        SolvableFigure::Buffer => {
            let long = Conditions { buffer: conditions.rtt.max(ms(1)), ..conditions };
            // A figure out of its range is reported when it is reckoned with.
            let Ok(playout) = long.playout(setting) else { return vec![conditions] };
            // Room for each number of rounds, in whole milliseconds.
            let buffer = |rounds| whole_ms(playout.needed(rounds));
            (1..=6).map(|rounds| Conditions { buffer: buffer(rounds), ..conditions }).collect()
        }
    }
}

fn answer(
    conditions: Conditions,
    solved: Option<SolvableFigure>,
    goal: &Goal,
    setting: &Setting,
) -> Result<Answer, QuestionError> {
    let (conditions, is_at_bound) = match solved {
        Some(figure) => solve(conditions, figure, goal, setting)?,
        None => (conditions, false),
    };
    let outcome = conditions.outcome(setting)?;
    Ok(Answer { conditions, outcome, is_enough: goal.is_met(&outcome), is_at_bound })
}

/// The next whole millisecond.
fn whole_ms(time: Duration) -> Duration {
    let ms = time.as_nanos().div_ceil(1_000_000);
    Duration::from_millis(u64::try_from(ms).unwrap_or(u64::MAX))
}

fn rounds_text(rounds: u32) -> String {
    match rounds {
        0 => "no retransmission".to_owned(),
        1 => "one round of NAK and retransmission".to_owned(),
        _ => format!("{rounds} rounds of NAK and retransmission"),
    }
}

const LONGEST_MEAN_TIME: f64 = 1e5 * 365.25 * 86_400.0;

#[cfg(test)]
#[path = "question_tests.rs"]
mod tests;
