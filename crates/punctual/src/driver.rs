//! The task that drives a UDP port.
//!
//! A turn of the driver, which holds the transmitter: it receives a batch of datagrams; under the
//! lock of the state, it passes them to the protocol, handles what is due, and takes the protocol's
//! transmits and events; then it sends. After that it notifies the tasks that wait, and sleeps
//! until a datagram comes, something is due, or a call of the application makes something due.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use punctual_io::{Datagram, Gather, ReceiveBuffers, Received, Room, UdpSocket};
use punctual_proto::KeyDerivation;
use punctual_units::Instant;

use crate::handshakes::Handshakes;
use crate::key_task::derive;
use crate::notice::Notice;
use crate::outbox::Outbox;
use crate::schedule::{DriverAction, Work};
use crate::shared::Shared;
use crate::shares::Shares;
use crate::state::State;
use crate::transmitter::Transmitter;
use crate::wakes::Wakes;

/// Runs a port until its last handle is dropped and its connections are closed, and likewise those
/// of its other shards.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    /// Decides when the socket is read.
    gather: Gather,
    /// Limits the datagrams of each peer in this turn.
    shares: Shares,
    /// Limits the inductions that are answered.
    handshakes: Handshakes,
    /// Waits for room to send while the socket has none.
    room: Option<Room>,
    /// The sockets that share the port. When one is closed, the kernel distributes all peers over
    /// the others again; so all are closed together, after the last driver has ended.
    _shards: Arc<[Arc<UdpSocket>]>,
}

impl Driver {
    pub(crate) fn new(
        shared: Arc<Shared>,
        shards: Arc<[Arc<UdpSocket>]>,
        coalesce: Duration,
    ) -> Self {
        let receive_buffer = shared.udp.options().recv_buffer_size().unwrap_or(0);
        Self {
            gather: match coalesce.is_zero() {
                true => Gather::until_work(LONGEST_WAIT),
                false => Gather::new(coalesce),
            },
            shares: Shares::default(),
            handshakes: Handshakes::new(receive_buffer),
            room: None,
            shared,
            _shards: shards,
        }
    }

    fn turn(&mut self, cx: &mut Context<'_>, scratch: &mut Scratch) -> Poll<()> {
        let shared = Arc::clone(&self.shared);
        let mut transmitter = shared.transmitter();
        // Polling both before looking for work registers the task's waker with both, so any later
        // event causes another turn.
        let _ = self.shared.alarm.poll_gone_off(cx);
        let (received, more_to_receive) = self.receive(cx, scratch, &mut transmitter);
        let blocked = !transmitter.send_backlog();

        let result = self.exchange(cx, scratch, received, blocked);
        // Without this shard's lock: two shards may pass datagrams to each other.
        for (owner, datagram) in scratch.wrong_shard.drain(..) {
            owner.call_and_wake(|state, _| state.handle_datagram(datagram));
        }

        if let Some(job) = scratch.derivation.take() {
            derive(&self.shared, job);
        }

        let sent = !blocked && transmitter.send(&mut scratch.outbox);
        drop(transmitter);
        self.count_turn();
        scratch.deliver_notices();
        if result.finished && sent && self.shared.finish() {
            return Poll::Ready(());
        }
        if more_to_receive || result.more_to_do || self.has_room_again(cx, sent) {
            // Other tasks of this thread run first: they may be waiting for the results of this
            // turn.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn count_turn(&self) {
        let mut statistics = self.shared.statistics();
        statistics.turns += 1;
        statistics.datagrams_over_share = self.shares.dropped();
        statistics.inductions_dropped = self.handshakes.dropped();
    }

    /// Receives one batch, if there is any. Returns its size, and whether there may be more.
    fn receive(
        &mut self,
        cx: &mut Context<'_>,
        scratch: &mut Scratch,
        transmitter: &mut Transmitter,
    ) -> (Received, bool) {
        let Self { shared, gather, .. } = self;
        let Scratch { buffers, datagrams, .. } = scratch;
        let now = punctual_io::now();
        if gather.poll(cx, &shared.udp, now).is_pending() {
            return (Received { drained: true, ..Received::default() }, false);
        }
        let received = buffers.receive(
            cx,
            &shared.udp,
            |datagram| {
                transmitter.learn(datagram.from, datagram.to);
                datagrams.push(datagram);
            },
            |error| shared.statistics().receive_failed(error),
        );
        shared.statistics().received(received);
        if received.drained {
            gather.emptied(&shared.udp, now, received.datagrams);
        }
        // A socket that is not watched for datagrams was emptied just now, and need not be read
        // again.
        let watched = gather.next().is_none();
        let more = !received.drained || watched && gather.poll(cx, &shared.udp, now).is_ready();
        (received, more)
    }

    /// Whether the socket took nothing in this turn and has room again.
    fn has_room_again(&mut self, cx: &mut Context<'_>, sent: bool) -> bool {
        if sent {
            self.room = None;
            return false;
        }
        if self.room.is_none() {
            // If this fails, the next attempt is made after a fixed time: see `Schedule`.
            self.room = self.shared.udp.room().ok();
        }
        let has_room = self.room.as_ref().is_some_and(|room| room.poll(cx).is_ready());
        if has_room {
            // It reports room only once.
            self.room = None;
        }
        has_room
    }

    /// Does the part of the turn that needs the lock.
    fn exchange(
        &mut self,
        cx: &Context<'_>,
        scratch: &mut Scratch,
        received: Received,
        blocked: bool,
    ) -> TurnResult {
        let mut state = self.shared.lock();
        let now = punctual_io::now();
        state.schedule.begin(now);
        // Datagrams of connections come before handshakes of new callers.
        self.handshakes.collect(&mut scratch.datagrams);
        let Scratch { datagrams, wrong_shard, .. } = &mut *scratch;
        let mut take = |datagram: Datagram| match self.shared.other_owner(&datagram.payload) {
            None => state.handle_datagram(datagram),
            Some(owner) => wrong_shard.push((owner, datagram)),
        };
        self.shares.serve(datagrams, &mut take);
        self.handshakes.serve(received.drained, take);
        state.has_reached(now);
        if state.machine.poll_timeout().is_due(now) {
            state.machine.handle_timeout(now);
        }
        scratch.derivation = state.endpoint().poll_key_derivation(now);
        let more_to_send = self.drain(&mut state, now, scratch, blocked);
        state.schedule.measure(now, received.bytes + scratch.outbox.bytes.len());
        if !state.driver.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            state.driver = Some(cx.waker().clone());
        }
        let mut work = state.next_work();
        if !state.schedule.may_gather() {
            self.gather.expect_load(&self.shared.udp);
        } else if let Some(delivery) = work.filter(|work| work.is_delivery) {
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
        state.endpoint().set_early_delivery(early);
        if let DriverAction::SetAlarm(at) = action {
            self.shared.alarm.set(at);
        }
        let more_to_do = more_to_send || action == DriverAction::Wake || self.shares.has_waiting();
        TurnResult { finished: state.is_finished() && !more_to_send, more_to_do }
    }

    /// Takes transmits and events out of the protocol. Returns whether it has more to send than
    /// fits into one turn.
    fn drain(&self, state: &mut State, now: Instant, scratch: &mut Scratch, blocked: bool) -> bool {
        let max_segments = self.shared.udp.max_segments();
        loop {
            let all_sent = !blocked && state.take_transmits(now, max_segments, &mut scratch.outbox);
            state.drain_events(&self.shared, &mut scratch.notices);
            if !all_sent {
                return !blocked;
            }
            // A connection is released after its last packets were taken out, and may produce more
            // then.
            if !state.release_orphans(now) && !state.shut_down(now) {
                return false;
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
        let wake_all = self.shared.lock().stop();
        wake_all();
        // If the runtime is shut down, the other shards need not wait for this one.
        self.shared.finish();
    }
}

/// The longest time for which received datagrams wait for the next delivery, if one is near, to be
/// read in the same turn. They have the time of their arrival, so only reports of losses are
/// delayed.
const LONGEST_WAIT: Duration = Duration::from_millis(2);

/// The result of the part of a turn that needs the lock.
struct TurnResult {
    /// The shard has no handle and no connection any more.
    finished: bool,
    /// There is more to do now.
    more_to_do: bool,
}

/// Buffers that a turn uses and leaves empty.
#[derive(Default)]
struct Scratch {
    buffers: ReceiveBuffers,
    /// Datagrams that were received and not passed to the protocol yet.
    datagrams: Vec<Datagram>,
    /// The next key to derive.
    derivation: Option<KeyDerivation>,
    outbox: Outbox,
    notices: Vec<Notice>,
    /// Datagrams for connections of other shards.
    wrong_shard: Vec<(Arc<Shared>, Datagram)>,
}

impl Scratch {
    /// Tells the tasks and watchers of the changes of this turn. Afterwards threads are woken that
    /// wait for any of many changes.
    fn deliver_notices(&mut self) {
        let mut wakes = Wakes::default();
        self.notices.drain(..).for_each(|notice| notice.deliver(&mut wakes));
    }
}

thread_local! {
    /// One per thread, not one per port: a thousand callers with a port each do not hold a thousand
    /// sets of buffers.
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}
