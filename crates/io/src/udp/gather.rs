//! Reads of a socket that are rarer than its datagrams.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_units::Instant;

use super::UdpSocket;
use crate::timer::Timer;

/// Decides when a socket is read whose datagrams may gather for a while.
///
/// While datagrams keep coming, the reactor does not watch the socket, which is read at most once a
/// period: the task wakes up once a period instead of once a datagram. When the socket has been
/// empty for a while, the reactor watches it again, so that the first datagram after a pause is
/// read at once. Two modes exist: datagrams gather [always](Self::new), or only where the task is
/// about to wake up [for other work](Self::until_work).
///
/// On systems other than Linux the reactor cannot pause. Each datagram wakes the task there, and a
/// period only saves system calls.
#[derive(Debug)]
pub struct Gather {
    mode: Mode,
    /// The next reading, while the reactor does not watch the socket.
    next: Option<Instant>,
    /// Readings in a row that found nothing.
    empty: u32,
}

/// The condition under which datagrams gather, and for how long they do.
#[derive(Clone, Copy, Debug)]
enum Mode {
    /// Each datagram wakes the task.
    Never,
    /// Whenever datagrams come: the socket is read at the multiples of this period.
    Always(Duration),
    /// If the task is about to wake up for other work within this time.
    WithWork(Duration),
}

impl Gather {
    /// Reads once a `period` while datagrams come; zero reads whenever one comes. A socket with a
    /// period must be [pausable](super::UdpOptions::pausable).
    pub const fn new(period: Duration) -> Self {
        Self::with(if period.is_zero() { Mode::Never } else { Mode::Always(period) })
    }

    /// Lets datagrams wait up to `period` for other work of the task. Where no work is near, each
    /// datagram wakes the task.
    pub const fn until_work(period: Duration) -> Self {
        Self::with(Mode::WithWork(period))
    }

    const fn with(mode: Mode) -> Self {
        Self { mode, next: None, empty: 0 }
    }

    /// Ready if the socket is to be read at `now`. Otherwise the task is woken when a datagram
    /// comes on a watched socket, and [`next`](Self::next) gives the time of the next reading of
    /// one that is not watched.
    pub fn poll(&self, cx: &mut Context<'_>, socket: &UdpSocket, now: Instant) -> Poll<()> {
        match self.next {
            None => socket.poll_readable(cx),
            // A task that is awake already reads a little earlier.
            Some(next) if next <= now + self.mode.early() => Poll::Ready(()),
            Some(_) => Poll::Pending,
        }
    }

    /// Waits until the socket is to be read. Cancel safe.
    pub async fn wait(&self, socket: &UdpSocket, timer: &mut Timer) {
        match self.next {
            None => poll_fn(|cx| socket.poll_readable(cx)).await,
            Some(next) => timer.sleep_until(next).await,
        }
    }

    /// Takes note that the socket was read at `now` until it was empty, and gave `datagrams`.
    pub fn emptied(&mut self, socket: &UdpSocket, now: Instant, datagrams: usize) {
        let paused = self.next.is_some();
        let next = match self.mode {
            Mode::Never => return,
            Mode::Always(period) => {
                self.empty = if datagrams > 0 { 0 } else { self.empty + 1 };
                // All tasks read at the same times, so that they wake up together.
                (datagrams > 0 || paused).then(|| now.next_multiple_of(period))
            }
            Mode::WithWork(period) => {
                if datagrams > 0 {
                    self.empty = 0;
                } else if self.next.is_some_and(|next| next <= now) {
                    // The task woke up for this reading alone.
                    self.empty = EMPTY_READINGS;
                }
                paused.then(|| now + period)
            }
        };
        self.next = next.filter(|_| self.empty < EMPTY_READINGS);
        if paused != self.next.is_some() {
            socket.set_watched(paused);
        }
    }

    /// Takes note that the task will do something at `work`, whether datagrams come or not.
    pub fn expect_work(&mut self, socket: &UdpSocket, now: Instant, work: Instant) {
        let Mode::WithWork(period) = self.mode else { return };
        let latest = now + period;
        if self.next.is_none() && self.empty == 0 && work <= latest {
            self.next = Some(latest);
            socket.set_watched(false);
        }
    }

    /// Takes note of a high load: received datagrams must not wait for other work.
    pub fn expect_load(&mut self, socket: &UdpSocket) {
        if matches!(self.mode, Mode::WithWork(_)) && self.next.take().is_some() {
            socket.set_watched(true);
        }
    }

    /// The time of the next reading; `None` while the reactor watches the socket.
    pub const fn next(&self) -> Option<Instant> {
        self.next
    }
}

impl Mode {
    /// How long before the time of a reading a task that is awake reads the socket.
    fn early(self) -> Duration {
        match self {
            Self::Never => Duration::ZERO,
            Self::Always(period) => period / 4,
            Self::WithWork(period) => period,
        }
    }
}

/// The number of readings in a row that find nothing after which the reactor watches the socket
/// again. Watching again and pausing again cost as much as a few readings, and a stream's ACKs come
/// less often than a short period.
const EMPTY_READINGS: u32 = 3;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io;

    use super::*;
    use crate::now;
    use crate::udp::tests::{bound, bound_with};
    use crate::udp::{ReceiveBuffers, UdpOptions};

    /// Reads by `gather` until `count` datagrams came; returns the number of readings.
    async fn readings(socket: &UdpSocket, gather: &mut Gather, count: usize) -> usize {
        let (mut buffers, mut timer) = (ReceiveBuffers::default(), Timer::new().unwrap());
        let (mut came, mut readings) = (0, 0);
        while came < count {
            gather.wait(socket, &mut timer).await;
            readings += 1;
            poll_fn(|cx| {
                let report = |error: &io::Error| panic!("{error}");
                let received = buffers.receive(cx, socket, |_| (), report);
                assert!(received.drained);
                gather.emptied(socket, now(), received.datagrams);
                came += received.datagrams;
                Poll::Ready(())
            })
            .await;
        }
        readings
    }

    #[tokio::test]
    async fn datagrams_gather_for_a_period_and_wake_no_task_meanwhile() {
        let to = bound_with("127.0.0.1:0", UdpOptions { pausable: true, ..Default::default() });
        let from = bound("127.0.0.1:0");
        // Its first multiple is far away, however long the machine has been running.
        let period = Duration::from_secs(1 << 30);
        let mut gather = Gather::new(period);
        from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
        readings(&to, &mut gather, 1).await;
        for _ in 0..20 {
            from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
        }
        // Time for the reactor to report them, if it watched.
        Timer::new().unwrap().sleep_until(now() + Duration::from_millis(2)).await;
        poll_fn(|cx| {
            assert_eq!(gather.poll(cx, &to, now()), Poll::Pending);
            assert_eq!(gather.poll(cx, &to, now() + period), Poll::Ready(()));
            assert_eq!(to.poll_readable(cx), Poll::Pending);
            Poll::Ready(())
        })
        .await;
        gather.next = Some(now());
        assert_eq!(readings(&to, &mut gather, 20).await, 1);
    }

    #[tokio::test]
    async fn the_first_datagram_after_a_pause_is_read_at_once() {
        let to = bound_with("127.0.0.1:0", UdpOptions { pausable: true, ..Default::default() });
        let from = bound("127.0.0.1:0");
        let mut gather = Gather::new(Duration::from_millis(1));
        for _ in 0..3 {
            from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
            readings(&to, &mut gather, 1).await;
            for _ in 0..EMPTY_READINGS {
                assert!(gather.next().is_some());
                gather.emptied(&to, now(), 0);
            }
            assert_eq!(gather.next(), None);
        }
    }

    #[tokio::test]
    async fn datagrams_wait_only_for_work_that_is_near() {
        let to = bound_with("127.0.0.1:0", UdpOptions { pausable: true, ..Default::default() });
        let from = bound("127.0.0.1:0");
        let mut gather = Gather::until_work(Duration::from_millis(2));
        for (work, waits) in [(Duration::from_millis(3), false), (Duration::from_millis(1), true)] {
            from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
            readings(&to, &mut gather, 1).await;
            let at = now();
            gather.expect_work(&to, at, at + work);
            assert_eq!(gather.next(), waits.then(|| at + Duration::from_millis(2)));
        }
        // A task that is awake reads at once, and watches again when it woke up for nothing else.
        poll_fn(|cx| {
            assert_eq!(gather.poll(cx, &to, now()), Poll::Ready(()));
            Poll::Ready(())
        })
        .await;
        let at = now();
        gather.emptied(&to, at, 0);
        assert_eq!(gather.next(), Some(at + Duration::from_millis(2)), "it read with other work");
        gather.emptied(&to, at + Duration::from_millis(2), 0);
        assert_eq!(gather.next(), None, "it read for nothing");
        from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
        assert_eq!(readings(&to, &mut gather, 1).await, 1);
    }

    #[tokio::test]
    async fn a_datagram_that_came_while_nobody_watched_is_reported() {
        let to = bound_with("127.0.0.1:0", UdpOptions { pausable: true, ..Default::default() });
        let from = bound("127.0.0.1:0");
        let mut gather = Gather::new(Duration::from_millis(1));
        from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
        readings(&to, &mut gather, 1).await;
        from.send(Some(to.local_addr()), &[1; 100], 100, None).unwrap();
        // The readings before this one came found nothing.
        (0..EMPTY_READINGS).for_each(|_| gather.emptied(&to, now(), 0));
        assert_eq!(readings(&to, &mut gather, 1).await, 1);
    }
}
