//! One end of a route: a source or a destination, with the connections that it has one after the
//! other.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender};
use tokio::time::sleep;

use crate::endpoint::{Connection, Opener, Reader, Traffic, Writer};
use crate::exit::Failure;
use crate::live::{Live, Way};
use crate::stats::StatsFile;
use crate::stop::Stop;
use punctual_uri::Target;

/// What all ends of a route share.
pub(crate) struct Shared {
    pub(crate) stats: Option<StatsFile>,
    pub(crate) live: Live,
    pub(crate) stop: Stop,
    pub(crate) reconnect: bool,
    pub(crate) close_listener: bool,
}

impl Shared {
    /// Opens a connection; with --reconnect it tries again, once a second, until it succeeds.
    pub(crate) async fn open(&self, opener: &mut Opener) -> Result<Connection, Failure> {
        loop {
            match opener.open().await {
                Ok(connection) => {
                    if self.close_listener {
                        opener.close_listener();
                    }
                    return Ok(connection);
                }
                Err(failure) if self.reconnect && !failure.is_usage() => {
                    tracing::warn!("{failure}; trying again");
                    sleep(PAUSE).await;
                }
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// Messages that are handed over at once.
pub(crate) type Batch = Vec<Bytes>;

/// Where an end's messages go to.
pub(crate) struct Outbox {
    /// Who gets them; nobody if they are thrown away.
    sinks: Vec<Sender<Batch>>,
    /// Whether they wait for everyone. Else who is too slow misses some, and holds nobody up.
    waits: bool,
    missed: usize,
}

impl Outbox {
    /// To each of `sinks`; a live source with several does not wait for the slow ones.
    pub(crate) fn new(sinks: Vec<Sender<Batch>>, is_live: bool) -> Self {
        let waits = sinks.len() == 1 || !is_live;
        Self { sinks, waits, missed: 0 }
    }

    /// Hands messages over; `false` if nobody is left who takes them.
    async fn send(&mut self, batch: &Batch) -> bool {
        if self.sinks.is_empty() {
            return true;
        }
        let mut gone = Vec::new();
        for (place, sink) in self.sinks.iter().enumerate() {
            let is_gone = if self.waits {
                sink.send(batch.clone()).await.is_err()
            } else {
                match sink.try_send(batch.clone()) {
                    Ok(()) => false,
                    Err(TrySendError::Full(_)) => {
                        self.missed += batch.len();
                        false
                    }
                    Err(TrySendError::Closed(_)) => true,
                }
            };
            gone.extend(is_gone.then_some(place));
        }
        for place in gone.into_iter().rev() {
            self.sinks.remove(place);
        }
        !self.sinks.is_empty()
    }

    /// Completes when nobody is left who takes messages; never if nobody was there ever.
    fn abandoned(&self) -> impl Future<Output = ()> + use<> {
        let sinks = self.sinks.clone();
        async move {
            for sink in &sinks {
                sink.closed().await;
            }
            if sinks.is_empty() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// One end of a route.
pub(crate) struct End {
    pub(crate) opener: Opener,
    /// Which way the stream goes here.
    pub(crate) way: Way,
    /// What is to be written.
    pub(crate) inbox: Option<Receiver<Batch>>,
    /// Where it goes what is read.
    pub(crate) outbox: Outbox,
}

/// How work with a connection ended.
enum Ended {
    /// There is no more to do here.
    Done,
    /// The peer, or the end of a file, ended it.
    ByPeer,
}

impl End {
    /// Works with `connection`, and with --reconnect with those that follow it.
    pub(crate) async fn run(
        mut self,
        mut connection: Connection,
        shared: Arc<Shared>,
    ) -> Result<(), Failure> {
        loop {
            let ended = self.carry(connection, &shared).await;
            let uri = self.opener.uri();
            let returns =
                shared.reconnect && !matches!(uri.target, Target::File(_) | Target::Stdio);
            let lost = match ended {
                Ok(Ended::Done) => return Ok(()),
                // A source that ends is done; a destination that does has gone away.
                Ok(Ended::ByPeer) if self.way == Way::In && !returns => return Ok(()),
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(uri),
                Err(failure) => failure.at(uri),
            };
            if !returns || shared.stop.is_told() {
                return Err(lost);
            }
            tracing::warn!("{lost}; waiting for it to come back");
            match shared.stop.or(self.reopen(&shared)).await.transpose()?.flatten() {
                Some(reopened) => connection = reopened,
                None => return Ok(()),
            }
        }
    }

    /// Opens the next connection. What comes for it meanwhile is thrown away; if no more will come,
    /// there is none.
    async fn reopen(&mut self, shared: &Shared) -> Result<Option<Connection>, Failure> {
        let Self { opener, inbox, .. } = self;
        let open = async {
            sleep(PAUSE).await;
            shared.open(opener).await
        };
        let discard = async {
            match inbox {
                Some(inbox) => while inbox.recv().await.is_some() {},
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            opened = open => opened.map(Some),
            () = discard => Ok(None),
        }
    }

    /// Works with one connection until it ends.
    async fn carry(&mut self, connection: Connection, shared: &Shared) -> Result<Ended, Failure> {
        let watch = shared.live.watch(self.opener.uri(), &connection, self.way);
        let Connection { mut reader, mut writer, socket, traffic, .. } = connection;
        let Self { way, inbox, outbox, .. } = self;
        let (read_traffic, write_traffic) = match way {
            Way::In => (Some(&*traffic), None),
            Way::Out => (None, Some(&*traffic)),
        };
        let is_source = *way == Way::In;
        let abandoned = outbox.abandoned();
        let work = async {
            let ended = tokio::select! {
                biased;
                result = write_all(&mut writer, inbox, write_traffic) => {
                    result.map(|()| Ended::Done)
                }
                result = read_all(&mut reader, outbox, read_traffic) => result,
                () = abandoned, if is_source => Ok(Ended::Done),
                () = shared.stop.told(), if is_source => Ok(Ended::Done),
            };
            writer.close().await;
            ended
        };
        let ended = match (&shared.stats, &socket) {
            (Some(stats), Some(socket)) => stats.observe(socket, work).await,
            _ => work.await,
        };
        drop(watch);
        ended
    }
}

/// Writes what comes, until nothing more will; forever if nothing is to be written here.
async fn write_all(
    writer: &mut Writer,
    inbox: &mut Option<Receiver<Batch>>,
    traffic: Option<&Traffic>,
) -> Result<(), Failure> {
    let Some(inbox) = inbox else { return std::future::pending().await };
    let mut waiting = VecDeque::new();
    while let Some(batch) = inbox.recv().await {
        count(traffic, &batch);
        waiting.extend(batch);
        writer.write(&mut waiting).await?;
    }
    Ok(())
}

/// Reads and hands over, until the peer ends it or nobody takes it any more.
async fn read_all(
    reader: &mut Reader,
    outbox: &mut Outbox,
    traffic: Option<&Traffic>,
) -> Result<Ended, Failure> {
    let mut batch = Vec::new();
    while reader.read(&mut batch).await? {
        count(traffic, &batch);
        if !outbox.send(&batch).await {
            return Ok(Ended::Done);
        }
        batch.clear();
    }
    if outbox.missed > 0 {
        let missed = outbox.missed;
        tracing::warn!("{missed} messages were left out at destinations that were too slow");
    }
    Ok(Ended::ByPeer)
}

fn count(traffic: Option<&Traffic>, batch: &[Bytes]) {
    if let Some(traffic) = traffic {
        batch.iter().for_each(|message| traffic.count(message.len()));
    }
}

/// The least time from one attempt to connect to the next.
const PAUSE: Duration = Duration::from_secs(1);
