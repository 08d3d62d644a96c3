//! A destination of a route that listens and gives the stream to each of its callers.

use std::num::NonZeroUsize;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::sync::mpsc::{Sender, UnboundedReceiver, channel};

use crate::end::Opener;
use crate::failure::Failure;
use crate::route::RouteSettings;
use crate::route::batch::Batch;
use crate::route::connected_viewers::{AcceptedViewer, ConnectedViewers};
use crate::route::observer::RouteObserver;
use crate::route::openings::DestinationOpening;

/// A destination of a route that listens and gives the stream to each of its callers, from the time
/// of its call.
pub struct Viewers {
    listener: ViewerListener,
    inbox: UnboundedReceiver<Batch>,
    opening: DestinationOpening,
}

/// The listener for viewers.
struct ViewerListener {
    opener: Opener,
    /// A place for each viewer that may be connected at the same time.
    places: Arc<Semaphore>,
    limit: usize,
}

impl Viewers {
    /// A destination for at most `limit` viewers at the same time; further callers are refused.
    pub fn new(
        opener: Opener,
        limit: NonZeroUsize,
        inbox: UnboundedReceiver<Batch>,
        opening: DestinationOpening,
    ) -> Self {
        let limit = limit.get().min(Semaphore::MAX_PERMITS);
        let places = Arc::new(Semaphore::new(limit));
        let opener = opener.with_places(Arc::clone(&places));
        Self { listener: ViewerListener { opener, places, limit }, inbox, opening }
    }

    /// Accepts callers and hands out the stream until its end.
    ///
    /// # Errors
    ///
    /// The failure after which the listener accepts no more callers.
    pub async fn run<O: RouteObserver>(
        self,
        settings: Arc<RouteSettings<O>>,
    ) -> Result<(), Failure> {
        let Self { mut listener, inbox, mut opening } = self;
        let mut inbox = inbox;
        let listened = tokio::select! {
            listened = settings.stop.or(listener.opener.listen()) => listened,
            // The source may end before the port is free.
            () = async { while inbox.recv().await.is_some() {} } => None,
        };
        match listened {
            Some(listened) => listened?,
            None => return listener.opener.never_opened().map_or(Ok(()), Err),
        }
        opening.done();
        let (accepted, callers) = channel(1);
        let (name, log) = (listener.opener.uri().to_string(), listener.opener.log());
        let viewers = ConnectedViewers::new(name, Arc::clone(log), settings);
        tokio::select! {
            failure = listener.accept(accepted) => Err(failure),
            () = viewers.serve(inbox, callers) => Ok(()),
        }
    }
}

impl ViewerListener {
    /// Accepts callers for ever; returns the failure after which the listener accepts no more.
    async fn accept(&mut self, accepted: Sender<AcceptedViewer>) -> Failure {
        loop {
            let connection = match self.opener.open().await {
                Ok(connection) => connection,
                // While a viewer is connected, it is no failure that no other one calls.
                Err(failure) if failure.is_no_answer() && self.is_in_use() => continue,
                Err(failure) => return failure,
            };
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
                unreachable!("callers are accepted while there is a place, one at a time");
            };
            if accepted.send(AcceptedViewer { connection, place: Some(place) }).await.is_err() {
                return Failure::runtime("the task that sends the stream has ended");
            }
        }
    }

    fn is_in_use(&self) -> bool {
        self.places.available_permits() < self.limit
    }
}
