//! The viewers of a stream.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use punctual::Outgoing;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver};
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

use crate::end::{Connection, EndLog, MessageTraffic, SrtEnd, SrtWriter};
use crate::route::RouteSettings;
use crate::route::batch::Batch;
use crate::route::observer::{RouteObserver, StreamDirection};

/// A caller that was accepted as a viewer.
pub struct AcceptedViewer {
    /// Its connection.
    pub connection: Connection,
    /// The place among a limited number of viewers that it holds until its connection has ended.
    pub place: Option<OwnedSemaphorePermit>,
}

/// The viewers that get a stream at present, each from the time of its call. One that does not keep
/// up delays no other, and is disconnected.
pub struct ConnectedViewers<O> {
    /// The name of the stream in the log.
    name: String,
    log: Arc<EndLog>,
    settings: Arc<RouteSettings<O>>,
    viewers: Vec<Viewer>,
    /// A task for each viewer, until its connection has ended.
    tasks: JoinSet<()>,
}

/// One viewer.
struct Viewer {
    name: String,
    end: SrtEnd,
    writer: SrtWriter,
    traffic: Arc<MessageTraffic>,
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

impl<O: RouteObserver> ConnectedViewers<O> {
    /// No viewers yet of the stream of this name, whose connections are told to `log`.
    pub fn new(name: String, log: Arc<EndLog>, settings: Arc<RouteSettings<O>>) -> Self {
        Self { name, log, settings, viewers: Vec::new(), tasks: JoinSet::new() }
    }

    /// Hands out the messages of `inbox` to the viewers, and takes in further `callers`, until no
    /// more messages come; then waits until the buffered messages have been sent.
    pub async fn serve(
        mut self,
        mut inbox: UnboundedReceiver<Batch>,
        mut callers: Receiver<AcceptedViewer>,
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

    fn add(&mut self, AcceptedViewer { connection, place }: AcceptedViewer) {
        let (disconnect, command) = oneshot::channel();
        if let Some(viewer) = Viewer::new(&connection, disconnect) {
            let name = format!("{}, viewer {}", self.name, viewer.name);
            self.viewers.push(viewer);
            self.tasks.spawn(serve_viewer(
                name,
                connection,
                command,
                place,
                Arc::clone(&self.settings),
            ));
        }
    }

    fn disconnect_slow(&mut self) {
        for viewer in self.viewers.extract_if(.., Viewer::is_too_slow) {
            self.log.lost(format_args!(
                "{}: viewer {} takes the stream too slowly, {} packets were dropped for it: it is \
                 disconnected",
                self.name,
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
            writer: connection.writer.to_same_peer()?,
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
        // Messages without room are tried again with the next ones, which come soon.
        let is_there = self.writer.try_write(&mut self.queue).is_ok();
        let excess = self.queue.len().saturating_sub(QUEUE);
        self.queue.drain(..excess);
        self.missed += excess as u64;
        is_there
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

/// Serves one viewer until its connection ends: reads and discards its messages, while the observer
/// sees the connection.
async fn serve_viewer<O: RouteObserver>(
    name: String,
    connection: Connection,
    command: oneshot::Receiver<Disconnect>,
    place: Option<OwnedSemaphorePermit>,
    settings: Arc<RouteSettings<O>>,
) {
    let observed = connection.observed();
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
    settings.observer.observe(&name, &observed, StreamDirection::Out, work).await;
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
