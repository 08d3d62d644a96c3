//! How far a transfer is, how fast it goes, how long it will take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::Bitrate;
use punctual_units::{DisplayBytes, DisplayDuration};

use crate::live::line;

/// Watches a transfer.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Bytes in all, as far as they are known.
    total: Option<u64>,
    /// Bytes that are over the link, or need not go.
    done: u64,
    /// Those that went.
    carried: u64,
    file: String,
    files: u64,
    same: u64,
    problems: u64,
    start: Instant,
    /// What was carried at these times, for the rate.
    marks: VecDeque<(Instant, u64)>,
}

impl Progress {
    /// Begins to show how things are, unless `quiet`.
    pub(crate) fn start(total: Option<u64>, quiet: bool) -> Self {
        let start = Instant::now();
        let progress = Self(Arc::new(Mutex::new(State {
            total,
            done: 0,
            carried: 0,
            file: String::new(),
            files: 0,
            same: 0,
            problems: 0,
            start,
            marks: VecDeque::from([(start, 0)]),
        })));
        if !quiet {
            let shown = progress.clone();
            tokio::spawn(line::show(move |_| shown.lock().describe(Instant::now())));
        }
        progress
    }

    /// More was announced.
    pub(crate) fn expect(&self, bytes: u64) {
        let mut state = self.lock();
        state.total = Some(state.total.unwrap_or(0) + bytes);
    }

    /// A file begins.
    pub(crate) fn begin(&self, file: &str) {
        file.clone_into(&mut self.lock().file);
    }

    /// These bytes were carried.
    pub(crate) fn carried(&self, bytes: usize) {
        let mut state = self.lock();
        state.done += bytes as u64;
        state.carried += bytes as u64;
    }

    /// These bytes need not be carried.
    pub(crate) fn spared(&self, bytes: u64) {
        self.lock().done += bytes;
    }

    /// A file is whole.
    pub(crate) fn whole(&self) {
        self.lock().files += 1;
    }

    /// A file was there already, with the same contents.
    pub(crate) fn same(&self) {
        self.lock().same += 1;
    }

    /// Something is not as it should be; the rest goes on.
    pub(crate) fn problem(&self, what: &str) {
        tracing::error!("{what}");
        self.lock().problems += 1;
    }

    /// How many problems there were.
    pub(crate) fn problems(&self) -> u64 {
        self.lock().problems
    }

    /// What was done, for people.
    pub(crate) fn summary(&self) -> String {
        let state = self.lock();
        let time = state.start.elapsed();
        let files =
            |count: u64| if count == 1 { "1 file".into() } else { format!("{count} files") };
        let mut text = format!(
            "{}, {:.1} in {:.1} ({:.1})",
            files(state.files),
            DisplayBytes(state.carried),
            DisplayDuration(Duration::from_millis(time.as_millis().try_into().unwrap_or(0))),
            Bitrate::of(state.carried, time.max(Duration::from_millis(1))),
        );
        if state.same > 0 {
            text += &format!("; {} there already", files(state.same));
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn describe(&mut self, now: Instant) -> Option<String> {
        self.marks.push_back((now, self.carried));
        while self.marks.len() > 2 && now - self.marks[1].0 > RATE_SPAN {
            self.marks.pop_front();
        }
        if self.file.is_empty() {
            return None;
        }
        let (since, before) = *self.marks.front()?;
        let rate = Bitrate::of(self.carried - before, now - since);
        let mut text = match self.total {
            Some(total) => format!("{:.1} of {:.1}", DisplayBytes(self.done), DisplayBytes(total)),
            None => format!("{:.1}", DisplayBytes(self.done)),
        };
        text += &format!("  {rate:.1}");
        if let Some(left) = self.total.and_then(|total| total.checked_sub(self.done))
            && rate > Bitrate::ZERO
        {
            let seconds = left.saturating_mul(8).div_ceil(rate.as_bits_per_sec());
            text += &format!("  {:.0} left", DisplayDuration(Duration::from_secs(seconds)));
        }
        Some(format!("{text}  {}", self.file))
    }
}

/// What the rate is taken from.
const RATE_SPAN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let mut state = State {
            total: Some(100_000_000),
            done: 40_000_000,
            carried: 0,
            file: "a.ts".into(),
            files: 0,
            same: 0,
            problems: 0,
            start,
            marks: VecDeque::from([(start, 0)]),
        };
        for second in 1..=20 {
            // 1 MB a second, and from the tenth second on 2.
            let bytes = if second > 10 { 2_000_000 } else { 1_000_000 };
            state.carried += bytes;
            state.done += bytes;
            state.describe(start + Duration::from_secs(second));
        }
        let text = state.describe(start + Duration::from_secs(20));
        assert_eq!(text.as_deref(), Some("70.0 MB of 100.0 MB  16.0 Mb/s  15 s left  a.ts"));
    }
}
