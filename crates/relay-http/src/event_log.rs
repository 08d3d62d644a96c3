//! The latest events, kept for those who come later or come back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::report::{Event, EventKind, Timestamp};

/// The latest events of a relay, and a channel for those to come.
///
/// Events have numbers, and the log has a name of its run, so that a client that comes back after a
/// restart of the relay gets no wrong continuation.
pub struct EventLog {
    run: String,
    kept: Mutex<Kept>,
    to_followers: broadcast::Sender<Arc<Event>>,
}

struct Kept {
    events: VecDeque<Arc<Event>>,
    next_id: u64,
}

/// The events from a place in the log on.
pub struct Following {
    /// Whether events between the place and `past` are not kept any more.
    pub has_gap: bool,
    /// The events that have happened already.
    pub past: Vec<Arc<Event>>,
    /// The events to come. A receiver that falls behind by 1,000 events loses the oldest.
    pub to_come: broadcast::Receiver<Arc<Event>>,
}

impl EventLog {
    /// A log of a relay that started at this time.
    pub fn new(started_at: Timestamp) -> Self {
        let run: String = started_at.to_string().chars().filter(char::is_ascii_digit).collect();
        let kept = Mutex::new(Kept { events: VecDeque::new(), next_id: 1 });
        Self { run, kept, to_followers: broadcast::Sender::new(KEPT) }
    }

    /// Adds an event, and gives its number.
    pub fn push(
        &self,
        at: Timestamp,
        kind: EventKind,
        stream: Option<&str>,
        connection: Option<&str>,
        text: impl Into<String>,
    ) -> u64 {
        let mut kept = self.lock();
        let id = kept.next_id;
        kept.next_id += 1;
        let event = Arc::new(Event {
            id,
            at,
            kind,
            stream: stream.map(str::to_owned),
            connection: connection.map(str::to_owned),
            text: text.into(),
        });
        if kept.events.len() == KEPT {
            kept.events.pop_front();
        }
        kept.events.push_back(Arc::clone(&event));
        // Nobody may follow. Sent under the lock, so that followers get events in order.
        let _ = self.to_followers.send(event);
        id
    }

    /// The place of an event, as `Last-Event-ID` has it.
    pub fn place(&self, id: u64) -> String {
        format!("{}-{id}", self.run)
    }

    /// The events after a place of [`EventLog::place`]; without a place this number of the latest
    /// events, and those to come.
    pub fn follow(&self, after: Option<&str>, latest: usize) -> Following {
        let kept = self.lock();
        let to_come = self.to_followers.subscribe();
        let Some(after) = after else {
            let skipped = kept.events.len().saturating_sub(latest);
            let past = kept.events.iter().skip(skipped).cloned().collect();
            return Following { has_gap: false, past, to_come };
        };
        let id = after
            .split_once('-')
            .filter(|(run, _)| *run == self.run)
            .and_then(|(_, id)| id.parse::<u64>().ok())
            .filter(|id| *id < kept.next_id);
        let oldest = kept.next_id - kept.events.len() as u64;
        let has_gap = id.is_none_or(|id| id + 1 < oldest);
        let past = kept.events.iter().filter(|event| id.is_none_or(|id| event.id > id));
        Following { has_gap, past: past.cloned().collect(), to_come }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The number of events that are kept.
const KEPT: usize = 1_000;

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn log_at(second: u64) -> EventLog {
        EventLog::new((UNIX_EPOCH + Duration::from_secs(second)).into())
    }

    fn push(log: &EventLog, count: usize) {
        for _ in 0..count {
            log.push(UNIX_EPOCH.into(), EventKind::Connect, Some("a"), None, "a caller connected");
        }
    }

    #[test]
    fn a_client_that_comes_back_gets_the_events_that_it_missed() {
        let log = log_at(1);
        push(&log, 5);
        let again = log.follow(Some(&log.place(3)), 0);
        assert!(!again.has_gap);
        assert_eq!(again.past.iter().map(|it| it.id).collect::<Vec<_>>(), [4, 5]);
        assert!(log.follow(Some(&log.place(5)), 0).past.is_empty());
        assert!(log.follow(None, 0).past.is_empty());
        assert_eq!(log.follow(None, 2).past.iter().map(|it| it.id).collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn events_that_are_not_kept_any_more_are_a_gap() {
        let log = log_at(1);
        push(&log, KEPT + 10);
        assert_eq!(log.follow(None, 2 * KEPT).past.len(), KEPT);
        assert!(!log.follow(Some(&log.place(10)), 0).has_gap, "event 11 is the oldest");
        assert!(log.follow(Some(&log.place(9)), 0).has_gap);
    }

    #[test]
    fn a_place_of_another_run_is_a_gap() {
        let (old, new) = (log_at(1), log_at(2));
        push(&old, 3);
        push(&new, 5);
        for place in [&*old.place(3), "", "nonsense", "20260101-99", &new.place(77)] {
            let following = new.follow(Some(place), 0);
            assert!(following.has_gap && following.past.len() == 5, "{place}");
        }
    }
}
