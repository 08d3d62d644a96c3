//! How far a transfer is, how fast it goes, how long it will take.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use punctual::{Bitrate, Socket};
use punctual_units::{DisplayBytes, DisplayDuration, one_line};
use tokio::task::JoinHandle;

use crate::live::{LineText, line};

/// Watches a transfer.
#[derive(Debug)]
pub(crate) struct Progress {
    state: Arc<Mutex<State>>,
    /// The task that shows the progress, and holds the socket; `None` if nothing is shown.
    shown: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    /// Bytes in all, as far as they are known.
    total: Option<u64>,
    /// Bytes that were handed over, or need not go.
    done: u64,
    /// Those that were handed over.
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
    /// Begins to show how sending over `socket` is, unless `quiet`: what the other end has
    /// acknowledged is over the link, and no more.
    pub(crate) fn of_sender(total: u64, socket: &Socket, quiet: bool) -> Self {
        let socket = socket.clone();
        Self::start(Some(total), quiet, move || socket.statistics().send_buffer_bytes)
    }

    /// Begins to show how receiving is, unless `quiet`.
    pub(crate) fn of_receiver(quiet: bool) -> Self {
        Self::start(None, quiet, || 0)
    }

    /// `waiting` tells how many of the bytes that were handed over are not over the link.
    fn start(total: Option<u64>, quiet: bool, waiting: impl Fn() -> u64 + Send + 'static) -> Self {
        let start = Instant::now();
        let state = Arc::new(Mutex::new(State {
            total,
            done: 0,
            carried: 0,
            file: String::new(),
            files: 0,
            same: 0,
            problems: 0,
            start,
            marks: VecDeque::from([(start, 0)]),
        }));
        let shown = (!quiet).then(|| {
            let state = Arc::clone(&state);
            tokio::spawn(line::show(move |_| {
                // Asked first: what is handed over meanwhile is not over the link either.
                let waiting = waiting();
                lock(&state).describe(Instant::now(), waiting)
            }))
        });
        Self { state, shown }
    }

    /// More was announced.
    pub(crate) fn expect(&self, bytes: u64) {
        let mut state = self.lock();
        state.total = Some(state.total.unwrap_or(0) + bytes);
    }

    /// A file begins.
    pub(crate) fn begin(&self, file: &str) {
        self.lock().file = one_line(file).into_owned();
    }

    /// These bytes came, or were handed over to be sent.
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
            "{}, {:.1} in {:#} ({:#})",
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
        lock(&self.state)
    }
}

impl Drop for Progress {
    /// Nothing is shown any more of a transfer that is over, and its socket is let go, with what
    /// waits in its buffers.
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
    /// The progress at `now`, while `waiting` bytes still wait to be acknowledged.
    fn describe(&mut self, now: Instant, waiting: u64) -> Option<LineText> {
        // The protocol's own bytes wait as well, at the start and at the end more of them than of
        // the files.
        let done = self.done.saturating_sub(waiting);
        let carried = self.carried.saturating_sub(waiting);
        self.marks.push_back((now, carried));
        while self.marks.len() > 2 && now - self.marks[1].0 > RATE_SPAN {
            self.marks.pop_front();
        }
        if self.file.is_empty() {
            return None;
        }
        let (since, before) = *self.marks.front()?;
        let rate = Bitrate::of(carried.saturating_sub(before), now - since);
        let mut line = LineText::default();
        let shown = DisplayBytes(done);
        match self.total {
            Some(total) => line.push(100, format!("{shown:.1} of {:.1}", DisplayBytes(total))),
            None => line.push(100, format!("{shown:.1}")),
        }
        line.push(80, format!("{rate:#}"));
        if let Some(left) = self.total.and_then(|total| total.checked_sub(done))
            && left > 0
            && rate > Bitrate::ZERO
        {
            let seconds = left.saturating_mul(8).div_ceil(rate.as_bits_per_sec());
            line.push(90, format!("{:#} left", DisplayDuration(Duration::from_secs(seconds))));
        }
        line.push_name(&self.file);
        Some(line)
    }
}

/// What the rate is taken from.
const RATE_SPAN: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 MB, of which 40 were there before.
    fn resumed(start: Instant) -> State {
        State {
            total: Some(100_000_000),
            done: 40_000_000,
            carried: 0,
            file: "a.ts".into(),
            files: 0,
            same: 0,
            problems: 0,
            start,
            marks: VecDeque::from([(start, 0)]),
        }
    }

    #[test]
    fn rate_and_time_left_are_those_of_the_last_seconds() {
        let start = Instant::now();
        let mut state = resumed(start);
        for second in 1..=20 {
            // 1 MB a second, and from the tenth second on 2.
            let bytes = if second > 10 { 2_000_000 } else { 1_000_000 };
            state.carried += bytes;
            state.done += bytes;
            state.describe(start + Duration::from_secs(second), 0);
        }
        let text = state.describe(start + Duration::from_secs(20), 0).unwrap().to_string();
        assert_eq!(text, "70.0 MB of 100.0 MB  16 Mb/s  15 s left  a.ts");
    }

    #[tokio::test]
    async fn what_shows_a_transfer_ends_with_it_and_lets_its_socket_go() {
        let socket = Arc::new(());
        let held = Arc::clone(&socket);
        let progress = Progress::start(None, false, move || {
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
    fn what_nobody_has_acknowledged_does_not_count() {
        let start = Instant::now();
        let mut state = resumed(start);
        // All is handed over at once, and goes at 8 Mb/s.
        state.carried += 60_000_000;
        state.done += 60_000_000;
        for second in 0..=20 {
            state.describe(start + Duration::from_secs(second), 60_000_000 - second * 1_000_000);
        }
        let text = state.describe(start + Duration::from_secs(20), 40_000_000).unwrap().to_string();
        assert_eq!(text, "60.0 MB of 100.0 MB  8 Mb/s  40 s left  a.ts");
        // Nothing is left, and no time is told for it.
        let text = state.describe(start + Duration::from_secs(60), 0).unwrap().to_string();
        assert!(text.starts_with("100.0 MB of 100.0 MB  ") && !text.contains("left"), "{text}");
    }
}
