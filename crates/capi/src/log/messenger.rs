//! The thread that delivers the messages of the library's own threads.
//!
//! Such a thread may hold the lock of a port when it logs, and the handler may call a function that
//! takes this lock. The messenger holds no lock when it delivers, and no stream waits for it.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::line::{ERROR, Line, WrittenMessage};
use super::target::{LogTarget, is_in_handler};

/// The most messages that wait. A handler that is slower than the log loses the newest ones.
const MOST: usize = 10_000;
/// The time that the end of the library leaves to the handler.
const LAST_TIME: Duration = Duration::from_secs(1);

/// Takes messages on any thread and delivers them, in their order, on its own.
pub(super) struct Messenger {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The messages that wait, each with the target that was set when it was written.
    waiting: VecDeque<(WrittenMessage, LogTarget)>,
    /// The messages that were taken and that were delivered, ever.
    taken: u64,
    delivered: u64,
    /// The messages that were lost since the last one that was taken: too many waited.
    lost: u32,
    /// Whether the thread runs, and whether it ends once no message waits.
    is_running: bool,
    is_ending: bool,
}

impl Messenger {
    /// A messenger whose thread starts with the first message.
    pub(super) const fn new() -> Self {
        let state = State {
            waiting: VecDeque::new(),
            taken: 0,
            delivered: 0,
            lost: 0,
            is_running: false,
            is_ending: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes a message, which is delivered soon.
    pub(super) fn take(&'static self, message: WrittenMessage, target: LogTarget) {
        let mut state = self.lock();
        state.add(message, target);
        if !state.is_running {
            let thread = thread::Builder::new().name("punctual-log".to_owned());
            match thread.spawn(|| self.work()) {
                Ok(_) => state.is_running = true,
                Err(_) => state.lose_all(),
            }
        }
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until the messages that were taken are delivered and `old` is no longer used. Returns
    /// at once in the handler, which would wait for itself.
    pub(super) fn settle(&self, old: &LogTarget) {
        if is_in_handler() {
            return;
        }
        let state = self.lock();
        let last = state.taken;
        let is_busy =
            |state: &mut State| state.is_running && state.delivered < last || !old.is_only_one();
        drop(self.changed.wait_while(state, is_busy).unwrap_or_else(PoisonError::into_inner));
    }

    /// Tells those who wait that a delivery on another thread is done.
    pub(super) fn note_delivery(&self) {
        // The lock keeps the notice from coming between their look and their wait.
        drop(self.lock());
        self.changed.notify_all();
    }

    /// Delivers what waits and ends the thread; another message starts it again. A handler that
    /// takes long does not keep the library from ending.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.is_ending = state.is_running;
        self.changed.notify_all();
        if !is_in_handler() {
            let runs = |state: &mut State| state.is_running;
            let waited = self.changed.wait_timeout_while(state, LAST_TIME, runs);
            drop(waited.unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// The thread: delivers message after message.
    fn work(&self) {
        while let Some((message, target)) = self.next() {
            target.deliver(&message);
            drop(target);
            self.lock().delivered += 1;
            self.changed.notify_all();
        }
    }

    /// Waits for a message. `None` at the end.
    fn next(&self) -> Option<(WrittenMessage, LogTarget)> {
        let idle = |state: &mut State| state.waiting.is_empty() && !state.is_ending;
        let state = self.changed.wait_while(self.lock(), idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let next = state.waiting.pop_front();
        if next.is_none() {
            (state.is_running, state.is_ending) = (false, false);
            self.changed.notify_all();
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, message: WrittenMessage, target: LogTarget) {
        if self.waiting.len() >= MOST {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        let lost = std::mem::take(&mut self.lost);
        if lost > 0 {
            self.push(loss(lost), target.clone());
        }
        self.push(message, target);
    }

    /// Loses what waits, which nobody can deliver.
    fn lose_all(&mut self) {
        let count = u32::try_from(self.waiting.len()).unwrap_or(u32::MAX);
        self.lost = self.lost.saturating_add(count);
        self.waiting.clear();
        self.delivered = self.taken;
    }

    fn push(&mut self, message: WrittenMessage, target: LogTarget) {
        self.waiting.push_back((message, target));
        self.taken += 1;
    }
}

/// The message that stands for lost ones.
fn loss(count: u32) -> WrittenMessage {
    let text = &format!("{count} messages of the log were lost: its handler is too slow");
    let line = Line { level: ERROR, area: (0, "gg"), file: file!(), line: line!(), text };
    WrittenMessage::new(&line, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> WrittenMessage {
        WrittenMessage::new(&Line { level: ERROR, area: (0, "gg"), file: "a.rs", line: 7, text }, 0)
    }

    #[test]
    fn messages_that_are_lost_are_counted_where_they_are_missing() {
        let mut state = Messenger::new().state.into_inner().unwrap();
        state.waiting.resize(MOST, (WrittenMessage::default(), LogTarget::STANDARD_ERROR));
        for text in ["lost", "lost"] {
            state.add(message(text), LogTarget::STANDARD_ERROR);
        }
        state.waiting.clear();
        state.add(message("late"), LogTarget::STANDARD_ERROR);
        let texts: Vec<_> = state.waiting.iter().map(|(message, _)| &*message.text).collect();
        let [loss, late] = &texts[..] else { panic!("{texts:?}") };
        assert!(loss.contains("2 messages of the log were lost"), "{loss}");
        assert!(late.ends_with("late\n"), "{late}");
    }

    #[test]
    fn messages_that_nobody_can_deliver_are_lost_and_nobody_waits_for_them() {
        let messenger = Messenger::new();
        let mut state = messenger.lock();
        state.add(message("early"), LogTarget::STANDARD_ERROR);
        state.lose_all();
        assert_eq!((state.lost, state.taken - state.delivered), (1, 0));
        drop(state);
        messenger.settle(&LogTarget::STANDARD_ERROR);
    }
}
