//! Event sets: libsrt's epoll.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

use punctual::Wakes;
use punctual_blocking::{Events, Subscriber, now};

use crate::code::{Code, Failure};
use crate::subscriptions::Subscriptions;
use crate::system_poll::SystemPoll;

/// A wait for an empty set is no error \[`SRT_EPOLL_ENABLE_EMPTY`\].
pub const ENABLE_EMPTY: i32 = 1;
/// A wait must have room for its output \[`SRT_EPOLL_ENABLE_OUTPUTCHECK`\].
pub const ENABLE_OUTPUT_CHECK: i32 = 2;

/// The time between two looks at the system's descriptors while the kernel reports events that are
/// not wanted, such as that a pipe has lost its writer; libsrt looks as often.
const SYSTEM_PAUSE: Duration = Duration::from_millis(10);
/// The time after which a thread that waits hears that its set is empty or has ended.
const LOOK: Duration = Duration::from_millis(10);

/// A set of sockets and system descriptors whose events a thread waits for.
///
/// Sockets report their changes to the set, so that a wait costs the same however many idle sockets
/// the set has.
#[derive(Debug, Default)]
pub struct EventSet {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    sockets: Subscriptions,
    system: Option<SystemPoll>,
    flags: i32,
    released: bool,
    /// Whether a thread waits at the condition variable that was not woken yet: waking takes a call
    /// of the system, and a driver raises the events of many sockets in a row.
    has_waiting: bool,
    /// The number of changes that a waiting thread must see.
    changes: u64,
    /// The number of times that a thread has looked for events.
    #[cfg(test)]
    looks: usize,
}

/// The events of a wait.
#[derive(Debug, Default)]
pub struct EventReport {
    /// Sockets with their events, in the order in which they became ready.
    pub sockets: Vec<(i32, Events)>,
    /// Whether there was no room for further sockets. They are reported the next time.
    pub more: bool,
    /// System descriptors with their events.
    pub system: Vec<(i32, Events)>,
}

impl EventReport {
    fn is_empty(&self) -> bool {
        self.sockets.is_empty() && !self.more && self.system.is_empty()
    }
}

/// The events that a wait is for.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The events of sockets.
    pub sockets: Events,
    /// The most sockets that are reported.
    pub room: usize,
    /// The events of system descriptors; `None` if they must not be in the set.
    pub system: Option<Events>,
}

impl EventSet {
    /// The numbers of the sockets in the set.
    pub(crate) fn sockets(&self) -> Vec<i32> {
        self.lock().sockets.numbers()
    }

    /// Adds a system descriptor, or changes the events that are wanted of it. Errors: that of the
    /// system.
    pub fn add_system(&self, fd: BorrowedFd<'_>, wanted: Events) -> Result<(), Failure> {
        let mut state = self.lock();
        if state.system.is_none() {
            state.system = Some(SystemPoll::new()?);
        }
        let added = state.system.as_mut().map_or(Ok(()), |system| system.add(fd, wanted));
        self.notify(&mut state);
        added
    }

    /// Changes the events that are wanted of a system descriptor. Errors: that of the system, such
    /// as that the descriptor is not in the set.
    pub fn update_system(&self, fd: BorrowedFd<'_>, wanted: Events) -> Result<(), Failure> {
        match &mut self.lock().system {
            Some(system) => system.update(fd, wanted),
            None => Err(SystemPoll::not_in_the_set()),
        }
    }

    /// Removes a system descriptor. Errors: as [`update_system`](Self::update_system).
    pub fn remove_system(&self, fd: BorrowedFd<'_>) -> Result<(), Failure> {
        let mut state = self.lock();
        let removed = match &mut state.system {
            Some(system) => system.remove(fd),
            None => Err(SystemPoll::not_in_the_set()),
        };
        self.notify(&mut state);
        removed
    }

    /// Sets flags, with a negative number none, with 0 clears all. Returns the former flags.
    pub fn set_flags(&self, flags: i32) -> i32 {
        let mut state = self.lock();
        let former = state.flags;
        match flags {
            0 => state.flags = 0,
            1.. => state.flags |= flags,
            _ => {}
        }
        former
    }

    /// Ends the set: waiting threads get an error.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        state.released = true;
        state.sockets.clear();
        self.notify(&mut state);
    }

    /// Waits until a socket or a system descriptor has one of the wanted events, at most `timeout`;
    /// `None` waits without end. The report is empty if the time has run out.
    ///
    /// Errors: the set is empty or was released; system descriptors are in it and are not wanted.
    pub fn wait(&self, wanted: Wanted, timeout: Option<Duration>) -> Result<EventReport, Failure> {
        let deadline = timeout.and_then(|timeout| now().checked_add(timeout));
        let mut state = self.lock();
        state.check(wanted)?;
        loop {
            let report = state.report(wanted);
            let expired = deadline.is_some_and(|deadline| deadline <= now());
            if !report.is_empty() || expired {
                return Ok(report);
            }
            state = self.sleep(state, deadline);
            state = self.check_again(state, wanted)?;
        }
    }

    /// Fails if there has been nothing to wait for since a while. A thread of libsrt's looks at its
    /// set every 10 ms, and programs rely on it: one thread removes the last socket, ends the set
    /// and notes this, and only then the other one asks for the reason of the failure.
    fn check_again<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        wanted: Wanted,
    ) -> Result<MutexGuard<'a, State>, Failure> {
        let end = now() + LOOK;
        loop {
            let Err(failure) = state.check(wanted) else { return Ok(state) };
            let left = end.saturating_duration_since(now());
            if left.is_zero() {
                return Err(failure);
            }
            state.has_waiting = true;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Sleeps until the set changes or until `deadline`.
    fn sleep<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        deadline: Option<Instant>,
    ) -> MutexGuard<'a, State> {
        let mut deadline = deadline;
        if state.system.as_ref().is_some_and(SystemPoll::has_unwanted) {
            let next_look = now() + SYSTEM_PAUSE;
            deadline = Some(deadline.map_or(next_look, |deadline| deadline.min(next_look)));
        } else if let Some(waiter) = state.system.as_mut().and_then(SystemPoll::waiter) {
            drop(state);
            waiter.wait(deadline);
            return self.lock();
        }
        let changes = state.changes;
        while state.changes == changes {
            state.has_waiting = true;
            let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
            state = match left {
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => break,
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state
    }

    fn notify(&self, state: &mut State) {
        if state.note_change() {
            self.changed.notify_all();
        }
    }

    /// The number of times that a thread has looked for events.
    #[cfg(test)]
    pub(crate) fn looks(&self) -> usize {
        self.lock().looks
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for EventSet {
    fn raise_together(self: &Arc<Self>, socket: i32, events: Events, wakes: &mut Wakes) {
        let mut state = self.lock();
        if state.sockets.raise(socket, events) && state.note_change() {
            wakes.add(Waker::from(Arc::clone(self)));
        }
    }

    fn clear(&self, socket: i32, events: Events) {
        self.lock().sockets.lower(socket, events);
    }

    fn wants(&self, socket: i32, events: Events) -> bool {
        self.lock().sockets.wants(socket, events)
    }

    fn subscribe(&self, socket: i32, wanted: Events, present: Events) {
        let mut state = self.lock();
        state.sockets.insert(socket, wanted, present);
        self.notify(&mut state);
    }

    fn unsubscribe(&self, socket: i32) {
        let mut state = self.lock();
        state.sockets.remove(socket);
        self.notify(&mut state);
    }
}

impl Wake for EventSet {
    fn wake(self: Arc<Self>) {
        self.changed.notify_all();
    }
}

impl State {
    /// Counts a change. Returns whether a thread waits at the condition variable that must be woken
    /// now.
    fn note_change(&mut self) -> bool {
        self.changes += 1;
        if let Some(system) = &mut self.system {
            system.wake();
        }
        std::mem::take(&mut self.has_waiting)
    }

    /// Fails if there is nothing to wait for.
    fn check(&self, wanted: Wanted) -> Result<(), Failure> {
        if self.released {
            return Err(Code::InvalidEventSet.into());
        }
        let has_system = self.system.as_ref().is_some_and(|system| !system.is_empty());
        let is_empty = self.sockets.is_empty() && !(has_system && wanted.system.is_some());
        if is_empty && self.flags & ENABLE_EMPTY == 0 {
            return Err(Code::EmptyEventSet.into());
        }
        if has_system && wanted.system.is_none() {
            return Err(Code::InvalidParameter.into());
        }
        Ok(())
    }

    /// Takes what there is to report.
    fn report(&mut self, wanted: Wanted) -> EventReport {
        #[cfg(test)]
        {
            self.looks += 1;
        }
        let (sockets, more) = self.sockets.report(wanted.sockets, wanted.room);
        let mut report = EventReport { sockets, more, system: Vec::new() };
        if let (Some(system), Some(wanted)) = (&mut self.system, wanted.system) {
            report.system = system.poll(wanted);
        }
        report
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Wanted = Wanted { sockets: Events(0x1D), room: usize::MAX, system: None };
    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    #[test]
    fn sockets_without_room_are_reported_the_next_time() {
        let set = EventSet::default();
        for socket in 1..=3 {
            set.subscribe(socket, Events::IN | Events::EDGE, Events::IN);
        }
        let wait = |room| set.wait(Wanted { room, ..ALL }, AT_ONCE).unwrap();
        let first = wait(2);
        assert_eq!((first.sockets.len(), first.more), (2, true));
        assert!(wait(0).more);
        let second = wait(2);
        assert_eq!((second.sockets, second.more), (vec![(3, Events::IN)], false));
    }

    #[test]
    fn an_empty_set_is_an_error_unless_it_is_allowed() {
        let set = EventSet::default();
        let empty = Failure::from(Code::EmptyEventSet);
        assert_eq!(set.wait(ALL, AT_ONCE).unwrap_err(), empty);
        assert_eq!(set.set_flags(ENABLE_EMPTY), 0);
        assert!(set.wait(ALL, AT_ONCE).unwrap().is_empty());
        assert_eq!(set.set_flags(0), ENABLE_EMPTY);
    }

    #[test]
    fn a_thread_wakes_up_once_for_all_sockets_of_a_turn() {
        let set = Arc::new(EventSet::default());
        (1..=3).for_each(|socket| set.subscribe(socket, Events::IN, Events::NONE));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait(ALL, None));
            while !set.lock().has_waiting {
                std::thread::yield_now();
            }
            let mut wakes = Wakes::default();
            (1..=3).for_each(|socket| set.raise_together(socket, Events::IN, &mut wakes));
            assert_eq!(set.looks(), 1, "it looked before the end of the turn");
            drop(wakes);
            assert_eq!(waiting.join().unwrap().unwrap().sockets.len(), 3);
        });
    }

    /// The error of a thread that waits while `change` is made, and how long after the change it
    /// came.
    fn error_after(change: impl FnOnce(&EventSet)) -> (Code, Duration) {
        let set = EventSet::default();
        set.subscribe(1, Events::IN, Events::NONE);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait(ALL, None));
            while !set.lock().has_waiting {
                std::thread::yield_now();
            }
            let begun = now();
            change(&set);
            (waiting.join().unwrap().unwrap_err().code, now() - begun)
        })
    }

    #[test]
    fn a_thread_that_waits_hears_a_while_later_that_its_set_is_empty() {
        let (code, after) = error_after(|set| set.unsubscribe(1));
        assert_eq!(code, Code::EmptyEventSet);
        assert!(after >= LOOK, "{after:?}");
        // A program that removes its socket and ends the set gets the second reason alone.
        let (code, after) = error_after(|set| {
            set.unsubscribe(1);
            set.release();
        });
        assert_eq!(code, Code::InvalidEventSet);
        assert!(after >= LOOK, "{after:?}");
    }

    #[test]
    fn a_socket_that_comes_in_time_keeps_a_thread_waiting() {
        let set = Arc::new(EventSet::default());
        set.subscribe(1, Events::IN, Events::NONE);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait(ALL, None));
            while !set.lock().has_waiting {
                std::thread::yield_now();
            }
            let mut state = set.lock();
            state.sockets.remove(1);
            state.sockets.insert(2, Events::IN, Events::NONE);
            set.notify(&mut state);
            drop(state);
            set.raise(2, Events::IN);
            assert_eq!(waiting.join().unwrap().unwrap().sockets, [(2, Events::IN)]);
        });
    }
}
