//! Many alarms at one timer of the system.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};

use punctual_units::Instant;
use slab::Slab;
use tokio::runtime::{Handle, Id};
use tokio::task::AbortHandle;

use super::system::SystemTimer;
use crate::clock::now;

/// An alarm at the timer that others of its runtime use too.
#[derive(Debug)]
pub(super) struct CommonAlarm {
    server: Arc<Server>,
    key: usize,
}

/// The common alarms of a runtime, and the task that lets them go off. It ends with the last alarm.
#[derive(Debug)]
struct Server {
    clock: Arc<Clock>,
    task: AbortHandle,
}

/// The servers of all runtimes.
static SERVERS: Mutex<Vec<(Id, Weak<Server>)>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Clock {
    timer: SystemTimer,
    alarms: Mutex<Alarms>,
}

#[derive(Debug, Default)]
struct Alarms {
    all: Slab<State>,
    /// The alarms that are set, the earliest first.
    deadlines: BTreeSet<(Instant, usize)>,
    /// The time to which the timer is set.
    timer: Option<Instant>,
}

#[derive(Debug, Default)]
struct State {
    deadline: Option<Instant>,
    has_gone_off: bool,
    /// The task that waits.
    waker: Option<Waker>,
}

impl CommonAlarm {
    /// An alarm of the current runtime, which is not set.
    pub(super) fn new() -> io::Result<Self> {
        let server = Server::current()?;
        let key = server.clock.lock().all.insert(State::default());
        Ok(Self { server, key })
    }

    pub(super) fn set(&self, deadline: Instant) {
        let mut alarms = self.server.clock.lock();
        let before = alarms.all[self.key].deadline.replace(deadline);
        if before == Some(deadline) {
            return;
        }
        if let Some(before) = before {
            alarms.deadlines.remove(&(before, self.key));
        }
        alarms.deadlines.insert((deadline, self.key));
        self.server.clock.set_timer(&mut alarms);
    }

    pub(super) fn poll_gone_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut alarms = self.server.clock.lock();
        let state = &mut alarms.all[self.key];
        if !state.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.waker = Some(cx.waker().clone());
        }
        match std::mem::take(&mut state.has_gone_off) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }
}

impl Drop for CommonAlarm {
    fn drop(&mut self) {
        let mut alarms = self.server.clock.lock();
        let state = alarms.all.remove(self.key);
        if let Some(deadline) = state.deadline {
            alarms.deadlines.remove(&(deadline, self.key));
        }
        // Dropped without the lock: a waker may own an alarm.
        drop(alarms);
        drop(state);
    }
}

impl Server {
    /// The server of the current runtime, which is started if there is none.
    fn current() -> io::Result<Arc<Self>> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
        servers.retain(|(_, server)| server.strong_count() > 0);
        let found = servers.iter().find(|(id, _)| *id == runtime.id());
        if let Some(server) = found.and_then(|(_, server)| server.upgrade()) {
            return Ok(server);
        }
        let clock = Arc::new(Clock { timer: SystemTimer::new()?, alarms: Mutex::default() });
        let task = runtime.spawn(Arc::clone(&clock).serve()).abort_handle();
        let server = Arc::new(Self { clock, task });
        servers.push((runtime.id(), Arc::downgrade(&server)));
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Clock {
    async fn serve(self: Arc<Self>) {
        let mut wakers = Vec::new();
        poll_fn::<(), _>(|cx| {
            loop {
                ready!(self.timer.poll_gone_off(cx));
                self.let_go_off(&mut wakers);
            }
        })
        .await;
    }

    /// Lets the alarms go off whose deadlines have passed.
    fn let_go_off(&self, wakers: &mut Vec<Waker>) {
        let mut alarms = self.lock();
        let now = now();
        alarms.timer = None;
        while let Some(&(deadline, key)) = alarms.deadlines.first()
            && deadline <= now
        {
            alarms.deadlines.pop_first();
            let state = &mut alarms.all[key];
            (state.deadline, state.has_gone_off) = (None, true);
            wakers.extend(state.waker.clone());
        }
        self.set_timer(&mut alarms);
        drop(alarms);
        wakers.drain(..).for_each(Waker::wake);
    }

    /// Lets the timer go off with the earliest alarm, if it does not go off before.
    fn set_timer(&self, alarms: &mut Alarms) {
        let Some(&(deadline, _)) = alarms.deadlines.first() else { return };
        if alarms.timer.is_none_or(|timer| deadline < timer) {
            alarms.timer = Some(deadline);
            self.timer.set(deadline);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Alarms> {
        self.alarms.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn wait(alarm: &CommonAlarm) -> Instant {
        poll_fn(|cx| alarm.poll_gone_off(cx)).await;
        now()
    }

    #[tokio::test]
    async fn alarms_go_off_each_at_its_time_at_one_timer() {
        let start = now();
        let alarms: Vec<_> = (0..50_u32).map(|_| CommonAlarm::new().unwrap()).collect();
        assert!(alarms.iter().all(|alarm| Arc::ptr_eq(&alarm.server, &alarms[0].server)));
        let tasks: Vec<_> = (0_u32..)
            .zip(alarms)
            .map(|(number, alarm)| {
                let at = start + Duration::from_micros(200) * (number * 37 % 50);
                alarm.set(at + Duration::from_secs(1_000));
                alarm.set(at);
                tokio::spawn(async move { assert!(wait(&alarm).await >= at) })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        assert!(now() < start + Duration::from_secs(100), "not at their first times");
    }

    #[tokio::test]
    async fn an_alarm_that_is_dropped_or_set_later_holds_no_other_up() {
        let [first, second, third] = [(); 3].map(|()| CommonAlarm::new().unwrap());
        let start = now();
        first.set(start + Duration::from_millis(1));
        second.set(start + Duration::from_millis(2));
        third.set(start + Duration::from_millis(3));
        drop(first);
        second.set(start + Duration::from_secs(1_000));
        assert!(wait(&third).await >= start + Duration::from_millis(3));
        second.set(Instant::ORIGIN);
        wait(&second).await;
        assert!(now() < start + Duration::from_secs(100));
    }

    #[test]
    fn a_server_ends_with_its_last_alarm_and_its_runtime() {
        for _ in 0..3 {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let alarm = CommonAlarm::new().unwrap();
                alarm.set(now());
                wait(&alarm).await;
                let server = Arc::downgrade(&alarm.server);
                drop(alarm);
                assert!(server.upgrade().is_none());
            });
        }
        assert!(CommonAlarm::new().is_err(), "outside a runtime");
    }
}
