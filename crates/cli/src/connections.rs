//! One connection after the other, several at the same time: the common part of `generate` and
//! `receive`.

use std::pin::pin;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use crate::args::ConnectionArgs;
use crate::endpoint::{Connection, Opener};
use crate::exit::Failure;
use crate::stop::Stop;
use punctual_uri::Uri;

/// A command that does the same with each of its connections.
pub(crate) trait Streams: Send + Sync + 'static {
    /// The options for the number of connections.
    fn connections(&self) -> &ConnectionArgs;

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
pub(crate) async fn run_all<C: Streams>(
    command: &Arc<C>,
    openers: impl Iterator<Item = Opener>,
) -> Result<(), Failure> {
    let mut streams = JoinSet::new();
    for opener in openers {
        let command = Arc::clone(command);
        let count = command.connections().concurrent_streams.get();
        let mut opener =
            opener.with_max_callers(count).with_reconnect(command.connections().reconnect());
        if count > 1 {
            opener = opener.with_shared_port();
        }
        streams.spawn(async move {
            let carry = |uri, connection| Arc::clone(&command).carry(uri, connection);
            run(opener, command.connections(), command.stop(), carry).await
        });
    }
    let mut result = Ok(());
    while let Some(ended) = streams.join_next().await {
        let ended = ended.unwrap_or_else(|error| Err(Failure::runtime(error.to_string())));
        result = result.and(ended);
    }
    result
}

/// Opens connections as `args` say and lets `carry` work with each, until all have ended or it is
/// time to stop.
///
/// # Errors
///
/// The first failure after which there is no other attempt.
async fn run<W>(
    mut opener: Opener,
    args: &ConnectionArgs,
    stop: &Stop,
    carry: impl Fn(Uri, Connection) -> W,
) -> Result<(), Failure>
where
    W: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let places = Arc::new(Semaphore::new(args.concurrent_streams.get()));
    let mut streams = Carried::default();
    let mut opened = 0;
    let mut failure = None;
    while args.limit().is_none_or(|limit| opened < limit) {
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
                let says = args.reconnect().then(|| Arc::clone(opener.log()));
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
        if args.close_listener() && opened >= args.concurrent_streams.get() as u64 {
            opener.close_listener();
        }
    }
    // A caller that comes now should know at once that it will not be accepted.
    opener.refuse_callers();
    let lost = streams.join().await.filter(|_| !args.reconnect());
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

/// The streams that are carried. Nothing is kept of one that has ended but the first failure: a
/// command may serve any number of callers.
#[derive(Default)]
struct Carried {
    tasks: JoinSet<Result<(), Failure>>,
    failure: Option<Failure>,
}

impl Carried {
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
        let mut streams = Carried::default();
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
