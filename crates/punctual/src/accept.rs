//! The queue of callers that wait for an answer.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_proto::IncomingId;
use tokio::sync::Notify;

use crate::listener::IncomingCall;
use crate::shared::Shared;

/// Callers of all shards of a listener in the order of their coming. No longer than the shards'
/// backlogs together: the machine rejects the rest.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    calls: Mutex<VecDeque<IncomingCall>>,
    arrived: Notify,
}

impl AcceptQueue {
    pub(crate) fn push(&self, call: IncomingCall) {
        self.lock().push_back(call);
        self.signal();
    }

    /// Removes a caller of the shard `port` that gave up, if it is still here.
    pub(crate) fn remove(&self, port: &Arc<Shared>, id: IncomingId) {
        let gone = {
            let mut calls = self.lock();
            let place = calls.iter().position(|call| call.is(port, id));
            place.and_then(|place| calls.remove(place))
        };
        // Dropped here, without the lock: there is nobody left to reject.
        drop(gone);
    }

    /// Takes the next caller, or waits until there may be one or `stopped` says that there will
    /// not.
    pub(crate) async fn pop(&self, stopped: impl Fn() -> bool) -> Option<IncomingCall> {
        loop {
            let arrived = {
                let mut calls = self.lock();
                if let Some(call) = calls.pop_front() {
                    return Some(call);
                }
                self.arrived.notified()
            };
            if stopped() {
                return None;
            }
            arrived.await;
        }
    }

    /// Takes all callers.
    pub(crate) fn take(&self) -> VecDeque<IncomingCall> {
        std::mem::take(&mut self.lock())
    }

    pub(crate) fn signal(&self) {
        self.arrived.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<IncomingCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
