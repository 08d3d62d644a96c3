//! A destination of a route, with the connections that it has one after the other.

use std::sync::Arc;

use crate::endpoint::{Connection, Opener};
use crate::exit::Failure;
use crate::route::Shared;
use crate::route::carry::{Ended, Flow};
use crate::route::openings::Opening;
use crate::stop;

/// A destination of a route. The other destinations go on without it.
pub(super) struct Destination {
    opener: Opener,
    flow: Flow,
    opening: Opening,
}

impl Destination {
    /// A destination that `opener` opens, for the messages of `flow`.
    pub(super) const fn new(opener: Opener, flow: Flow, opening: Opening) -> Self {
        Self { opener, flow, opening }
    }

    /// Writes to one connection, with --reconnect to one after the other, until no more messages
    /// come. Without a connection messages are discarded and counted, and the live line names the
    /// destination.
    ///
    /// # Errors
    ///
    /// The failure after which the destination does not come back.
    pub(super) async fn run(self, shared: Arc<Shared>) -> Result<(), Failure> {
        let uri = self.opener.uri().clone();
        let ended = self.write_to_connections(&shared).await;
        if ended.is_err() {
            shared.live.lost(&uri);
        }
        ended
    }

    async fn write_to_connections(mut self, shared: &Shared) -> Result<(), Failure> {
        while let Some(connection) = self.next(shared).await? {
            self.opening.done();
            let uri = self.opener.uri().clone();
            if let Some(missed) = self.flow.take_missed() {
                tracing::warn!("{uri}: {missed}");
            }
            let lost = match self.flow.carry(&uri, connection, shared).await {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(&uri),
                Err(failure) => failure.at(&uri),
            };
            if !shared.returns(&uri) || shared.stop.is_told() || self.flow.has_ended() {
                return Err(lost);
            }
            self.opener.log().lost(format_args!("{lost}; waiting for it to come back"));
        }
        self.never_came_back()
    }

    /// The result if the stream ended without a connection.
    fn never_came_back(&mut self) -> Result<(), Failure> {
        let missed = self.flow.take_missed();
        let uri = self.opener.uri().clone();
        let lost = match self.opener.never_opened() {
            Some(never) => never,
            None if missed.is_none() || stop::signalled() => {
                if let Some(missed) = missed {
                    tracing::warn!("{uri}: {missed}");
                }
                return Ok(());
            }
            None => Failure::runtime("it did not come back before the end of the stream").at(&uri),
        };
        Err(match missed {
            Some(missed) => lost.with_advice(&missed),
            None => lost,
        })
    }

    /// The next connection; `None` if no more will come for it.
    async fn next(&mut self, shared: &Shared) -> Result<Option<Connection>, Failure> {
        let Self { opener, flow, .. } = self;
        let _absence = shared.live.absent(opener.uri());
        tokio::select! {
            opened = shared.stop.or(shared.open(opener)) => opened.transpose(),
            () = flow.discard() => Ok(None),
        }
    }
}
