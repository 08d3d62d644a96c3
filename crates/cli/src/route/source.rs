//! The source of a route, with the connections that it has one after the other.

use std::pin::pin;
use std::sync::Arc;

use crate::endpoint::{Connection, Opener};
use crate::exit::Failure;
use crate::route::Shared;
use crate::route::carry::{Ended, Flow};
use crate::route::openings::{DestinationWait, Openings};
use punctual_uri::Uri;

/// The source of a route.
pub(super) struct Source {
    pub(super) opener: Opener,
    pub(super) flow: Flow,
    pub(super) openings: Openings,
}

impl Source {
    /// Reads from one connection, with --reconnect from one after the other, until the stream has
    /// ended or no consumer is left.
    pub(super) async fn run(mut self, shared: Arc<Shared>) -> Result<(), Failure> {
        let Some(mut connection) = self.first(&shared).await? else { return Ok(()) };
        loop {
            let uri = self.opener.uri().clone();
            let (ended, follower) = self.carry(&uri, connection, &shared).await;
            let lost = match ended {
                Ok(Ended::Done) => return Ok(()),
                // A source that ends is done, unless another stream may follow.
                Ok(Ended::ByPeer) if !shared.returns(&uri) || shared.stop.is_told() => {
                    return Ok(());
                }
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(&uri),
                Err(failure) => failure.at(&uri),
            };
            if !shared.returns(&uri) || shared.stop.is_told() {
                return Err(lost);
            }
            if let Some(follower) = follower {
                self.opener.log().lost(&lost);
                connection = follower?;
                continue;
            }
            self.opener.log().lost(format_args!("{lost}; waiting for it to come back"));
            match self.next(&shared).await? {
                Some(reopened) => connection = reopened,
                None => return Ok(()),
            }
        }
    }

    /// Reads from `connection` until it ends. While the rest of a stream is delivered whose sender
    /// is gone, a listener lets in the next caller, often the same program, started again; its
    /// connection is returned as well.
    async fn carry(
        &mut self,
        uri: &Uri,
        connection: Connection,
        shared: &Shared,
    ) -> (Result<Ended, Failure>, Option<Result<Connection, Failure>>) {
        let Self { opener, flow, .. } = self;
        let peer_gone = connection.peer_gone();
        let mut carry = pin!(flow.carry(uri, connection, shared));
        // A resumed stream has one connection at a time, whose caller is examined by its place.
        if !shared.returns(uri) || !opener.listens_for_srt() || opener.is_resumed() {
            return (carry.await, None);
        }
        let follower = tokio::select! {
            ended = &mut carry => return (ended, None),
            opened = async {
                peer_gone.await;
                shared.open(opener).await
            } => opened,
        };
        (carry.await, Some(follower))
    }

    /// The first connection, when the destinations are ready; `None` if it is time to stop first,
    /// or no consumer is left.
    async fn first(&mut self, shared: &Shared) -> Result<Option<Connection>, Failure> {
        let Some(mut connection) = self.next(shared).await? else { return Ok(None) };
        let uri = self.opener.uri();
        let begin = self.openings.begin(uri, DestinationWait::of(uri));
        if shared.stop.or(begin).await.is_none() {
            connection.writer.close().await;
            return Ok(None);
        }
        connection.reader.skip_old().await;
        Ok(Some(connection))
    }

    async fn next(&mut self, shared: &Shared) -> Result<Option<Connection>, Failure> {
        let abandoned = self.flow.outbox.abandoned();
        let open = shared.open(&mut self.opener);
        let opened = tokio::select! {
            opened = shared.stop.or(open) => opened,
            () = abandoned => return Ok(None),
            // With --bidir the other end's messages have no destination meanwhile.
            () = self.flow.discard() => return Ok(None),
        };
        match opened {
            Some(opened) => opened.map(Some),
            None => self.opener.never_opened().map_or(Ok(None), Err),
        }
    }
}
