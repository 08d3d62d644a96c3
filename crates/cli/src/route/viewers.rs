//! A destination of a route that listens and gives the stream to each of its callers.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use punctual::Outgoing;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::endpoint::{Connection, EndLog, Opener, SrtEnd, Traffic, Writer};
use crate::exit::Failure;
use crate::live::Way;
use crate::route::Shared;
use crate::route::batch::Batch;
use crate::route::openings::Opening;
use punctual_uri::Uri;

/// A destination of a route that listens and gives the stream to each of its callers, from the time
/// of its call.
pub(super) struct Viewers {
    listener: ViewerListener,
    inbox: UnboundedReceiver<Batch>,
    opening: Opening,
}

/// The listener for viewers.
struct ViewerListener {
    opener: Opener,
    /// A place for each viewer that may be connected at the same time.
    places: Arc<Semaphore>,
    limit: usize,
}

/// The connection of a caller that was accepted, and the place that it holds.
type AcceptedCaller = (Connection, OwnedSemaphorePermit);

impl Viewers {
    /// A destination for at most `limit` viewers at the same time; further callers are refused.
    pub(super) fn new(
        opener: Opener,
        limit: NonZeroUsize,
        inbox: UnboundedReceiver<Batch>,
        opening: Opening,
    ) -> Self {
        let limit = limit.get().min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(limit));
        let opener = opener.with_places(Arc::clone(&places));
        Self { listener: ViewerListener { opener, places, limit }, inbox, opening }
    }

    /// Accepts callers and hands out the stream until its end.
    pub(super) async fn run(self, shared: Arc<Shared>) -> Result<(), Failure> {
        let Self { mut listener, inbox, mut opening } = self;
        let mut inbox = inbox;
        let listened = tokio::select! {
            listened = shared.stop.or(listener.opener.listen()) => listened,
            // The source may end before the port is free.
            () = async { while inbox.recv().await.is_some() {} } => None,
        };
        match listened {
            Some(listened) => listened?,
            None => return listener.opener.never_opened().map_or(Ok(()), Err),
        }
        opening.done();
        let (accepted, callers) = channel(1);
        let viewers = ConnectedViewers::new(&listener.opener, shared);
        tokio::select! {
            failure = listener.accept(accepted) => Err(failure),
            () = viewers.serve(inbox, callers) => Ok(()),
        }
    }
}

impl ViewerListener {
    /// Accepts callers for ever; returns the failure after which the listener accepts no more.
    async fn accept(&mut self, accepted: Sender<AcceptedCaller>) -> Failure {
        loop {
            let connection = match self.opener.open().await {
                Ok(connection) => connection,
                // While a viewer is connected, it is no failure that no other one calls.
                Err(failure) if failure.is_no_answer() && self.is_in_use() => continue,
                Err(failure) => return failure,
            };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                unreachable!("callers are accepted while there is a place, one at a time");
            };
            if accepted.send((connection, place)).await.is_err() {
                return Failure::runtime("the task that sends the stream has ended");
            }
        }
    }

    fn is_in_use(&self) -> bool {
        self.places.available_permits() < self.limit
    }
}

/// The viewers that get the stream at present.
struct ConnectedViewers {
    uri: Uri,
    log: Arc<EndLog>,
    shared: Arc<Shared>,
    viewers: Vec<Viewer>,
    /// A task for each viewer, until its connection has ended.
    tasks: JoinSet<()>,
}

/// One viewer.
struct Viewer {
    name: String,
    end: SrtEnd,
    writer: Writer,
    traffic: Arc<Traffic>,
    /// Messages that did not fit into its send buffer yet.
    queue: VecDeque<Outgoing>,
    /// Messages that were discarded because the queue was full.
    missed: u64,
    drops: DropLimit,
    /// Tells its task how to end the connection.
    disconnect: oneshot::Sender<Disconnect>,
}

/// The way in which the connection to a viewer ends.
enum Disconnect {
    /// Buffered messages are still sent.
    AfterBuffered,
    /// The connection ends at once.
    AtOnce,
}

impl ConnectedViewers {
    fn new(opener: &Opener, shared: Arc<Shared>) -> Self {
        let (uri, log) = (opener.uri().clone(), Arc::clone(opener.log()));
        Self { uri, log, shared, viewers: Vec::new(), tasks: JoinSet::new() }
    }

    /// Hands out messages to the viewers until no more come, and then waits until the buffered
    /// messages have been sent.
    async fn serve(
        mut self,
        mut inbox: UnboundedReceiver<Batch>,
        mut callers: Receiver<AcceptedCaller>,
    ) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                batch = inbox.recv() => match batch {
                    Some(batch) => self.viewers.retain_mut(|viewer| viewer.hand(&batch)),
                    None => break,
                },
                Some(caller) = callers.recv() => self.add(caller),
                _ = look.tick() => self.disconnect_slow(),
                Some(_) = self.tasks.join_next() => {}
            }
        }
        for viewer in self.viewers.drain(..) {
            let _ = viewer.disconnect.send(Disconnect::AfterBuffered);
        }
        while self.tasks.join_next().await.is_some() {}
    }

    fn add(&mut self, (connection, place): AcceptedCaller) {
        let (disconnect, command) = oneshot::channel();
        if let Some(viewer) = Viewer::new(&connection, disconnect) {
            let name = format!("{}, viewer {}", self.uri, viewer.name);
            self.viewers.push(viewer);
            self.tasks.spawn(serve_viewer(
                name,
                connection,
                command,
                place,
                Arc::clone(&self.shared),
            ));
        }
    }

    fn disconnect_slow(&mut self) {
        for viewer in self.viewers.extract_if(.., Viewer::is_too_slow) {
            self.log.lost(format_args!(
                "{}: viewer {} takes the stream too slowly, {} packets were dropped for it: it is \
                 disconnected",
                self.uri,
                viewer.name,
                viewer.dropped(),
            ));
            let _ = viewer.disconnect.send(Disconnect::AtOnce);
        }
    }
}

impl Viewer {
    /// `None` for a connection that is not SRT's.
    fn new(connection: &Connection, disconnect: oneshot::Sender<Disconnect>) -> Option<Self> {
        let end = connection.socket.clone()?;
        Some(Self {
            name: end.peer(),
            writer: connection.writer.again()?,
            end,
            traffic: Arc::clone(&connection.traffic),
            queue: VecDeque::new(),
            missed: 0,
            drops: DropLimit::default(),
            disconnect,
        })
    }

    /// Hands messages over as far as there is room; returns whether the viewer is still there.
    fn hand(&mut self, batch: &Batch) -> bool {
        batch.iter().for_each(|message| self.traffic.count(message.payload.len()));
        self.queue.extend(batch.iter().cloned());
        let is_there = self.write_what_fits();
        let excess = self.queue.len().saturating_sub(QUEUE);
        self.queue.drain(..excess);
        self.missed += excess as u64;
        is_there
    }

    /// Writes without waiting for room, because the next messages come soon and try again. Returns
    /// whether the viewer is still there.
    fn write_what_fits(&mut self) -> bool {
        let write = pin!(self.writer.write(&mut self.queue));
        let written = write.poll(&mut Context::from_waker(Waker::noop()));
        !matches!(written, Poll::Ready(Err(_)))
    }

    /// Messages that the viewer will never have because it was too slow.
    fn dropped(&self) -> u64 {
        self.end.statistics().packets_send_dropped + self.missed
    }

    fn is_too_slow(&mut self) -> bool {
        let dropped = self.dropped();
        self.drops.is_exceeded(dropped)
    }
}

/// Serves one viewer until its connection ends: reads and discards its messages, and writes its
/// statistics.
async fn serve_viewer(
    name: String,
    connection: Connection,
    command: oneshot::Receiver<Disconnect>,
    place: OwnedSemaphorePermit,
    shared: Arc<Shared>,
) {
    let watch = shared.live.watch_as(&name, &connection, Way::Out);
    let end = connection.stats_end();
    let Connection { mut reader, mut writer, .. } = connection;
    let read = async {
        let mut messages = Vec::new();
        while matches!(reader.read(&mut messages).await, Ok(true)) {
            messages.clear();
        }
    };
    let work = async {
        let is_flushed = tokio::select! {
            () = read => true,
            disconnect = command => matches!(disconnect, Ok(Disconnect::AfterBuffered)),
        };
        if is_flushed {
            writer.close().await;
        }
    };
    match (&shared.stats, &end) {
        (Some(stats), Some(end)) => stats.observe(end, work).await,
        _ => work.await,
    }
    drop(watch);
    drop(place);
}

/// Decides when a viewer that is too slow and loses packets is disconnected.
#[derive(Debug, Default)]
struct DropLimit {
    dropped: u64,
    looks: u32,
}

impl DropLimit {
    /// Takes the number of packets `dropped` since the start; returns whether the viewer is to be
    /// disconnected, because packets were dropped before each of the last [`BAD_LOOKS`] looks.
    fn is_exceeded(&mut self, dropped: u64) -> bool {
        self.looks = if dropped > self.dropped { self.looks + 1 } else { 0 };
        self.dropped = dropped;
        self.looks >= BAD_LOOKS
    }
}

/// The time between two looks at the packets that viewers lost.
const LOOK: Duration = Duration::from_secs(1);

/// The number of looks in a row with new drops after which a viewer is disconnected. A viewer may
/// stall for some seconds, as a modem does that changes its cell.
const BAD_LOOKS: u32 = 5;

/// The most messages that wait for one viewer, beside the messages in its send buffer.
const QUEUE: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_seconds_with_drops_exceed_the_limit() {
        let mut limit = DropLimit::default();
        for second in 1..5 {
            assert!(!limit.is_exceeded(second * 100));
        }
        assert!(limit.is_exceeded(500));
    }

    #[test]
    fn a_second_without_drops_begins_the_count_anew() {
        let mut limit = DropLimit::default();
        let dropped = [0, 10, 20, 30, 40, 40, 41, 42, 43, 44];
        assert!(!dropped.into_iter().any(|dropped| limit.is_exceeded(dropped)));
        assert!(limit.is_exceeded(45));
    }
}
