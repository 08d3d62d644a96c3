//! The readiness of a socket: its events, the threads that wait for them, and its subscribers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use punctual::Wakes;

use crate::events::Events;

/// The events of one socket that hold at present.
///
/// A thread that finds nothing to do waits here; the driver of the port wakes it.
#[derive(Debug)]
pub struct Readiness<S = ()> {
    state: Mutex<State<S>>,
    /// The number of times that events were raised. It changes under the lock, and is read without
    /// it by every call.
    raised: AtomicU64,
    changed: Condvar,
}

#[derive(Debug)]
struct State<S> {
    events: Events,
    /// Whether the connection has ended, and messages are still to be received. Subscribers that
    /// wait for messages hear of the end after the last one.
    holds_break: bool,
    /// Whether a thread waits that was not woken yet: waking takes a call of the system.
    has_waiting: bool,
    subscribers: Vec<Arc<S>>,
}

/// Hears of the events of sockets, which it knows by number. `()` hears nothing.
pub trait Subscriber {
    /// The socket has new events. `wakes` wakes the threads that wait for them.
    fn raise_together(self: &Arc<Self>, socket: i32, events: Events, wakes: &mut Wakes);

    /// The socket has new events: wakes the threads that wait for them.
    fn raise(self: &Arc<Self>, socket: i32, events: Events) {
        self.raise_together(socket, events, &mut Wakes::default());
    }

    /// Events of the socket do not hold any more.
    fn clear(&self, socket: i32, events: Events);

    /// Whether it waits for one of these events of the socket.
    fn wants(&self, socket: i32, events: Events) -> bool;

    /// It subscribes to the socket, or wants other events. The `present` events hold now.
    fn subscribe(&self, socket: i32, wanted: Events, present: Events);

    /// The socket is no longer one of its own.
    fn unsubscribe(&self, socket: i32);
}

impl Subscriber for () {
    fn raise_together(self: &Arc<Self>, _: i32, _: Events, _: &mut Wakes) {}

    fn clear(&self, _: i32, _: Events) {}

    fn wants(&self, _: i32, _: Events) -> bool {
        false
    }

    fn subscribe(&self, _: i32, _: Events, _: Events) {}

    fn unsubscribe(&self, _: i32) {}
}

impl<S> Default for Readiness<S> {
    fn default() -> Self {
        let state = State {
            events: Events::NONE,
            holds_break: false,
            has_waiting: false,
            subscribers: Vec::new(),
        };
        Self { state: Mutex::new(state), raised: AtomicU64::new(0), changed: Condvar::new() }
    }
}

/// A point in time: events that were raised after it are not cleared by mistake.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Mark(u64);

impl<S: Subscriber> Readiness<S> {
    /// The present events.
    pub fn events(&self) -> Events {
        self.lock().events
    }

    /// The present point in time, for [`clear`](Self::clear).
    pub fn mark(&self) -> Mark {
        Mark(self.raised.load(Ordering::Acquire))
    }

    /// Adds events of `socket` and wakes the threads that wait.
    pub fn raise(&self, socket: i32, events: Events) {
        self.raise_together(socket, events, &mut Wakes::default());
    }

    /// Adds events of `socket` and wakes the threads that wait for it. `wakes` wakes the threads
    /// that wait for subscribers.
    pub fn raise_together(&self, socket: i32, events: Events, wakes: &mut Wakes) {
        let mut state = self.lock();
        self.count();
        let new = events & !state.events;
        state.events |= events;
        if std::mem::take(&mut state.has_waiting) {
            self.changed.notify_all();
        }
        if !new.is_empty() {
            // Subscribers are told of the end of a connection as a whole.
            let told = if new.any(Events::ERR) { state.events } else { new };
            for subscriber in &state.subscribers {
                subscriber.raise_together(socket, told, wakes);
            }
        }
    }

    /// The connection of `socket` has ended, and messages are still to be received: tells
    /// subscribers that do not wait for messages.
    pub fn raise_held(&self, socket: i32) {
        let mut state = self.lock();
        self.count();
        state.holds_break = true;
        self.changed.notify_all();
        for subscriber in &state.subscribers {
            if !subscriber.wants(socket, Events::IN) {
                subscriber.raise(socket, Events::BROKEN);
            }
        }
    }

    /// Tells the subscribers of an event that does not last.
    pub fn flash(&self, socket: i32, events: Events) {
        for subscriber in &self.lock().subscribers {
            subscriber.raise(socket, events);
        }
    }

    /// Removes events of `socket`, unless some were raised after `mark`: what the caller has seen
    /// is out of date then.
    pub fn clear(&self, socket: i32, events: Events, mark: Mark) {
        let mut state = self.lock();
        if self.mark() != mark || !state.events.any(events) {
            return;
        }
        state.events = state.events & !events;
        for subscriber in &state.subscribers {
            subscriber.clear(socket, events);
        }
    }

    /// The connection of `socket` is made anew: takes its end back.
    pub fn mend(&self, socket: i32) {
        let mut state = self.lock();
        state.holds_break = false;
        state.events = Events::NONE;
        for subscriber in &state.subscribers {
            subscriber.clear(socket, Events::BROKEN);
        }
    }

    /// Wakes the threads that wait, whatever they wait for.
    pub fn wake(&self) {
        let _state = self.lock();
        self.count();
        self.changed.notify_all();
    }

    /// Waits until something was raised after `mark`, or until `deadline`. Returns whether
    /// something was raised.
    pub fn wait(&self, mark: Mark, deadline: Option<Instant>) -> bool {
        let mut state = self.lock();
        while self.mark() == mark {
            state.has_waiting = true;
            state = match deadline {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(now());
                    if left.is_zero() {
                        return false;
                    }
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        true
    }

    /// Subscribes `subscriber` to the events of `socket`, for the `wanted` ones.
    pub fn subscribe(&self, socket: i32, subscriber: &Arc<S>, wanted: Events) {
        let mut state = self.lock();
        if !state.subscribers.iter().any(|it| Arc::ptr_eq(it, subscriber)) {
            state.subscribers.push(Arc::clone(subscriber));
        }
        let held = state.holds_break && !wanted.any(Events::IN);
        let present = if held { state.events | Events::BROKEN } else { state.events };
        subscriber.subscribe(socket, wanted, present);
    }

    /// Ends a subscription.
    pub fn unsubscribe(&self, socket: i32, subscriber: &Arc<S>) {
        let mut state = self.lock();
        state.subscribers.retain(|it| !Arc::ptr_eq(it, subscriber));
        subscriber.unsubscribe(socket);
    }

    /// Ends all subscriptions, since the socket is closed.
    pub fn unsubscribe_all(&self, socket: i32) {
        let subscribers = std::mem::take(&mut self.lock().subscribers);
        for subscriber in subscribers {
            subscriber.unsubscribe(socket);
        }
    }

    /// Counts that something was raised. Called under the lock.
    fn count(&self) {
        self.raised.fetch_add(1, Ordering::Release);
    }

    /// Whether a thread waits.
    pub fn has_waiting(&self) -> bool {
        self.lock().has_waiting
    }

    /// Whether it has subscribers.
    pub fn has_subscribers(&self) -> bool {
        !self.lock().subscribers.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time of the system's monotonic clock.
#[expect(clippy::disallowed_methods, reason = "this crate owns the clock of blocking calls")]
pub fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_event_that_came_meanwhile_is_not_cleared() {
        let readiness = Readiness::<()>::default();
        readiness.raise(1, Events::IN);
        let mark = readiness.mark();
        readiness.raise(1, Events::IN);
        readiness.clear(1, Events::IN, mark);
        assert_eq!(readiness.events(), Events::IN);
        readiness.clear(1, Events::IN, readiness.mark());
        assert_eq!(readiness.events(), Events::NONE);
    }

    #[test]
    fn a_thread_that_waits_is_woken_and_one_with_a_deadline_gives_up() {
        let readiness = Readiness::<()>::default();
        let mark = readiness.mark();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| readiness.wait(mark, None));
            readiness.raise(1, Events::OUT);
            assert!(waiting.join().unwrap());
        });
        let soon = now() + Duration::from_millis(1);
        assert!(!readiness.wait(readiness.mark(), Some(soon)));
    }
}
