//! How far a sweep is, and how long it will still take.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use punctual_lab::run::RunSpec;

/// A bar on a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// Of a sweep of so many runs.
    pub(super) fn new(runs: usize, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(runs as u64) };
        let template = "{elapsed_precise}  {pos} of {len} runs  {eta} left  {wide_msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is sound"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, start: Instant::now() }
    }

    /// A run has ended.
    pub(super) fn tell(&self, done: usize, all: usize, spec: &RunSpec) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{} {}", spec.backend, spec.id));
    }

    /// The sweep has ended; tells how long it took.
    pub(super) fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.start.elapsed()
    }
}
