//! The task behind a UDP port.
//!
//! A turn of the driver: receive a batch; under the lock, give it to the machine, let the machine
//! do what is due, and take out what it has to send and to tell; then send, tell, and rest until a
//! datagram comes, something is due, or a call of the application makes something due.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_io::{Datagram, Gather, ReceiveBuffers, Room, UdpSocket};
use punctual_proto::KeyDerivation;
use punctual_units::Instant;

use crate::key_task::{derive, is_knock};
use crate::outbox::{Outbox, Sender};
use crate::schedule::{Action, Work};
use crate::shared::{Notice, Shared, State};
use crate::shares::Shares;
use crate::sources::Sources;
use crate::statistics::PortStatistics;

/// Runs a port until nobody holds it and its connections are closed, and those of its other shards.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// `None` where the socket has only one address to send from.
    sources: Option<Sources>,
    /// Datagrams that the socket has not taken yet. Meanwhile the machine is not asked for more.
    backlog: Outbox,
    /// When the socket is to be read.
    gather: Gather,
    /// Whose datagrams the machine takes in this turn.
    shares: Shares,
    /// Watches for room to send while the socket has none.
    room: Option<Room>,
    statistics: PortStatistics,
    /// The sockets that share the port: when one is closed, the kernel deals all peers out anew, so
    /// they are closed together, after the last driver has ended.
    _shards: Arc<[Arc<UdpSocket>]>,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        shards: Arc<[Arc<UdpSocket>]>,
        coalesce: Duration,
    ) -> Self {
        let wildcard = shared.udp.local_addr().ip().is_unspecified();
        Self {
            sources: wildcard.then(Sources::default),
            backlog: Outbox::default(),
            gather: match coalesce.is_zero() {
                true => Gather::until_work(LONGEST_WAIT),
                false => Gather::new(coalesce),
            },
            shares: Shares::default(),
            room: None,
            statistics: PortStatistics::default(),
            shared,
            _shards: shards,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        // Asking before looking for work leaves the task's waker with both, so what comes from here
        // on causes another turn.
        let _ = self.shared.alarm.poll_gone_off(cx);
        let more_to_receive = self.receive(cx, scratch);
        let blocked = !self.flush(None);

        let rest = self.exchange(cx, scratch, blocked);
        // Without the own lock: two shards may pass something to each other.
        for (owner, datagram) in scratch.wrong_shard.drain(..) {
            owner.call_and_wake(|state, _| state.handle_datagram(datagram));
        }

        if let Some(job) = scratch.derivation.take() {
            derive(&self.shared, job);
        }

        let sent = !blocked && self.flush(Some(&mut scratch.outbox));
        self.statistics.turns += 1;
        self.shared.set_statistics(self.statistics);
        scratch.notices.drain(..).for_each(Notice::deliver);
        if rest.finished && self.backlog.is_empty() && self.shared.finish() {
            return Poll::Ready(());
        }
        if more_to_receive || rest.more_to_do || self.has_room_again(cx, sent) {
            // Other tasks of this thread have their turn first: they may be the ones that the
            // work of this turn was for.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Receives one batch if there is any; says whether there may be more.
    fn receive(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> bool {
        let Self { shared, sources, statistics, gather, .. } = self;
        let Scratch { buffers, datagrams, .. } = scratch;
        let now = punctual_io::now();
        if gather.poll(cx, &shared.udp, now).is_pending() {
            return false;
        }
        let received = buffers.receive(
            cx,
            &shared.udp,
            |datagram| {
                if let (Some(sources), Some(local)) = (sources.as_mut(), datagram.to) {
                    sources.learn(datagram.from, local.to_canonical());
                }
                datagrams.push(datagram);
            },
            |error| statistics.receive_failed(error),
        );
        statistics.received(received);
        if received.drained {
            gather.emptied(&shared.udp, now, received.datagrams);
        }
        // Read again now, a socket that is not watched would be empty.
        let watched = gather.next().is_none();
        !received.drained || watched && gather.poll(cx, &shared.udp, now).is_ready()
    }

    /// Whether the socket took nothing in this turn and does again.
    fn has_room_again(&mut self, cx: &mut Context<'_>, sent: bool) -> bool {
        if sent {
            self.room = None;
            return false;
        }
        if self.room.is_none() {
            // Without a watch the next attempt is a matter of time: see `Schedule`.
            self.room = self.shared.udp.room().ok();
        }
        let has_room = self.room.as_ref().is_some_and(|room| room.poll(cx).is_ready());
        if has_room {
            // A watch tells once.
            self.room = None;
        }
        has_room
    }

    /// Everything that needs the lock.
    fn exchange(&mut self, cx: &Context<'_>, scratch: &mut Scratch, blocked: bool) -> Rest {
        let mut state = self.shared.lock();
        let now = punctual_io::now();
        state.schedule.begin(now);
        // Datagrams of connections come before handshakes of strangers.
        let knocks = scratch.datagrams.extract_if(.., |datagram| is_knock(datagram));
        scratch.knocks.extend(knocks);
        let Scratch { datagrams, knocks, wrong_shard, .. } = &mut *scratch;
        let mut take = |datagram: Datagram| match self.shared.other_owner(&datagram.payload) {
            None => state.handle_datagram(datagram),
            Some(owner) => wrong_shard.push((owner, datagram)),
        };
        self.shares.serve(datagrams, &mut take);
        knocks.drain(..).for_each(take);
        state.has_reached(now);
        self.statistics.datagrams_over_share = self.shares.dropped();
        if state.endpoint.poll_timeout().is_due(now) {
            state.endpoint.handle_timeout(now);
        }
        scratch.derivation = state.endpoint.poll_key_derivation(now);
        let more_to_send = self.drain(&mut state, now, scratch, blocked);
        if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        let mut work = state.next_work();
        if let Some(delivery) = work.filter(|work| work.is_delivery) {
            self.gather.expect_work(&self.shared.udp, now, delivery.due);
        }
        if let Some(reading) = self.gather.next()
            && work.is_none_or(|work| reading < work.due)
        {
            work = Some(Work { due: reading, is_delivery: false });
        }
        let action = match more_to_send {
            true => state.schedule.hurry(now),
            false => state.schedule.end(now, work, blocked),
        };
        let early = state.schedule.early_delivery();
        state.endpoint.set_early_delivery(early);
        if let Action::SetAlarm(at) = action {
            self.shared.alarm.set(at);
        }
        let more_to_do = more_to_send || action == Action::Wake || self.shares.has_waiting();
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
        let max_segments = self.shared.udp.max_segments();
        while !outbox.is_full() {
            match state.endpoint.poll_transmit(now, max_segments, &mut outbox.bytes) {
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

/// The longest time for which datagrams wait to be taken in together with the next delivery, where
/// one is near: they bear the time of their arrival, so nothing but the report of a loss is later.
const LONGEST_WAIT: Duration = Duration::from_millis(2);

/// The work that is left after the lock is released.
struct Rest {
    /// Nobody holds the shard, and its connections are gone.
    finished: bool,
    /// There is more to do at once.
    more_to_do: bool,
}

/// Buffers that a turn uses and leaves empty.
#[derive(Default)]
struct Scratch {
    buffers: ReceiveBuffers,
    /// Datagrams that were received and not handed to the machine yet.
    datagrams: Vec<Datagram>,
    /// Those of them that belong to no connection.
    knocks: Vec<Datagram>,
    /// The key that is to be derived next.
    derivation: Option<KeyDerivation>,
    outbox: Outbox,
    notices: Vec<Notice>,
    /// Datagrams for connections of other shards.
    wrong_shard: Vec<(Arc<Shared>, Datagram)>,
}

thread_local! {
    /// One a thread, not one a port: a thousand callers with ports of their own do not hold a
    /// thousand sets of buffers.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}
