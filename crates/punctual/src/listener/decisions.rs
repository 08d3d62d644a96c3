//! Concurrent decisions on callers.

use std::sync::Arc;
use std::time::Duration;

use punctual_proto::{Config, RejectReason};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::Listener;
use crate::accept::AcceptQueue;
use crate::caller_log::RefusedCaller;
use crate::error::Error;
use crate::incoming_call::{Accepted, CallerInfo, IncomingCall};

/// Decides on the callers of a listener, on many at the same time, so that a slow decision delays
/// no other caller. A decision consists of the options for a caller and a value for the user of the
/// connection.
#[derive(Debug)]
pub(crate) struct Decisions<T> {
    listener: Listener,
    running: JoinSet<Option<(Accepted, T)>>,
    /// The largest number of decisions at the same time.
    limit: usize,
    /// The time limit of each decision.
    deadline: Duration,
}

impl<T: Send + 'static> Decisions<T> {
    pub(crate) fn new(listener: Listener) -> Self {
        Self { listener, running: JoinSet::new(), limit: LIMIT, deadline: DEADLINE }
    }

    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit.max(1);
    }

    pub(crate) fn set_deadline(&mut self, deadline: Duration) {
        self.deadline = deadline;
    }

    pub(crate) fn listener(&self) -> &Listener {
        &self.listener
    }

    /// Waits for the next caller that `hook` accepts, and returns it with the hook's value. Cancel
    /// safe.
    ///
    /// Errors: [`Error::Stopped`] when the runtime is shut down.
    pub(crate) async fn next<D>(
        &mut self,
        hook: impl Fn(CallerInfo) -> D,
    ) -> Result<(Accepted, T), Error>
    where
        D: Future<Output = Result<(Config, T), RejectReason>> + Send + 'static,
    {
        loop {
            tokio::select! {
                Some(decided) = self.running.join_next() => match decided {
                    Ok(Some(accepted)) => return Ok(accepted),
                    Ok(None) => {}
                    // The call was dropped with the hook's task, and so rejected.
                    Err(error) => tracing::warn!(%error, "a decision on a caller failed"),
                },
                call = self.listener.incoming(), if self.running.len() < self.limit => {
                    let call = call?;
                    let decision = hook(call.info());
                    let callers = Arc::clone(self.listener.callers());
                    self.running.spawn(decide(callers, call, decision, self.deadline));
                }
            }
        }
    }
}

/// Answers a caller as the hook decides.
async fn decide<T>(
    callers: Arc<AcceptQueue>,
    call: IncomingCall,
    decision: impl Future<Output = Result<(Config, T), RejectReason>>,
    deadline: Duration,
) -> Option<(Accepted, T)> {
    let (remote, stream_id) = (call.remote(), call.stream_id().to_owned());
    let decided = timeout(deadline, decision).await.unwrap_or(Err(RejectReason::GATEWAY_TIMEOUT));
    match decided {
        Ok((config, value)) => match call.answer_any(Some(config)) {
            Ok(accepted) => return accepted.map(|accepted| (accepted, value)),
            Err(Error::Accept(reason)) => callers.log().not_accepted(remote, &stream_id, &reason),
            Err(error) => callers.log().failed(remote, &error),
        },
        Err(reason) => {
            callers.log().refused(RefusedCaller { remote, stream_id, reason, by_hook: true });
            call.reject(reason);
        }
    }
    None
}

const LIMIT: usize = 1_024;
const DEADLINE: Duration = Duration::from_secs(10);
