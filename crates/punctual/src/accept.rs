//! The queue of callers that wait for an answer.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use punctual_proto::{Config, GroupOffer, IncomingId};
use tokio::sync::Notify;

use crate::caller_log::CallerLog;
use crate::error::Error;
use crate::group::{self, Group};
use crate::listener::IncomingCall;
use crate::shared::Shared;

/// Callers of all shards of a listener in the order of their coming. No longer than the shards'
/// backlogs together: the machine rejects the rest.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    calls: Mutex<VecDeque<IncomingCall>>,
    arrived: Notify,
    /// Groups that were accepted here, whose further links join by themselves.
    groups: Mutex<Vec<Weak<group::Inner>>>,
    /// Held while a link is accepted, so that two first links do not make two groups.
    admission: Mutex<()>,
    /// Whether somebody decides on the further links, too.
    asks_for_links: AtomicBool,
    log: CallerLog,
}

impl AcceptQueue {
    pub(crate) fn push(&self, call: IncomingCall) {
        let joins = !self.asks_for_links.load(Ordering::Relaxed);
        if let (true, Some(group), Some(offer)) = (joins, self.group_of(&call), call.group()) {
            let remote = call.remote();
            if let Err(error) = group.join(call, &offer) {
                self.log.not_joined(remote, &error);
            }
            return;
        }
        self.lock().push_back(call);
        self.signal();
    }

    /// Where it is said what becomes of callers.
    pub(crate) const fn log(&self) -> &CallerLog {
        &self.log
    }

    /// The group that stands already and that `call` is a link of.
    pub(crate) fn group_of(&self, call: &IncomingCall) -> Option<Arc<group::Inner>> {
        let offer = call.group()?;
        let mut groups = self.groups();
        groups.retain(|group| group.strong_count() > 0);
        let mut groups = groups.iter().filter_map(Weak::upgrade);
        groups.find(|group| group.expects(&offer, call.stream_id()))
    }

    /// From now on the further links of groups wait for an answer as all callers do.
    pub(crate) fn ask_for_links(&self) {
        self.asks_for_links.store(true, Ordering::Relaxed);
    }

    /// Accepts a link: the first one as the group that is given back, any other for its group.
    pub(crate) fn admit(
        &self,
        call: IncomingCall,
        offer: &GroupOffer,
        config: Config,
    ) -> Result<Option<Group>, Error> {
        let _one_at_a_time = self.admission.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = self.group_of(&call) {
            group.join(call, offer)?;
            return Ok(None);
        }
        let group = Group::new(offer.kind, config, call.stream_id().to_owned())?;
        group.inner().join(call, offer)?;
        self.serve(&group);
        Ok(Some(group))
    }

    /// Lets the further links of `group` join it.
    fn serve(&self, group: &Group) {
        self.groups().push(Arc::downgrade(group.inner()));
        if self.asks_for_links.load(Ordering::Relaxed) {
            return;
        }
        // Some may have come before it was accepted.
        let (links, mut others): (VecDeque<_>, VecDeque<_>) =
            self.take().into_iter().partition(|call| {
                let offer = call.group();
                offer.is_some_and(|offer| group.inner().expects(&offer, call.stream_id()))
            });
        // Behind them stand those that have come meanwhile.
        let mut calls = self.lock();
        others.append(&mut calls);
        *calls = others;
        drop(calls);
        self.signal();
        links.into_iter().for_each(|link| self.push(link));
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

    /// Whether no caller waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
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

    fn groups(&self) -> MutexGuard<'_, Vec<Weak<group::Inner>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<IncomingCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
