//! The task behind a UDP port.
//!
//! A turn of the driver: receive a batch; under the lock, give it to the machine, let the machine
//! do what is due, and take out what it has to send and to tell; then send, tell, and rest until a
//! datagram comes, something is due, or a call of the application makes something due.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use punctual_units::Instant;

use crate::clock;
use crate::inbox::Inbox;
use crate::outbox::{Outbox, Sender};
use crate::schedule::Action;
use crate::shared::{Notice, Shared, State};
use crate::sources::Sources;
use crate::statistics::PortStatistics;
use crate::udp::Udp;

/// Runs a port until nobody holds it and its connections are closed, and those of its other shards.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// `None` where the socket has only one address to send from.
    sources: Option<Sources>,
    /// What the socket did not take yet. While there is any, the machine is not asked for more.
    backlog: Outbox,
    max_segments: usize,
    statistics: PortStatistics,
    /// The sockets that share the port: when one is closed, the kernel deals all peers out anew, so
    /// they are closed together, after the last driver has ended.
    _shards: Arc<[Arc<Udp>]>,
}

impl Driver {
    pub(crate) fn new(shared: Arc<Shared>, shards: Arc<[Arc<Udp>]>) -> Self {
        let wildcard = shared.udp.local_addr().ip().is_unspecified();
        Self {
            sources: wildcard.then(Sources::default),
            backlog: Outbox::default(),
            max_segments: shared.udp.max_segments(),
            statistics: PortStatistics::default(),
            shared,
            _shards: shards,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        // Asking before looking for work leaves the task's waker with both, so what comes from here
        // on causes another turn.
        let _ = self.shared.alarm.poll_gone_off(cx);
        let more_to_receive = self.receive(cx, &mut scratch.inbox);
        let blocked = !self.flush(None);

        let rest = self.exchange(cx, scratch, blocked);
        // Without the own lock: two shards may pass something to each other.
        for (owner, remote, datagram) in scratch.misdealt.drain(..) {
            owner.call_and_wake(|state, now| {
                state.endpoint.handle_datagram(now, remote, datagram);
            });
        }

        let sent = !blocked && self.flush(Some(&mut scratch.outbox));
        self.statistics.turns += 1;
        self.shared.set_statistics(self.statistics);
        scratch.notices.drain(..).for_each(Notice::deliver);
        if rest.finished && self.backlog.is_empty() && self.shared.finish() {
            return Poll::Ready(());
        }
        // Readiness may have changed since the socket refused.
        let writable = !sent && self.shared.udp.poll_writable(cx).is_ready();
        if more_to_receive || rest.more_to_do || writable {
            // Other tasks of this thread have their turn first: they may be the ones that the
            // work of this turn was for.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Receives one batch if there is any; says whether there may be more.
    fn receive(&mut self, cx: &mut Context<'_>, inbox: &mut Inbox) -> bool {
        let udp = &self.shared.udp;
        udp.poll_readable(cx).is_ready()
            && (inbox.receive(udp, self.sources.as_mut(), &mut self.statistics)
                || udp.poll_readable(cx).is_ready())
    }

    /// Everything that needs the lock.
    fn exchange(&mut self, cx: &Context<'_>, scratch: &mut Scratch, blocked: bool) -> Rest {
        let mut state = self.shared.lock();
        let now = clock::now();
        state.schedule.begin(now);
        for (remote, datagram) in scratch.inbox.datagrams.drain(..) {
            match self.shared.other_owner(&datagram) {
                None => state.endpoint.handle_datagram(now, remote, datagram),
                Some(owner) => scratch.misdealt.push((owner, remote, datagram)),
            }
        }
        if state.endpoint.poll_timeout().is_some_and(|due| due <= now) {
            state.endpoint.handle_timeout(now);
        }
        let more_to_send = self.drain(&mut state, now, scratch, blocked);
        if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        let due = state.endpoint.poll_timeout();
        let action = match more_to_send {
            true => state.schedule.hurry(now),
            false => state.schedule.end(now, due, blocked),
        };
        if let Action::SetAlarm(at) = action {
            self.shared.alarm.set(at);
        }
        let more_to_do = more_to_send || action == Action::Wake;
        Rest { finished: state.is_finished() && !more_to_send, more_to_do }
    }

    /// Takes out of the machine what it has to send and to tell; says whether it has more to send
    /// than goes into one turn.
    fn drain(&self, state: &mut State, now: Instant, scratch: &mut Scratch, blocked: bool) -> bool {
        loop {
            let all_sent = !blocked && self.drain_transmits(state, now, &mut scratch.outbox);
            state.drain_events(&self.shared, &mut scratch.notices);
            if !all_sent {
                return !blocked;
            }
            // A connection is released after its last words were taken out, and may say more then.
            if !state.release_orphans(now) {
                return false;
            }
        }
    }

    /// Says whether that was everything.
    fn drain_transmits(&self, state: &mut State, now: Instant, outbox: &mut Outbox) -> bool {
        while !outbox.is_full() {
            match state.endpoint.poll_transmit(now, self.max_segments, &mut outbox.bytes) {
                Some(transmit) => outbox.push(transmit),
                None => return true,
            }
        }
        false
    }

    /// Sends what waits in `outbox`, or in the backlog. What the socket does not take stays or
    /// becomes the backlog; says whether there is none.
    fn flush(&mut self, outbox: Option<&mut Outbox>) -> bool {
        let mut sender = Sender {
            udp: &self.shared.udp,
            sources: self.sources.as_mut(),
            max_segments: &mut self.max_segments,
            statistics: &mut self.statistics,
        };
        let send = |remote, datagrams: &[u8], size| sender.send(remote, datagrams, size);
        match outbox {
            Some(outbox) => {
                let all = outbox.flush(send);
                if !all {
                    std::mem::swap(outbox, &mut self.backlog);
                }
                all
            }
            None if self.backlog.is_empty() => true,
            None => {
                let all = self.backlog.flush(send);
                if all {
                    self.backlog = Outbox::default();
                }
                all
            }
        }
    }
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = SCRATCH.take().unwrap_or_default();
        let poll = self.turn(cx, &mut scratch);
        SCRATCH.set(Some(scratch));
        poll
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.lock().stop();
        // Where the runtime is shut down, the other shards need not wait for this one.
        self.shared.finish();
    }
}

/// What is left after the lock is released.
struct Rest {
    /// Nobody holds the shard, and its connections are gone.
    finished: bool,
    /// There is more to do at once.
    more_to_do: bool,
}

/// What a turn needs and leaves empty.
#[derive(Default)]
struct Scratch {
    inbox: Inbox,
    outbox: Outbox,
    notices: Vec<Notice>,
    /// Datagrams for connections of other shards.
    misdealt: Vec<(Arc<Shared>, SocketAddr, Bytes)>,
}

thread_local! {
    /// One a thread, not one a port: a thousand callers with ports of their own do not hold a
    /// thousand sets of buffers.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}
