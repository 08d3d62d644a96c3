//! The progress of a transfer on the terminal: bytes, rate, time left.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::{Bitrate, Gathered, Socket};
use punctual_file::{Event, Observer, Progress};
use punctual_units::{DisplayBytes, DisplayDuration, grouped, one_line};
use tokio::task::JoinHandle;

use crate::line::{self, LineText};

/// Observes a transfer and shows its progress.
#[derive(Debug)]
pub(crate) struct ShownProgress {
    state: Arc<Mutex<State>>,
    /// The task that shows the progress, and holds the socket; `None` if nothing is shown.
    shown: Option<JoinHandle<()>>,
    /// The log of problems, of which the other end can cause any number.
    problems: Gathered,
}

#[derive(Debug)]
struct State {
    progress: Progress,
    start: Instant,
    /// The bytes that had been carried at these times, for the rate.
    marks: VecDeque<(Instant, u64)>,
}

impl ShownProgress {
    /// Begins to show the progress of sending over `socket`, unless `quiet`. Only bytes that the
    /// other end has acknowledged count.
    pub(crate) fn of_sender(total: u64, socket: &Socket, quiet: bool) -> Self {
        let socket = socket.clone();
        let waiting = move || socket.statistics().send_buffer_bytes;
        Self::start(Progress::of_sender(total), quiet, waiting)
    }

    /// Begins to show the progress of receiving, unless `quiet`.
    pub(crate) fn of_receiver(quiet: bool) -> Self {
        Self::start(Progress::default(), quiet, || 0)
    }

    /// `waiting` gives the number of bytes that were handed over and not acknowledged yet.
    fn start(progress: Progress, quiet: bool, waiting: impl Fn() -> u64 + Send + 'static) -> Self {
        let state = Arc::new(Mutex::new(State::new(progress, Instant::now())));
        let shown = (!quiet).then(|| {
            let state = Arc::clone(&state);
            tokio::spawn(line::show(move |_| {
                // Read first: bytes that are handed over meanwhile are not acknowledged either.
                let waiting = waiting();
                lock(&state).describe(Instant::now(), waiting)
            }))
        });
        let problems = Gathered::new(PROBLEMS, |more| {
            tracing::error!("… and {} more files in the last second", grouped(more));
        });
        Self { state, shown, problems }
    }

    /// The number of files that are there.
    pub(crate) fn files(&self) -> u64 {
        let State { progress, .. } = &*self.lock();
        progress.completed + progress.unchanged
    }

    /// The number of problems.
    pub(crate) fn problems(&self) -> u64 {
        self.lock().progress.problems
    }

    /// The result of the transfer, for people.
    pub(crate) fn summary(&self) -> String {
        let State { progress, start, .. } = &*self.lock();
        let time = start.elapsed();
        let files =
            |count: u64| if count == 1 { "1 file".into() } else { format!("{count} files") };
        let mut text = format!(
            "{}, {:.1} in {:#} ({:#})",
            files(progress.completed),
            DisplayBytes(progress.carried),
            DisplayDuration(Duration::from_millis(time.as_millis().try_into().unwrap_or(0))),
            Bitrate::of(progress.carried, time.max(Duration::from_millis(1))),
        );
        if progress.unchanged > 0 {
            text += &format!("; {} there already", files(progress.unchanged));
        }
        text
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl Observer for ShownProgress {
    fn observe(&self, event: Event<'_>) {
        if let Event::Problem(problem) = event {
            self.problems.say(|| tracing::error!("{problem}"));
        }
        self.lock().progress.note(event);
    }
}

impl Drop for ShownProgress {
    /// Ends the task that shows the progress, which frees the socket and its buffers.
    fn drop(&mut self) {
        if let Some(shown) = &self.shown {
            shown.abort();
        }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn new(progress: Progress, start: Instant) -> Self {
        Self { progress, start, marks: VecDeque::from([(start, 0)]) }
    }

    /// The progress at `now`, while `waiting` bytes still wait to be acknowledged.
    fn describe(&mut self, now: Instant, waiting: u64) -> Option<LineText> {
        let Progress { total, done, carried, compared, file, .. } = &self.progress;
        // The send buffer also has bytes of the protocol, and at the start and at the end more of
        // them than of the files.
        let done = done.saturating_sub(waiting);
        let carried = carried.saturating_sub(waiting);
        self.marks.push_back((now, carried));
        while self.marks.len() > 2 && now - self.marks[1].0 > RATE_SPAN {
            self.marks.pop_front();
        }
        if file.is_empty() {
            return None;
        }
        if *compared > 0 {
            let mut line = LineText::default();
            let compared = DisplayBytes(*compared);
            line.push(100, format!("comparing what is there, {compared:.1} so far"));
            line.push_name(&one_line(file));
            return Some(line);
        }
        let (since, before) = *self.marks.front()?;
        let rate = Bitrate::of(carried.saturating_sub(before), now - since);
        let mut line = LineText::default();
        let shown = DisplayBytes(done);
        match total {
            Some(total) => line.push(100, format!("{shown:.1} of {:.1}", DisplayBytes(*total))),
            None => line.push(100, format!("{shown:.1}")),
        }
        line.push(80, format!("{rate:#}"));
        if let Some(left) = total.and_then(|total| total.checked_sub(done))
            && left > 0
            && rate > Bitrate::ZERO
        {
            let seconds = left.saturating_mul(8).div_ceil(rate.as_bits_per_sec());
            line.push(90, format!("{:#} left", DisplayDuration(Duration::from_secs(seconds))));
        }
        line.push_name(&one_line(file));
        Some(line)
    }
}

/// Problems that are logged one by one; of masses the rest is counted.
const PROBLEMS: u32 = 1_000;

/// The time over which the rate is averaged.
const RATE_SPAN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 MB, 40 of which were there before.
    fn resumed(start: Instant) -> State {
        let progress =
            Progress { done: 40_000_000, file: "a.ts".into(), ..Progress::of_sender(100_000_000) };
        State::new(progress, start)
    }

    #[test]
    fn rate_and_time_left_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let mut state = resumed(start);
        for second in 1..=20 {
            // 1 MB a second, and from the tenth second on 2.
            let bytes = if second > 10 { 2_000_000 } else { 1_000_000 };
            state.progress.note(Event::Carried(bytes));
            state.describe(start + Duration::from_secs(second), 0);
        }
        let text = state.describe(start + Duration::from_secs(20), 0).unwrap().to_string();
        assert_eq!(text, "70.0 MB of 100.0 MB  16 Mb/s  15 s left  a.ts");
    }

    #[test]
    fn the_line_tells_how_much_of_a_file_was_compared() {
        let start = Instant::now();
        let mut state = resumed(start);
        state.progress.note(Event::Compared(3_000_000));
        state.progress.note(Event::Compared(1_000_000));
        let text = state.describe(start + Duration::from_secs(1), 0).unwrap().to_string();
        assert_eq!(text, "comparing what is there, 4.0 MB so far  a.ts");
        state.progress.note(Event::Carried(1));
        let text = state.describe(start + Duration::from_secs(2), 0).unwrap().to_string();
        assert!(text.starts_with("40.0 MB of"), "{text}");
    }

    #[tokio::test]
    async fn the_line_ends_with_its_transfer_and_frees_the_socket() {
        let socket = Arc::new(());
        let held = Arc::clone(&socket);
        let progress = ShownProgress::start(Progress::default(), false, move || {
            let _socket = &held;
            0
        });
        assert_eq!(Arc::strong_count(&socket), 2);
        drop(progress);
        while Arc::strong_count(&socket) > 1 {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn bytes_without_an_acknowledgement_do_not_count() {
        let start = Instant::now();
        let mut state = resumed(start);
        // Everything is handed over at once, and leaves at 8 Mb/s.
        state.progress.note(Event::Carried(60_000_000));
        for second in 0..=20 {
            state.describe(start + Duration::from_secs(second), 60_000_000 - second * 1_000_000);
        }
        let text = state.describe(start + Duration::from_secs(20), 40_000_000).unwrap().to_string();
        assert_eq!(text, "60.0 MB of 100.0 MB  8 Mb/s  40 s left  a.ts");
        // Nothing is left, and no time is shown.
        let text = state.describe(start + Duration::from_secs(60), 0).unwrap().to_string();
        assert!(text.starts_with("100.0 MB of 100.0 MB  ") && !text.contains("left"), "{text}");
    }
}
