//! The progress of a sweep: runs done, and the time that is left.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use punctual_lab::run::RunSpec;
use punctual_units::DisplayDuration;
use tokio::task::JoinHandle;

use punctual_program::line::{self, LineText};

/// The progress in the live line.
pub(super) struct LiveProgress {
    state: Arc<Mutex<State>>,
    /// The task that shows it; `None` if nothing is shown.
    shown: Option<JoinHandle<()>>,
    start: Instant,
}

struct State {
    done: usize,
    all: usize,
    /// The run that ended last.
    last: String,
}

impl LiveProgress {
    /// The progress of a sweep of `runs` runs. Needs a runtime.
    pub(super) fn new(runs: usize, quiet: bool) -> Self {
        let start = Instant::now();
        let state = State { done: 0, all: runs, last: String::new() };
        let state = Arc::new(Mutex::new(state));
        let shown = Arc::clone(&state);
        let describe = move |_: Duration| {
            let state = shown.lock().unwrap_or_else(PoisonError::into_inner);
            Some(state.describe(start.elapsed()))
        };
        let shown = (!quiet).then(|| tokio::spawn(line::show_on_terminal(describe)));
        Self { state, shown, start }
    }

    /// Notes that a run has ended.
    pub(super) fn tell(&self, done: usize, all: usize, spec: &RunSpec) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { done, all, last: format!("{} {}", spec.backend, spec.id) };
    }

    /// Notes that the sweep has ended; returns the time that it took.
    pub(super) fn finish(&self) -> Duration {
        if let Some(shown) = &self.shown {
            shown.abort();
        }
        line::finish();
        self.start.elapsed()
    }
}

impl State {
    fn describe(&self, time: Duration) -> LineText {
        let Self { done, all, last } = self;
        let mut line = LineText::default();
        line.push(100, format!("{done} of {all} runs"));
        if let Some(one) = time.as_secs().checked_div(*done as u64) {
            let left = Duration::from_secs(one * all.saturating_sub(*done) as u64);
            line.push(90, format!("{:#} left", DisplayDuration(left)));
        }
        line.push_name(last);
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_runs_that_are_done() {
        let state = State { done: 3, all: 12, last: "sim r3".into() };
        let line = state.describe(Duration::from_secs(30)).to_string();
        assert_eq!(line, "3 of 12 runs  90 s left  sim r3");
        let state = State { done: 0, all: 12, last: String::new() };
        assert!(state.describe(Duration::from_secs(30)).to_string().starts_with("0 of 12 runs"));
    }
}
