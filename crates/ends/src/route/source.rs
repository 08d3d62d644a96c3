//! The source of a route, with the connections that it has one after the other.

use std::pin::pin;
use std::sync::Arc;

use crate::end::{Connection, Opener};
use crate::failure::Failure;
use crate::route::RouteSettings;
use crate::route::carry::{Ended, Flow};
use crate::route::observer::RouteObserver;
use crate::route::openings::{DestinationWait, Openings};
use punctual_uri::Uri;

/// The source of a route.
pub struct Source {
    opener: Opener,
    flow: Flow,
    openings: Openings,
}

impl Source {
    /// A source that `opener` opens, for the consumers of `flow`, which begins when the
    /// destinations of `openings` are there.
    pub const fn new(opener: Opener, flow: Flow, openings: Openings) -> Self {
        Self { opener, flow, openings }
    }

    /// Reads from one connection, if the settings reconnect from one after the other, until the
    /// stream has ended or no consumer is left.
    ///
    /// # Errors
    ///
    /// The failure after which the source does not come back.
    pub async fn run<O: RouteObserver>(
        mut self,
        settings: Arc<RouteSettings<O>>,
    ) -> Result<(), Failure> {
        let Some(mut connection) = self.first(&settings).await? else { return Ok(()) };
        loop {
            let uri = self.opener.uri().clone();
            let (ended, follower) = self.carry(&uri, connection, &settings).await;
            let lost = match ended {
                Ok(Ended::Done) => return Ok(()),
                // A source that ends is done, unless another stream may follow.
                Ok(Ended::ByPeer) if !settings.returns(&uri) || settings.stop.is_told() => {
                    return Ok(());
                }
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(&uri),
                Err(failure) => failure.at(&uri),
            };
            if !settings.returns(&uri) || settings.stop.is_told() {
                return Err(lost);
            }
            if let Some(follower) = follower {
                self.opener.log().lost(&lost);
                connection = follower?;
                continue;
            }
            self.opener.log().lost(format_args!("{lost}; waiting for it to come back"));
            match self.next(&settings).await? {
                Some(reopened) => connection = reopened,
                None => return Ok(()),
            }
        }
    }

    /// Reads from `connection` until it ends. While the rest of a stream is delivered whose sender
    /// is gone, a listener lets in the next caller, often the same program, started again; its
    /// connection is returned as well.
    async fn carry<O: RouteObserver>(
        &mut self,
        uri: &Uri,
        connection: Connection,
        settings: &RouteSettings<O>,
    ) -> (Result<Ended, Failure>, Option<Result<Connection, Failure>>) {
        let Self { opener, flow, .. } = self;
        let (name, peer_gone) = (uri.to_string(), connection.peer_gone());
        let mut carry = pin!(flow.carry(&name, connection, settings));
        // A resumed stream has one connection at a time, whose caller is examined by its place.
        if !settings.returns(uri) || !opener.listens_for_srt() || opener.is_resumed() {
            return (carry.await, None);
        }
        let follower = tokio::select! {
            ended = &mut carry => return (ended, None),
            opened = async {
                peer_gone.await;
                settings.open(opener).await
            } => opened,
        };
        (carry.await, Some(follower))
    }

    /// The first connection, when the destinations are ready; `None` if it is time to stop first,
    /// or no consumer is left.
    async fn first<O: RouteObserver>(
        &mut self,
        settings: &RouteSettings<O>,
    ) -> Result<Option<Connection>, Failure> {
        let Some(mut connection) = self.next(settings).await? else { return Ok(None) };
        let uri = self.opener.uri();
        let begin = self.openings.begin(uri, DestinationWait::of(uri));
        if settings.stop.or(begin).await.is_none() {
            connection.writer.close().await;
            return Ok(None);
        }
        connection.reader.skip_old().await;
        Ok(Some(connection))
    }

    async fn next<O: RouteObserver>(
        &mut self,
        settings: &RouteSettings<O>,
    ) -> Result<Option<Connection>, Failure> {
        let abandoned = self.flow.outbox.abandoned();
        let open = settings.open(&mut self.opener);
        let opened = tokio::select! {
            opened = settings.stop.or(open) => opened,
            () = abandoned => return Ok(None),
            // In both directions the other end's messages have no destination meanwhile.
            () = self.flow.discard() => return Ok(None),
        };
        match opened {
            Some(opened) => opened.map(Some),
            None => self.opener.never_opened().map_or(Ok(None), Err),
        }
    }
}
