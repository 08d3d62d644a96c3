//! A destination of a route, with the connections that it has one after the other.

use std::sync::Arc;

use crate::end::{Connection, Opener};
use crate::failure::Failure;
use crate::route::RouteSettings;
use crate::route::carry::{Ended, Flow};
use crate::route::observer::RouteObserver;
use crate::route::openings::DestinationOpening;
use crate::stop::Stop;

/// A destination of a route. The other destinations go on without it.
pub struct Destination {
    opener: Opener,
    flow: Flow,
    opening: DestinationOpening,
}

impl Destination {
    /// A destination that `opener` opens, for the messages of `flow`.
    pub const fn new(opener: Opener, flow: Flow, opening: DestinationOpening) -> Self {
        Self { opener, flow, opening }
    }

    /// Writes to one connection, if the settings reconnect to one after the other, until no more
    /// messages come. Without a connection messages are discarded and counted, and the observer is
    /// told.
    ///
    /// # Errors
    ///
    /// The failure after which the destination does not come back.
    pub async fn run<O: RouteObserver>(
        self,
        settings: Arc<RouteSettings<O>>,
    ) -> Result<(), Failure> {
        let uri = self.opener.uri().clone();
        let ended = self.write_to_connections(&settings).await;
        if ended.is_err() {
            settings.observer.lost(&uri);
        }
        ended
    }

    async fn write_to_connections<O: RouteObserver>(
        mut self,
        settings: &RouteSettings<O>,
    ) -> Result<(), Failure> {
        while let Some(connection) = self.next(settings).await? {
            self.opening.done();
            let uri = self.opener.uri().clone();
            if let Some(missed) = self.flow.take_missed() {
                tracing::warn!("{uri}: {missed}");
            }
            let lost = match self.flow.carry(&uri.to_string(), connection, settings).await {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(&uri),
                Err(failure) => failure.at(&uri),
            };
            if !settings.returns(&uri) || settings.stop.is_told() || self.flow.has_ended() {
                return Err(lost);
            }
            self.opener.log().lost(format_args!("{lost}; waiting for it to come back"));
        }
        self.never_came_back(&settings.stop)
    }

    /// The result if the stream ended without a connection.
    fn never_came_back(&mut self, stop: &Stop) -> Result<(), Failure> {
        let missed = self.flow.take_missed();
        let uri = self.opener.uri().clone();
        let lost = match self.opener.never_opened() {
            Some(never) => never,
            None if missed.is_none() || stop.is_interrupted() => {
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
    async fn next<O: RouteObserver>(
        &mut self,
        settings: &RouteSettings<O>,
    ) -> Result<Option<Connection>, Failure> {
        let Self { opener, flow, .. } = self;
        let _absence = settings.observer.absent(opener.uri());
        tokio::select! {
            opened = settings.stop.or(settings.open(opener)) => opened.transpose(),
            () = flow.discard() => Ok(None),
        }
    }
}
