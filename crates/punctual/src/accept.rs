//! The queue of callers that wait for an answer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use punctual_proto::{Config, GroupOffer, IncomingId, RejectReason};
use tokio::sync::Notify;

use crate::caller_log::{CallerLog, RefusedCaller};
use crate::error::Error;
use crate::group::{self, AcceptedLink, Group};
use crate::shared::Shared;
use crate::signals::{Watcher, WatcherSlot};
use crate::waiting_caller::{CallerHandler, WaitingCaller};
use crate::wakes::Wakes;

/// Waiting callers of all shards of a listener, in the order of their arrival. The queue is bounded
/// by the sum of the shards' backlogs: the protocol rejects further callers.
#[derive(Debug, Default)]
pub(crate) struct AcceptQueue {
    calls: Mutex<VecDeque<WaitingCaller>>,
    arrived: Notify,
    /// Hears of each caller.
    watcher: WatcherSlot,
    /// Accepted groups, which further links join without an answer of the application.
    groups: Mutex<AcceptedGroups>,
    /// Whether the application also decides on the further links of groups.
    answers_links: AtomicBool,
    log: CallerLog,
}

/// The groups that listeners have accepted, and that further links join. Links of one group may
/// call several listeners that [share](crate::Listener::share_groups) their groups.
#[derive(Clone, Debug, Default)]
pub struct AcceptedGroups(Arc<GroupTable>);

#[derive(Debug, Default)]
struct GroupTable {
    groups: Mutex<Vec<Weak<group::Inner>>>,
    /// Held while a link is accepted, so that two links of a new group do not create two groups.
    admission: Mutex<()>,
}

impl AcceptedGroups {
    /// The group that `call` is a further link of.
    fn of_call(&self, call: &WaitingCaller) -> Option<Arc<group::Inner>> {
        let offer = call.group()?;
        let mut groups = self.lock();
        groups.retain(|group| group.strong_count() > 0);
        let mut groups = groups.iter().filter_map(Weak::upgrade);
        groups.find(|group| group.expects(&offer, call.stream_id()))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Weak<group::Inner>>> {
        self.0.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AcceptQueue {
    /// The log of the listener's callers.
    pub(crate) const fn log(&self) -> &CallerLog {
        &self.log
    }

    /// The accepted group that `call` is a further link of.
    pub(crate) fn group_of(&self, call: &WaitingCaller) -> Option<Arc<group::Inner>> {
        self.groups().of_call(call)
    }

    /// Accepts groups into this table from now on.
    pub(crate) fn share_groups(&self, groups: AcceptedGroups) {
        *self.groups.lock().unwrap_or_else(PoisonError::into_inner) = groups;
    }

    /// Makes the further links of groups wait for an answer, as all callers do, from now on.
    pub(crate) fn require_answers_for_links(&self) {
        self.answers_links.store(true, Ordering::Relaxed);
    }

    /// Accepts a link of a group. The first link creates the group; a further one joins it.
    pub(crate) fn admit(
        &self,
        call: WaitingCaller,
        offer: &GroupOffer,
        config: Config,
    ) -> Result<AcceptedLink, Error> {
        let groups = self.groups();
        let _one_at_a_time = groups.0.admission.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(group) = groups.of_call(&call) {
            let id = group.join(call, offer)?;
            return Ok(AcceptedLink { group: Group::of(group), id, is_first: false });
        }
        let group = Group::new(offer.kind, config, call.stream_id().clone())?;
        let id = group.inner().join(call, offer)?;
        self.serve(&group);
        Ok(AcceptedLink { group, id, is_first: true })
    }

    /// Lets the further links of `group` join it without an answer, unless one is required.
    fn serve(&self, group: &Group) {
        self.groups().lock().push(Arc::downgrade(group.inner()));
        if self.answers_links.load(Ordering::Relaxed) {
            return;
        }
        // Some links may have called before the group was accepted.
        let (links, mut others): (VecDeque<_>, VecDeque<_>) =
            self.take().into_iter().partition(|call| {
                let offer = call.group();
                offer.is_some_and(|offer| group.inner().expects(&offer, call.stream_id()))
            });
        // Callers that came meanwhile follow the others.
        let mut calls = self.lock();
        others.append(&mut calls);
        *calls = others;
        drop(calls);
        self.signal();
        links.into_iter().for_each(|link| self.came(link));
    }

    /// Whether no caller waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Takes the next caller. Waits until there is one, or returns `None` once `stopped` holds.
    pub(crate) async fn pop(&self, stopped: impl Fn() -> bool) -> Option<WaitingCaller> {
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
    pub(crate) fn take(&self) -> VecDeque<WaitingCaller> {
        std::mem::take(&mut self.lock())
    }

    /// Takes the next caller, if there is one.
    pub(crate) fn try_pop(&self) -> Option<WaitingCaller> {
        self.lock().pop_front()
    }

    /// Tells `watcher` of each caller from now on.
    pub(crate) fn watch(&self, watcher: Weak<dyn Watcher>) {
        self.watcher.set(watcher);
    }

    fn signal(&self) {
        self.arrived.notify_waiters();
        if let Some(watcher) = self.watcher.get() {
            watcher.readable(&mut Wakes::default());
        }
    }

    fn groups(&self) -> AcceptedGroups {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<WaitingCaller>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallerHandler for AcceptQueue {
    fn came(&self, call: WaitingCaller) {
        let joins = !self.answers_links.load(Ordering::Relaxed);
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

    fn gave_up(&self, port: &Arc<Shared>, id: IncomingId) {
        let gone = {
            let mut calls = self.lock();
            let place = calls.iter().position(|call| call.is(port, id));
            place.and_then(|place| calls.remove(place))
        };
        // Dropped without the lock. Its rejection has no effect, since the caller is gone.
        drop(gone);
    }

    fn refused(&self, remote: SocketAddr, reason: RejectReason) {
        let stream_id = String::new();
        self.log.refused(RefusedCaller { remote, stream_id, reason, by_hook: false });
    }

    fn moved(&self, remote: SocketAddr) {
        self.log.moved(remote);
    }

    fn end(&self) {
        self.signal();
    }
}
