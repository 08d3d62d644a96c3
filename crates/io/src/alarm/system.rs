//! A timer of the system.
//!
//! tokio's own timer has a grain of 1 ms, five times what a packet may be late. On Linux the timer
//! is a timerfd on `CLOCK_MONOTONIC`, registered with tokio's reactor; elsewhere it is tokio's
//! timer and has tokio's grain.

pub(super) use imp::SystemTimer;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod imp {
    use std::io;
    use std::os::fd::OwnedFd;
    use std::task::{Context, Poll};

    use punctual_units::Instant;
    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    use crate::registration::register;

    /// A timerfd that any thread may set and one task waits for.
    #[derive(Debug)]
    pub(in crate::alarm) struct SystemTimer(AsyncFd<OwnedFd>);

    impl SystemTimer {
        /// A timer that is not set. Must be called within a tokio runtime.
        pub(in crate::alarm) fn new() -> io::Result<Self> {
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            register(fd, Interest::READABLE).map(Self)
        }

        /// Sets the timer to go off at `deadline` instead of whenever it was set to before. A
        /// deadline in the past goes off at once.
        pub(in crate::alarm) fn set(&self, deadline: Instant) {
            // Zero would stop the timer.
            let nanos = deadline.as_nanos().clamp(1, i64::MAX.cast_unsigned()).cast_signed();
            let at = Timespec { tv_sec: nanos / 1_000_000_000, tv_nsec: nanos % 1_000_000_000 };
            let never = Timespec { tv_sec: 0, tv_nsec: 0 };
            let setting = Itimerspec { it_interval: never, it_value: at };
            if let Err(error) =
                timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &setting)
            {
                tracing::error!(%error, %deadline, "the timer cannot be set");
            }
        }

        /// Ready if the timer went off since the last call; else the task is woken when it does.
        ///
        /// The timer's counter is never read. The reactor is edge-triggered, and setting the timer
        /// resets the counter, so each expiry makes an edge of its own: one system call less for
        /// every wake-up.
        pub(in crate::alarm) fn poll_gone_off(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut gone_off = Poll::Pending;
            while let Poll::Ready(Ok(mut guard)) = self.0.poll_read_ready(cx) {
                guard.clear_ready();
                gone_off = Poll::Ready(());
            }
            gone_off
        }
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod imp {
    use std::future::Future;
    use std::io;
    use std::pin::Pin;
    use std::sync::{Mutex, PoisonError};
    use std::task::{Context, Poll};
    use std::time::Duration;

    use punctual_units::Instant;
    use tokio::time::Sleep;

    use crate::clock::imp::to_std;

    /// A timer that any thread may set and one task waits for, with the grain of tokio's timer.
    #[derive(Debug)]
    pub(in crate::alarm) struct SystemTimer(Mutex<Pin<Box<Sleep>>>);

    impl SystemTimer {
        /// A timer that is not set. Must be called within a tokio runtime.
        #[expect(clippy::unnecessary_wraps, reason = "a timerfd can fail")]
        pub(in crate::alarm) fn new() -> io::Result<Self> {
            Ok(Self(Mutex::new(Box::pin(tokio::time::sleep(UNSET)))))
        }

        /// Sets the timer to go off at `deadline` instead of whenever it was set to before. A
        /// deadline in the past goes off at once.
        pub(in crate::alarm) fn set(&self, deadline: Instant) {
            let deadline = tokio::time::Instant::from_std(to_std(deadline));
            self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().reset(deadline);
        }

        /// Ready if the timer went off since the last call; else the task is woken when it does.
        pub(in crate::alarm) fn poll_gone_off(&self, cx: &mut Context<'_>) -> Poll<()> {
            let mut sleep = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let mut gone_off = Poll::Pending;
            while sleep.as_mut().poll(cx).is_ready() {
                sleep.as_mut().reset(tokio::time::Instant::now() + UNSET);
                gone_off = Poll::Ready(());
            }
            gone_off
        }
    }

    /// An alarm that is not set goes off after a year and does no harm then.
    const UNSET: Duration = Duration::from_secs(365 * 86_400);
}
