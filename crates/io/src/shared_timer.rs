//! One timer for many tasks.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::poll_fn;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use punctual_units::Instant;
use slab::Slab;
use tokio::runtime::Handle;
use tokio::task::{JoinHandle, coop};

use crate::alarm::Alarm;
use crate::clock::now;

/// A timer that many tasks sleep on, each by a [`Sleeper`] of its own. All that is due within a
/// period is served by one wake-up of the process: a thousand streams of 500 messages a second need
/// a few thousand wake-ups instead of half a million.
///
/// No sleep ends before its deadline, and none more than the period after it, but for the time that
/// the machine itself takes.
#[derive(Clone, Debug)]
pub struct SharedTimer {
    shared: Arc<Shared>,
    _task: Arc<AbortOnDrop>,
}

impl SharedTimer {
    /// A timer that wakes the process at most once a `period`; zero for each deadline.
    ///
    /// # Errors
    ///
    /// This is not called within a tokio runtime, or the system has no more timers to give.
    pub fn new(period: Duration) -> io::Result<Self> {
        let runtime = Handle::try_current().map_err(io::Error::other)?;
        let shared = Arc::new(Shared {
            alarm: Alarm::new()?,
            period,
            sleeps: Mutex::new(Sleeps::default()),
        });
        let task = runtime.spawn(serve(Arc::clone(&shared)));
        Ok(Self { shared, _task: Arc::new(AbortOnDrop(task)) })
    }

    /// A sleeper for one task.
    pub fn sleeper(&self) -> Sleeper {
        let key = self.shared.lock().sleepers.insert(None);
        Sleeper { timer: self.clone(), key, ready: Instant::ORIGIN }
    }
}

/// One task's share of a [`SharedTimer`].
#[derive(Debug)]
pub struct Sleeper {
    timer: SharedTimer,
    key: usize,
    /// No sleep ends before: a period after the last one ended.
    ready: Instant,
}

impl Sleeper {
    /// Sleeps until `deadline`, which may lie in the past, and at least for a period from the end
    /// of the last sleep on: so a task that has something to do more often than once a period does
    /// all of a period at once.
    ///
    /// Cancel safe: a sleep that was dropped leaves nothing behind.
    pub async fn sleep_until(&mut self, deadline: Instant) {
        coop::consume_budget().await;
        let deadline = deadline.max(self.ready);
        poll_fn(|cx| {
            if now() >= deadline {
                return Poll::Ready(());
            }
            self.timer.shared.sleep(self.key, deadline, cx);
            Poll::Pending
        })
        .await;
        self.ready = now() + self.timer.shared.period;
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.timer.shared.lock().sleepers.remove(self.key);
    }
}

#[derive(Debug)]
struct Shared {
    alarm: Alarm,
    period: Duration,
    sleeps: Mutex<Sleeps>,
}

#[derive(Debug, Default)]
struct Sleeps {
    /// The deadlines of sleepers, earliest first. One that its sleeper has given up is passed over.
    deadlines: BinaryHeap<Reverse<(Instant, usize)>>,
    /// The deadline of each sleeper that sleeps, and its task.
    sleepers: Slab<Option<(Instant, Waker)>>,
    /// The next wake-up, if the alarm is set.
    alarm: Option<Instant>,
    /// The earliest time of the next wake-up: a period after the last one.
    ready: Instant,
}

impl Shared {
    /// Lets the task of `cx` be woken at `deadline`.
    fn sleep(&self, key: usize, deadline: Instant, cx: &Context<'_>) {
        let mut sleeps = self.lock();
        let before = sleeps.sleepers[key].replace((deadline, cx.waker().clone()));
        if before.is_none_or(|(before, _)| before != deadline) {
            sleeps.deadlines.push(Reverse((deadline, key)));
        }
        self.set_alarm(&mut sleeps, deadline);
    }

    /// Wakes the tasks whose deadlines have passed.
    fn wake_due(&self, due: &mut Vec<Waker>) {
        let mut sleeps = self.lock();
        let now = now();
        sleeps.alarm = None;
        sleeps.ready = now + self.period;
        while let Some(&Reverse((deadline, key))) = sleeps.deadlines.peek() {
            let sleeper = sleeps.sleepers.get_mut(key);
            let sleeps_on = sleeper.filter(|it| it.as_ref().is_some_and(|it| it.0 == deadline));
            if sleeps_on.is_some() && deadline > now {
                break;
            }
            due.extend(sleeps_on.and_then(Option::take).map(|(_, waker)| waker));
            sleeps.deadlines.pop();
        }
        if let Some(&Reverse((deadline, _))) = sleeps.deadlines.peek() {
            self.set_alarm(&mut sleeps, deadline);
        }
        drop(sleeps);
        due.drain(..).for_each(Waker::wake);
    }

    /// Lets the alarm go off at `deadline`, if it does not go off before.
    fn set_alarm(&self, sleeps: &mut Sleeps, deadline: Instant) {
        let at = deadline.max(sleeps.ready);
        if sleeps.alarm.is_none_or(|alarm| at < alarm) {
            sleeps.alarm = Some(at);
            self.alarm.set(at);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Sleeps> {
        self.sleeps.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task behind a timer.
async fn serve(shared: Arc<Shared>) {
    let mut due = Vec::new();
    poll_fn::<(), _>(|cx| {
        loop {
            ready!(shared.alarm.poll_gone_off(cx));
            shared.wake_due(&mut due);
        }
    })
    .await;
}

#[derive(Debug)]
struct AbortOnDrop(JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_sleep_ends_before_its_deadline() {
        let timer = SharedTimer::new(Duration::from_micros(200)).unwrap();
        let tasks: Vec<_> = (0..50)
            .map(|task| {
                let mut sleeper = timer.sleeper();
                tokio::spawn(async move {
                    for round in 0..20 {
                        let deadline = now() + Duration::from_micros(37 * task + 11 * round);
                        sleeper.sleep_until(deadline).await;
                        assert!(now() >= deadline);
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_busy_task_does_all_of_a_period_at_once() {
        let period = Duration::from_millis(5);
        let timer = SharedTimer::new(period).unwrap();
        let mut sleeper = timer.sleeper();
        let start = now();
        for _ in 0..4 {
            sleeper.sleep_until(start).await;
        }
        assert!(now() - start >= 3 * period, "the first is not put off");
    }

    #[tokio::test]
    async fn many_sleeps_within_a_period_are_one_wake_up() {
        let period = Duration::from_millis(50);
        let timer = SharedTimer::new(period).unwrap();
        let start = now();
        timer.sleeper().sleep_until(start + Duration::from_micros(100)).await;
        let ready = timer.shared.lock().ready;
        let tasks: Vec<_> = (1..=20)
            .map(|task| {
                let mut sleeper = timer.sleeper();
                tokio::spawn(async move {
                    let (asked, deadline) = (now(), start + task * Duration::from_millis(1));
                    sleeper.sleep_until(deadline).await;
                    assert!(now() >= ready || asked >= deadline);
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_dropped_sleep_disturbs_no_other() {
        let timer = SharedTimer::new(Duration::ZERO).unwrap();
        let (mut one, mut other) = (timer.sleeper(), timer.sleeper());
        let soon = now() + Duration::from_millis(2);
        tokio::select! {
            biased;
            () = one.sleep_until(soon) => unreachable!("two milliseconds have not passed"),
            () = std::future::ready(()) => {}
        }
        drop(one);
        other.sleep_until(soon + Duration::from_millis(3)).await;
        let mut third = timer.sleeper();
        third.sleep_until(soon + Duration::from_millis(4)).await;
        assert!(now() >= soon + Duration::from_millis(4));
    }
}
