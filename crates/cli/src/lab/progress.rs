//! The progress of a sweep: runs done, and the time that is left.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use punctual_lab::run::RunSpec;

/// A bar on a terminal.
pub(super) struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// The bar of a sweep of `runs` runs.
    pub(super) fn new(runs: usize, quiet: bool) -> Self {
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(runs as u64) };
        let template = "{elapsed_precise}  {pos} of {len} runs  {eta} left  {wide_msg}";
        bar.set_style(ProgressStyle::with_template(template).expect("the template is sound"));
        bar.enable_steady_tick(Duration::from_millis(200));
        Self { bar, start: Instant::now() }
    }

    /// Notes that a run has ended.
    pub(super) fn tell(&self, done: usize, all: usize, spec: &RunSpec) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
        self.bar.set_message(format!("{} {}", spec.backend, spec.id));
    }

    /// Notes that the sweep has ended; returns the time that it took.
    pub(super) fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.start.elapsed()
    }
}
