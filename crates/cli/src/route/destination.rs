//! A destination of a route, with the connections that it has one after the other.

use std::sync::Arc;

use crate::endpoint::{Connection, Opener};
use crate::exit::Failure;
use crate::route::Shared;
use crate::route::carry::{Ended, Flow};
use crate::route::openings::Opening;

/// A destination of a route. The other destinations go on without it.
pub(super) struct Destination {
    pub(super) opener: Opener,
    pub(super) flow: Flow,
    pub(super) opening: Opening,
}

impl Destination {
    /// Writes to one connection, with --reconnect to one after the other, until no more messages
    /// come. Without a connection messages are discarded, and the live line names the destination.
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
            let lost = match self.flow.carry(&uri, connection, shared).await {
                Ok(Ended::Done) => return Ok(()),
                Ok(Ended::ByPeer) => Failure::runtime("the peer ended the connection").at(&uri),
                Err(failure) => failure.at(&uri),
            };
            if !shared.returns(&uri) || shared.stop.is_told() {
                return Err(lost);
            }
            self.opener.log().lost(format_args!("{lost}; waiting for it to come back"));
        }
        Ok(())
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
