//! The callers that a listener accepts.

use std::sync::Arc;

use punctual::{Accepted, IncomingCall, Listener, RejectReason};
use punctual_uri::redacted_stream_id;
use tokio::sync::Semaphore;

use crate::end::EndLog;
use crate::stream_ids::AllowedStreamIds;

/// The callers that a listener accepts: by their stream IDs, and by the number of connections.
#[derive(Clone, Debug)]
pub(crate) struct AcceptedCallers {
    /// The stream IDs that are allowed; `None` for all.
    stream_ids: Option<Arc<AllowedStreamIds>>,
    /// Places for callers, one of which each connection holds; `None` for any number.
    places: Option<Arc<Semaphore>>,
    /// The most connections of the listener at the same time, which refuses further callers at
    /// once; `None` for any number.
    max_callers: Option<usize>,
}

impl Default for AcceptedCallers {
    /// Any caller, one at a time.
    fn default() -> Self {
        Self { stream_ids: None, places: None, max_callers: Some(1) }
    }
}

impl AcceptedCallers {
    /// The same, for callers with these stream IDs.
    pub(super) fn with_stream_ids(self, allowed: Arc<AllowedStreamIds>) -> Self {
        Self { stream_ids: Some(allowed), ..self }
    }

    /// The same, for no more callers than there are free places. A caller that is accepted must get
    /// one of them before the next call of [`accept`](Self::accept).
    pub(super) fn with_places(self, places: Arc<Semaphore>) -> Self {
        Self { places: Some(places), max_callers: None, ..self }
    }

    /// The same, for at most this number of connections at the same time.
    pub(super) fn with_max_callers(self, max_callers: usize) -> Self {
        Self { max_callers: Some(max_callers), ..self }
    }

    /// The most connections of the listener at the same time, if that is limited.
    pub(super) const fn max_callers(&self) -> Option<usize> {
        self.max_callers
    }

    /// Waits for the next caller that is accepted; others are refused with a code. If `listener`
    /// accepts groups, the first link of a group is its caller, and further links join by
    /// themselves.
    ///
    /// Cancel safe.
    pub(super) async fn accept(
        &self,
        listener: &Listener,
        log: &EndLog,
    ) -> Result<Accepted, punctual::Error> {
        loop {
            let call = listener.incoming().await?;
            let remote = call.remote();
            if let Err(reason) = self.check(&call) {
                let id = redacted_stream_id(call.stream_id());
                let id = id.escape_debug();
                let why = format_args!("{remote} was refused, stream ID `{id}`: {reason}");
                log.refused(why);
                call.reject(reason);
                continue;
            }
            let answer = match call.group() {
                Some(_) => call.accept_group().map(|group| group.map(Accepted::Group)),
                None => call.accept().await.map(|socket| Some(Accepted::Socket(socket))),
            };
            match answer {
                Ok(Some(accepted)) => return Ok(accepted),
                Ok(None) => {}
                Err(punctual::Error::Accept(reason)) => {
                    log.refused(format_args!("{remote} was not accepted: {reason}"));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn check(&self, call: &IncomingCall) -> Result<(), RejectReason> {
        if let Some(allowed) = &self.stream_ids {
            allowed.check(call.stream_id())?;
        }
        match &self.places {
            Some(places) if places.available_permits() == 0 => Err(RejectReason::OVERLOAD),
            _ => Ok(()),
        }
    }
}
