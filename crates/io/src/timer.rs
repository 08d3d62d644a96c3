//! A timer for tasks that act at exact times.

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};
use std::time::Duration;

use punctual_units::Instant;
use tokio::runtime::Handle;
use tokio::task::coop;

use crate::alarm::Alarm;
use crate::clock::now;

/// A timer on the same clock as [`now`], far more precise than tokio's, whose grain is 1 ms.
///
/// On Linux it wakes up within some tens of microseconds of the deadline, never before it;
/// elsewhere it has the grain of tokio's timer.
///
/// ```
/// use std::time::Duration;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> std::io::Result<()> {
/// let mut timer = punctual_io::Timer::new()?;
/// let mut next = punctual_io::now();
/// for _ in 0..10 {
///     next += Duration::from_micros(250);
///     timer.sleep_until(next).await;
///     assert!(punctual_io::now() >= next);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Timer {
    alarm: Alarm,
    period: Duration,
    /// No sleep ends before: a period after the last one ended.
    ready: Instant,
}

impl Timer {
    /// A new timer. An error if this is not called within a tokio runtime, or if the system has no
    /// more timers to give.
    pub fn new() -> io::Result<Self> {
        Handle::try_current().map_err(io::Error::other)?;
        Ok(Self { alarm: Alarm::new()?, period: Duration::ZERO, ready: Instant::ORIGIN })
    }

    /// The same, with at least a `period` from the end of one sleep to that of the next: so a task
    /// that has something to do more often than that does all of a period at once.
    #[must_use]
    pub fn with_period(self, period: Duration) -> Self {
        Self { period, ..self }
    }

    /// Sleeps until `deadline`, which may lie in the past, and at least for a
    /// [period](Self::with_period) from the end of the last sleep on.
    ///
    /// Cancel safe: a sleep that was dropped leaves nothing behind.
    pub async fn sleep_until(&mut self, deadline: Instant) {
        coop::consume_budget().await;
        let deadline = deadline.max(self.ready);
        let mut woken = now();
        if woken < deadline {
            self.alarm.set(deadline);
            poll_fn(|cx| {
                // The alarm may still report an earlier deadline that was abandoned.
                while woken < deadline {
                    ready!(self.alarm.poll_gone_off(cx));
                    woken = now();
                }
                Poll::Ready(())
            })
            .await;
        }
        self.ready = woken + self.period;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn with_a_period_sleeps_end_no_closer_to_each_other() {
        let period = Duration::from_millis(3);
        let mut timer = Timer::new().unwrap().with_period(period);
        let start = now();
        for _ in 0..4 {
            timer.sleep_until(start).await;
        }
        assert!(now() - start >= 3 * period, "the first is not put off");
    }

    #[tokio::test]
    async fn a_sleep_never_ends_before_its_deadline() {
        let mut timer = Timer::new().unwrap();
        for micros in [0, 1, 50, 300, 1_500, 20] {
            let deadline = now() + Duration::from_micros(micros);
            timer.sleep_until(deadline).await;
            assert!(now() >= deadline);
        }
    }

    #[tokio::test]
    async fn an_abandoned_sleep_does_not_disturb_the_next() {
        let mut timer = Timer::new().unwrap();
        let soon = now() + Duration::from_millis(2);
        tokio::select! {
            biased;
            () = timer.sleep_until(soon) => unreachable!("two milliseconds have not passed"),
            () = std::future::ready(()) => {}
        }
        let later = soon + Duration::from_millis(5);
        timer.sleep_until(later).await;
        assert!(now() >= later);
        timer.sleep_until(Instant::ORIGIN).await;
    }

    #[test]
    fn outside_a_runtime_it_says_so() {
        assert!(Timer::new().is_err());
    }
}
