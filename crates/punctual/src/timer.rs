//! A timer for people who send at exact times.

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

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
/// let mut timer = punctual::Timer::new()?;
/// let mut next = punctual::now();
/// for _ in 0..10 {
///     next += Duration::from_micros(250);
///     timer.sleep_until(next).await;
///     assert!(punctual::now() >= next);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Timer {
    alarm: Alarm,
}

impl Timer {
    /// A new timer. An error if this is not called within a tokio runtime, or if the system has no
    /// more timers to give.
    pub fn new() -> io::Result<Self> {
        Handle::try_current().map_err(io::Error::other)?;
        Ok(Self { alarm: Alarm::new()? })
    }

    /// Sleeps until `deadline`, which may lie in the past.
    ///
    /// Cancel safe: a sleep that was dropped leaves nothing behind.
    pub async fn sleep_until(&mut self, deadline: Instant) {
        coop::consume_budget().await;
        if now() >= deadline {
            return;
        }
        self.alarm.set(deadline);
        poll_fn(|cx| {
            // The alarm may still have an earlier, abandoned deadline to tell of.
            while now() < deadline {
                ready!(self.alarm.poll_gone_off(cx));
            }
            Poll::Ready(())
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

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
