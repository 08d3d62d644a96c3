//! Reading a socket less often than datagrams come.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_units::Instant;

use super::UdpSocket;
use crate::timer::Timer;

/// Decides when a socket is read whose datagrams may gather for a while.
///
/// While datagrams keep coming the socket is read once a period, and the reactor does not watch it:
/// the task wakes up once a period instead of once a datagram. When some periods have passed
/// without any the reactor watches it again, so that the first datagram after a pause is read at
/// once. With [`until_work`](Self::until_work) that holds only where the task is going to wake up
/// for something else within the period.
///
/// Without a period each datagram wakes the task. So it does on systems other than Linux, whose
/// reactor cannot pause; there a period only spares calls.
#[derive(Debug)]
pub struct Gather {
    period: Duration,
    /// How long before its time a task that is awake reads the socket.
    early: Duration,
    /// Whether datagrams gather only where the task is going to wake up for something else.
    only_with_work: bool,
    /// The next reading, while the socket is not watched.
    next: Option<Instant>,
    /// Readings in a row that found nothing.
    empty: u32,
}

impl Gather {
    /// Reads once a `period`; zero for each time that something comes. A socket with a period must
    /// be [pausable](super::UdpOptions::pausable).
    pub fn new(period: Duration) -> Self {
        Self { period, early: period / 4, only_with_work: false, next: None, empty: 0 }
    }

    /// Lets datagrams wait for other work of the task, up to `period`. Where no work is near, each
    /// wakes the task.
    pub const fn until_work(period: Duration) -> Self {
        Self { period, early: period, only_with_work: true, next: None, empty: 0 }
    }

    /// Ready if the socket is to be read at `now`; else the task is woken when a watched socket has
    /// something, or [`next`](Self::next) tells when it is to be read.
    pub fn poll(&self, cx: &mut Context<'_>, socket: &UdpSocket, now: Instant) -> Poll<()> {
        match self.next {
            None => socket.poll_readable(cx),
            // A task that is awake already reads a little earlier.
            Some(next) if next <= now + self.early => Poll::Ready(()),
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

    /// The socket was read at `now` until it was empty and gave `datagrams`.
    pub fn emptied(&mut self, socket: &UdpSocket, now: Instant, datagrams: usize) {
        if self.period.is_zero() {
            return;
        }
        let was_paused = self.next.is_some();
        if datagrams > 0 {
            self.empty = 0;
        } else if !self.only_with_work {
            self.empty += 1;
        } else if self.next.is_some_and(|next| next <= now) {
            // The task woke up for nothing else.
            self.empty = EMPTY_READINGS;
        }
        let begins = datagrams > 0 && !self.only_with_work;
        let is_paused = begins || was_paused && self.empty < EMPTY_READINGS;
        self.next = is_paused.then(|| self.next_reading(now));
        if was_paused != is_paused {
            socket.set_watched(was_paused);
        }
    }

    /// Where datagrams always gather, all tasks read at the same times: one wake-up serves them.
    fn next_reading(&self, now: Instant) -> Instant {
        if self.only_with_work { now + self.period } else { now.next_multiple_of(self.period) }
    }

    /// The task has something to do at `work`, whether datagrams come or not.
    pub fn expect_work(&mut self, socket: &UdpSocket, now: Instant, work: Instant) {
        let latest = now + self.period;
        if self.only_with_work && self.next.is_none() && self.empty == 0 && work <= latest {
            self.next = Some(latest);
            socket.set_watched(false);
        }
    }

    /// When the socket is to be read next, if the reactor does not watch it.
    pub const fn next(&self) -> Option<Instant> {
        self.next
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

    /// Reads by `gather` until `count` datagrams came; how often it read.
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
    async fn datagrams_gather_for_a_period_and_wake_nobody_meanwhile() {
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
        // Time for the reactor to tell of them, if it watched.
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
    async fn datagrams_wait_for_work_that_is_near_and_for_none_that_is_not() {
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
    async fn a_datagram_that_came_while_nobody_watched_is_told_of() {
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
