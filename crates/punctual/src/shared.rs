//! A UDP port, shared by its driver and its sockets.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Duration;

use punctual_io::{Alarm, UdpSocket};
use punctual_proto::{ConnectionId, Shard};
use punctual_units::Instant;

use crate::machine::Machine;
use crate::outbox::Outbox;
use crate::schedule::DriverAction;
use crate::signals::Signals;
use crate::state::State;
use crate::statistics::PortStatistics;
use crate::transmitter::Transmitter;

/// A UDP port, shared by its driver and its sockets.
///
/// The lock of the state is held only for short computations: never across an await, and across no
/// system call except the one that sets the alarm. That of the transmitter is held while datagrams
/// are sent.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) udp: Arc<UdpSocket>,
    pub(crate) alarm: Alarm,
    shard: Shard,
    /// All shards of the port by their index, including this one; empty if it is the only one.
    siblings: OnceLock<Vec<Weak<Self>>>,
    /// Whether this shard has no work left. Once set, it stays set.
    finished: AtomicBool,
    state: Mutex<State>,
    transmitter: Mutex<Transmitter>,
    statistics: Arc<Mutex<PortStatistics>>,
}

impl Shared {
    pub(crate) fn new(
        udp: Arc<UdpSocket>,
        alarm: Alarm,
        machine: Machine,
        shard: Shard,
        coalesce: Duration,
    ) -> Self {
        let statistics = Arc::default();
        let transmitter = Transmitter::new(Arc::clone(&udp), Arc::clone(&statistics));
        Self {
            udp,
            alarm,
            shard,
            siblings: OnceLock::new(),
            finished: AtomicBool::new(false),
            state: Mutex::new(State::new(machine, coalesce)),
            transmitter: Mutex::new(transmitter),
            statistics,
        }
    }

    /// Sets the siblings of all `shards` of a port.
    pub(crate) fn set_siblings(shards: &[&Arc<Self>]) {
        for shard in shards {
            let siblings = shards.iter().map(|shard| Arc::downgrade(shard)).collect();
            shard.siblings.get_or_init(|| siblings);
        }
    }

    /// The other shard that owns a datagram's connection, if it is not this one: the kernel
    /// distributes datagrams by address, and a peer's address may have changed.
    pub(crate) fn other_owner(&self, datagram: &[u8]) -> Option<Arc<Self>> {
        let siblings = self.siblings.get()?;
        let owner = self.shard.other_owner(datagram)?;
        siblings.get(usize::try_from(owner).ok()?)?.upgrade()
    }

    /// Notes that this shard has no work left, and returns whether this holds for all shards of the
    /// port. Until it does, each shard keeps passing datagrams that the kernel gave it to their
    /// owners. The last shard wakes the others.
    pub(crate) fn finish(&self) -> bool {
        // Set before the check, so that of two shards that finish at the same time at least one
        // sees both.
        self.finished.store(true, Ordering::SeqCst);
        let siblings = self.siblings.get().into_iter().flatten().filter_map(Weak::upgrade);
        let siblings: Vec<_> = siblings.collect();
        let all = siblings.iter().all(|shard| shard.finished.load(Ordering::SeqCst));
        if all {
            siblings.iter().for_each(|shard| shard.call_and_wake(|_, _| ()));
        }
        all
    }

    /// Makes a call of the application under the lock. The calling thread or the driver sends what
    /// it makes due, as [`Schedule`](crate::schedule::Schedule) decides; the driver is scheduled
    /// for all other work that follows.
    pub(crate) fn call<R>(&self, call: impl FnOnce(&mut State, Instant) -> R) -> R {
        self.call_and(call, |state, now| match state.next_work() {
            Some(work) => state.schedule.advance(now, work),
            None => DriverAction::None,
        })
    }

    /// As [`call`](Self::call), for calls that cause events or must be sent at once.
    pub(crate) fn call_and_wake<R>(&self, call: impl FnOnce(&mut State, Instant) -> R) -> R {
        self.call_and(call, |state, now| state.schedule.hurry(now))
    }

    fn call_and<R>(
        &self,
        call: impl FnOnce(&mut State, Instant) -> R,
        then: impl FnOnce(&mut State, Instant) -> DriverAction,
    ) -> R {
        let mut state = self.lock();
        // Read under the lock, so that the protocol's time never runs backwards.
        let now = punctual_io::now();
        state.has_reached(now);
        let result = call(&mut state, now);
        match then(&mut state, now) {
            DriverAction::Send => self.send(state, now),
            action => self.act(state, action),
        }
        result
    }

    /// Sends what is due on the calling thread. It is left to the driver if that or another call
    /// is sending just now, or if the socket takes nothing.
    fn send(&self, mut state: MutexGuard<'_, State>, now: Instant) {
        // Waiting for the transmitter while holding the state could be a deadlock.
        let transmitter = self.transmitter.try_lock().ok().filter(|it| !it.has_backlog());
        let Some(mut transmitter) = transmitter else {
            let action = state.schedule.hurry(now);
            return self.act(state, action);
        };
        let mut outbox = OUTBOX.take();
        let all = state.take_transmits(now, self.udp.max_segments(), &mut outbox);
        let action = if all && !state.machine.has_events() {
            let work = state.next_work();
            state.schedule.sent(now, work)
        } else {
            state.schedule.hurry(now)
        };
        self.act(state, action);
        let sent = transmitter.send(&mut outbox);
        drop(transmitter);
        OUTBOX.set(outbox);
        if !sent {
            self.call_and_wake(|_, _| ());
        }
    }

    /// Does what causes the driver's next turn, and releases the lock.
    fn act(&self, state: MutexGuard<'_, State>, action: DriverAction) {
        let driver = match action {
            DriverAction::None | DriverAction::Send => None,
            DriverAction::SetAlarm(at) => {
                self.alarm.set(at);
                None
            }
            DriverAction::Wake => state.driver.clone(),
        };
        drop(state);
        if let Some(driver) = driver {
            driver.wake();
        }
    }

    /// Locks the state. A poisoned lock is used: the panic that caused it is reported where it
    /// happened.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transmitter, for as long as the result is held. It is locked before the state.
    pub(crate) fn transmitter(&self) -> MutexGuard<'_, Transmitter> {
        self.transmitter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The statistics, for as long as the result is held. They are locked after all else.
    pub(crate) fn statistics(&self) -> MutexGuard<'_, PortStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

thread_local! {
    /// The datagrams that a call sends. It is empty between calls.
    static OUTBOX: Cell<Outbox> = Cell::default();
}

/// Keeps the driver of a port running, even without connections.
#[derive(Debug)]
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub(crate) fn new(shared: &Arc<Shared>) -> Self {
        Self::adopt(shared, &mut shared.lock())
    }

    pub(crate) fn adopt(shared: &Arc<Shared>, state: &mut State) -> Self {
        state.handles += 1;
        Self(Arc::clone(shared))
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.0
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.call_and_wake(|state, _| state.handles -= 1);
    }
}

/// A connection of a port, for the socket of the application.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: ConnectionId,
    pub(crate) signals: Arc<Signals>,
}
