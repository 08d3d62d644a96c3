//! Messages that are repeated while a state lasts.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_units::Instant;

/// Gathers the messages about tries that go on failing, such as calls to a peer that is away for
/// hours: the first of each text is logged at once, and equal ones after it once a minute, and at
/// last once an hour, with their number.
///
/// ```
/// use punctual::Repeated;
///
/// let tries = Repeated::default();
/// for _ in 0..1_000 {
///     tries.say("no answer", |more| println!("no answer ({more} times more)"));
/// }
/// tries.over();
/// ```
#[derive(Debug, Default)]
pub struct Repeated(Mutex<Vec<LoggedText>>);

/// A text that was logged.
#[derive(Debug)]
struct LoggedText {
    text: String,
    /// The time from which on it is logged again.
    next: Instant,
    /// The time from one message to the next.
    pause: Duration,
    /// The messages since the last one that was logged.
    more: u64,
}

impl Repeated {
    /// Logs a message with this text by calling `say` with the number of equal ones before it that
    /// were only counted, or only counts it.
    pub fn say(&self, text: &str, say: impl FnOnce(u64)) {
        // Called without the lock.
        let more = count(&mut self.lock(), text, punctual_io::now());
        if let Some(more) = more {
            say(more);
        }
    }

    /// The state is over: the next message is logged at once.
    pub fn over(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<LoggedText>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts a message at `now`. If it is to be logged, returns the number of messages before it that
/// were only counted.
fn count(all: &mut Vec<LoggedText>, text: &str, now: Instant) -> Option<u64> {
    let Some(said) = all.iter_mut().find(|said| said.text == text) else {
        if all.len() == TEXTS {
            all.remove(0);
        }
        all.push(LoggedText { text: text.to_owned(), next: now + FIRST, pause: FIRST, more: 0 });
        return Some(0);
    };
    if now < said.next {
        said.more += 1;
        return None;
    }
    said.pause = (said.pause * 2).min(LAST);
    said.next = now + said.pause;
    Some(std::mem::take(&mut said.more))
}

/// The number of texts that are told apart: a call fails in few ways.
const TEXTS: usize = 8;

/// The time from the first message to the next one.
const FIRST: Duration = Duration::from_secs(60);

/// The longest time from one message to the next.
const LAST: Duration = Duration::from_secs(3_600);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_of_failing_calls_is_a_page_of_messages() {
        let (mut all, mut logged, mut counted) = (Vec::new(), 0, 0);
        let (day, pause) = (86_400, 3);
        for second in (0..day).step_by(pause) {
            let now = Instant::from_millis(1_000 * second as u64);
            // Two ways of failing that alternate.
            for text in ["no answer", "refused"] {
                if let Some(more) = count(&mut all, text, now) {
                    logged += 1;
                    counted += more;
                }
            }
        }
        assert!((50..70).contains(&logged), "{logged} of {}", 2 * day / pause);
        let untold: u64 = all.iter().map(|said| said.more).sum();
        assert_eq!(logged + counted + untold, (2 * day / pause) as u64);
    }

    #[test]
    fn a_message_of_a_new_state_is_logged_at_once() {
        let tries = Repeated::default();
        let mut logged = Vec::new();
        (0..3).for_each(|_| tries.say("no answer", |more| logged.push(more)));
        tries.over();
        tries.say("no answer", |more| logged.push(more));
        assert_eq!(logged, [0, 0]);
    }
}
