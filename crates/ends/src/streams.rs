//! A stream over each connection of some ends: one connection after the other, and several at the
//! same time.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use crate::end::{Connection, Opener};
use crate::failure::Failure;
use crate::stop::Stop;
use punctual_uri::Uri;

/// The number of connections of an end, and the reaction to the end of one.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionLimits {
    /// The most connections at the same time.
    pub at_once: NonZeroUsize,
    /// The most connections in all; `None` for any number.
    pub in_all: Option<u64>,
    /// Whether another connection follows one that ended or failed.
    pub reconnect: bool,
    /// Whether a listener is closed once it has as many connections as it may have at once.
    pub close_listener: bool,
}

/// Work that is the same with each connection.
pub trait Streams: Send + Sync + 'static {
    /// The number of connections of each end.
    fn limits(&self) -> ConnectionLimits;

    /// Tells when it is time to stop.
    fn stop(&self) -> &Stop;

    /// Carries the stream of one connection to its end.
    fn carry(
        self: Arc<Self>,
        uri: Uri,
        connection: Connection,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// Opens the connections of all openers at the same time, until all streams have ended.
///
/// # Errors
///
/// The failure of the first opener that failed.
pub async fn carry_all<C: Streams>(
    streams: &Arc<C>,
    openers: impl Iterator<Item = Opener>,
) -> Result<(), Failure> {
    let limits = streams.limits();
    let mut ends = JoinSet::new();
    for opener in openers {
        let streams = Arc::clone(streams);
        let count = limits.at_once.get();
        let opener = opener.with_max_callers(count).with_stop(streams.stop().clone());
        let mut opener = opener.with_reconnect(limits.reconnect);
        if count > 1 {
            opener = opener.with_shared_port();
        }
        ends.spawn(async move {
            let carry = |uri, connection| Arc::clone(&streams).carry(uri, connection);
            carry_each(opener, limits, streams.stop(), carry).await
        });
    }
    let mut result = Ok(());
    while let Some(ended) = ends.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(Failure::runtime(error.to_string())));
        result = result.and(ended);
    }
    result
}

/// Opens connections within their `limits` and lets `carry` work with each, until all have ended or
/// it is time to stop.
///
/// # Errors
///
/// The first failure after which there is no other attempt.
async fn carry_each<W>(
    mut opener: Opener,
    limits: ConnectionLimits,
    stop: &Stop,
    carry: impl Fn(Uri, Connection) -> W,
) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(limits.at_once.get()));
    let mut streams = CarriedStreams::default();
    let mut opened = 0;
    let mut failure = None;
    while limits.in_all.is_none_or(|limit| opened < limit) {
        let Some(place) = stop.or(Arc::clone(&places).acquire_owned()).await else { break };
        let place = place.expect("the semaphore is never closed");
        match stop.or(opener.open()).await {
            None => {
                failure = opener.never_opened();
                break;
            }
            Some(Ok(connection)) => {
                opened += 1;
                let uri = opener.uri().clone();
                let peer_gone = connection.peer_gone();
                let stream = hold(place, peer_gone, carry(uri.clone(), connection));
                let says = limits.reconnect.then(|| Arc::clone(opener.log()));
                streams.begin(async move {
                    let result = stream.await.map_err(|failure| failure.at(uri));
                    if let (Err(failure), Some(log)) = (&result, says) {
                        log.lost(failure);
                    }
                    result
                });
            }
            Some(Err(error)) => {
                failure = Some(error);
                break;
            }
        }
        if limits.close_listener && opened >= limits.at_once.get() as u64 {
            opener.close_listener();
        }
    }
    // A caller that comes now should know at once that it will not be accepted.
    opener.refuse_callers();
    let lost = streams.join().await.filter(|_| !limits.reconnect);
    failure.or(lost).map_or(Ok(()), Err)
}

/// Carries `stream`, which holds `place` until its peer is gone. While the rest of the stream is
/// delivered, the next caller is let in: often the same program, started again.
async fn hold<T>(
    place: OwnedSemaphorePermit,
    peer_gone: impl Future<Output = ()>,
    stream: impl Future<Output = T>,
) -> T {
    let mut stream = pin!(stream);
    tokio::select! {
        result = &mut stream => return result,
        () = peer_gone => drop(place),
    }
    stream.await
}

/// The streams that are carried. Nothing is kept of one that has ended but the first failure: there
/// may be any number of callers.
#[derive(Default)]
struct CarriedStreams {
    tasks: JoinSet<Result<(), Failure>>,
    failure: Option<Failure>,
}

impl CarriedStreams {
    fn begin(&mut self, stream: impl Future<Output = Result<(), Failure>> + Send + 'static) {
        while let Some(ended) = self.tasks.try_join_next() {
            self.end(ended);
        }
        self.tasks.spawn(stream);
    }

    fn end(&mut self, ended: Result<Result<(), Failure>, JoinError>) {
        let result = ended.unwrap_or_else(|error| Err(Failure::runtime(error.to_string())));
        if self.failure.is_none() {
            self.failure = result.err();
        }
    }

    /// Waits for all streams to end. Returns the failure of the first one that failed.
    async fn join(mut self) -> Option<Failure> {
        while let Some(ended) = self.tasks.join_next().await {
            self.end(ended);
        }
        self.failure
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ended_streams_leave_nothing_but_the_first_failure() {
        let mut streams = CarriedStreams::default();
        for number in 0..1_000 {
            streams.begin(async move {
                if number < 2 { Err(Failure::runtime(format!("stream {number}"))) } else { Ok(()) }
            });
            assert!(streams.tasks.len() <= 2, "{} after stream {number}", streams.tasks.len());
            tokio::task::yield_now().await;
        }
        let failure = streams.join().await.map(|failure| failure.to_string());
        assert_eq!(failure.as_deref(), Some("stream 0"));
    }
}
