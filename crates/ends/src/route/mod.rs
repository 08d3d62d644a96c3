//! The parts that carry messages from the source of a stream to its destinations.
//!
//! A [`Source`] reads from one connection after the other into a [`Fanout`], which has an [`Inbox`]
//! for each consumer: a [`Destination`], a [`ResumableDestination`] whose stream outlives its
//! connections, or the [`Viewers`] of a listener. A [`SinkSpool`] stands before a destination that
//! may be slow. [`Openings`] let the source begin when its destinations are there.

mod batch;
mod carry;
mod connected_viewers;
mod destination;
mod fanout;
mod gather;
mod kept_stream;
mod observer;
mod openings;
mod resumable;
mod room;
mod sink_spool;
mod source;
mod viewers;

use punctual_uri::{Target, Uri};

use crate::end::{Connection, Opener};
use crate::failure::Failure;
use crate::stop::Stop;

pub use batch::Batch;
pub use carry::{Ended, Flow};
pub use connected_viewers::{AcceptedViewer, ConnectedViewers};
pub use destination::Destination;
pub use fanout::{CutOff, CutOffReason, Fanout, Inbox, WhenFull};
pub use gather::gather_for;
pub use kept_stream::{KeptStream, SpoolFile};
pub use observer::{RouteObserver, StreamDirection};
pub use openings::{DestinationOpening, Openings};
pub use resumable::ResumableDestination;
pub use sink_spool::{Members, SinkSpool};
pub use source::Source;
pub use viewers::Viewers;

/// The settings that all ends of a route share.
#[derive(Debug, Default)]
pub struct RouteSettings<O> {
    /// Sees each connection.
    pub observer: O,
    /// Ends the route.
    pub stop: Stop,
    /// Whether an end is opened again after it was lost.
    pub reconnect: bool,
    /// Whether a listener is closed once it has a connection.
    pub close_listener: bool,
}

impl<O: RouteObserver> RouteSettings<O> {
    /// Opens a connection; tries again until that succeeds if `opener` reconnects.
    async fn open(&self, opener: &mut Opener) -> Result<Connection, Failure> {
        let connection = opener.open().await?;
        if self.close_listener {
            opener.close_listener();
        }
        Ok(connection)
    }

    /// Whether the end that `uri` names is opened again after it was lost.
    fn returns(&self, uri: &Uri) -> bool {
        self.reconnect && !matches!(uri.target, Target::File(_) | Target::Stdio)
    }
}
