//! The hooks of a relay at work: which programs run, and which are to end.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use punctual_relay_access::WebError;
use punctual_units::UtcTime;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::child::{ChildEnd, run};
use crate::counts::{HookCounts, HookResult};
use crate::deliveries::Deliveries;
use crate::event::{HookEvent, HookEventKind, HookSubject};
use crate::hook::{Hook, HookAction};
use crate::variables::Variables;

/// The hooks of a relay: tell them of each event.
///
/// - A program runs once for an event and the thing that the event is about, such as the stream or
///   the viewer. The event that ends its state ends it, with its whole process group.
/// - At most [`PROGRAMS_MOST`](Self::PROGRAMS_MOST) programs of one hook run at once.
/// - Requests to a URL wait in a queue of their own, and are tried up to four times.
///
/// Nothing that is told waits for a program or a server. Hooks that are dropped kill their
/// programs.
pub struct Hooks {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    counts: Arc<HookCounts>,
    /// A program has ended.
    ended: Notify,
    /// The start of the relay, as a part of the numbers of events.
    start: UtcTime,
    runtime: Handle,
}

#[derive(Default)]
struct State {
    hooks: Vec<HookEntry>,
    slots: BTreeMap<SlotKey, ProgramSlot>,
    /// The number of entries so far, and of events that were sent.
    entries: u64,
    events: u64,
    is_ending: bool,
}

struct HookEntry {
    number: u64,
    hook: Arc<Hook>,
    deliveries: Option<Deliveries>,
}

/// The hook, by the number of its entry, the event and what it is about.
type SlotKey = (u64, HookEventKind, HookSubject);

/// The place of a program, while it runs or is being ended.
struct ProgramSlot {
    /// The program that is to run; `None` if it is to end.
    wanted: Option<Launch>,
    /// Counts the changes of `wanted`.
    change: u64,
    changed: Arc<Notify>,
    task: Option<AbortHandle>,
}

#[derive(Clone)]
struct Launch {
    hook: Arc<Hook>,
    variables: Variables,
}

impl Hooks {
    /// The most programs of one hook that run at once.
    pub const PROGRAMS_MOST: usize = 32;

    /// Hooks of a relay that starts at `start`. Their tasks run on `runtime`; the calls may come
    /// from any thread.
    pub fn new(start: UtcTime, runtime: Handle) -> Self {
        let shared = Shared {
            state: Mutex::default(),
            counts: Arc::default(),
            ended: Notify::new(),
            start,
            runtime,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Puts `hooks` in place of the hooks before. A hook that stays the same keeps its programs and
    /// requests; the programs of others are ended.
    ///
    /// # Errors
    ///
    /// A URL has `https`, and the system's certificates of authorities cannot be used. Then nothing
    /// has changed.
    pub fn change(&self, hooks: &[Hook]) -> Result<(), WebError> {
        let _entered = self.shared.runtime.enter();
        let mut state = self.shared.lock();
        let is_known = |state: &State, hook: &Hook| state.hooks.iter().any(|it| *it.hook == *hook);
        let mut added = Vec::new();
        for hook in hooks {
            if is_known(&state, hook) || added.iter().any(|(it, _)| *it == hook) {
                continue;
            }
            let deliveries = match hook.action() {
                HookAction::Post { url, key } => {
                    let (key, counts) = (key.as_ref(), &self.shared.counts);
                    Some(Deliveries::new(url, key, hook.timeout(), counts)?)
                }
                HookAction::Run { .. } => None,
            };
            added.push((hook, deliveries));
        }
        let (kept, removed): (Vec<_>, Vec<_>) =
            std::mem::take(&mut state.hooks).into_iter().partition(|it| hooks.contains(&it.hook));
        state.hooks = kept;
        for (hook, deliveries) in added {
            state.entries += 1;
            let (number, hook) = (state.entries, Arc::new(hook.clone()));
            state.hooks.push(HookEntry { number, hook, deliveries });
        }
        for (key, slot) in &mut state.slots {
            if removed.iter().any(|entry| entry.number == key.0) {
                slot.want(None);
            }
        }
        Ok(())
    }

    /// Tells the hooks of an event.
    pub fn tell(&self, event: &HookEvent) {
        let mut state = self.shared.lock();
        if state.is_ending {
            return;
        }
        state.events += 1;
        let id = format!("{}-{}", self.shared.start.micros(), state.events);
        let State { hooks, slots, .. } = &mut *state;
        for HookEntry { number, hook, deliveries } in hooks {
            if let Some(begun) = hook.ended_by(event.kind)
                && let Some(slot) = slots.get_mut(&(*number, begun, event.subject()))
            {
                slot.want(None);
            }
            if !hook.starts_on(event) {
                continue;
            }
            match deliveries {
                Some(deliveries) => deliveries.send(id.clone(), event),
                None => self.launch((*number, event.kind, event.subject()), hook, event, slots),
            }
        }
    }

    /// Starts a program, unless it runs already.
    fn launch(
        &self,
        key: SlotKey,
        hook: &Arc<Hook>,
        event: &HookEvent,
        slots: &mut BTreeMap<SlotKey, ProgramSlot>,
    ) {
        let launch = Launch { hook: Arc::clone(hook), variables: Variables::of(event) };
        if let Some(slot) = slots.get_mut(&key) {
            // One that is being ended is followed by this one.
            if slot.wanted.is_none() {
                slot.want(Some(launch));
            }
            return;
        }
        if slots.keys().filter(|it| it.0 == key.0).count() >= Self::PROGRAMS_MOST {
            let most = Self::PROGRAMS_MOST;
            tracing::warn!("{}: {most} of them run; {} starts no more", hook.title(), event.kind);
            return self.shared.counts.add(event.kind, HookResult::LeftOut);
        }
        let mut slot =
            ProgramSlot { wanted: Some(launch), change: 0, changed: Arc::default(), task: None };
        let changed = Arc::clone(&slot.changed);
        let work = keep(Arc::clone(&self.shared), key.clone(), changed);
        let task = self.shared.runtime.spawn(work);
        slot.task = Some(task.abort_handle());
        slots.insert(key, slot);
    }

    /// How often hooks ran, by event and result.
    pub fn counts(&self) -> Vec<(HookEventKind, HookResult, u64)> {
        self.shared.counts.all()
    }

    /// The number of programs that run or are being ended.
    pub fn programs(&self) -> usize {
        self.shared.lock().slots.len()
    }

    /// Ends all programs, waits until they have ended, and sends the requests that wait, for this
    /// time at the most.
    pub async fn end(self, most: Duration) {
        let deliveries: Vec<_> = {
            let mut state = self.shared.lock();
            state.is_ending = true;
            state.slots.values_mut().for_each(|slot| slot.want(None));
            let hooks = std::mem::take(&mut state.hooks).into_iter();
            hooks.filter_map(|entry| entry.deliveries).map(Deliveries::close).collect()
        };
        let all = async {
            loop {
                let ended = self.shared.ended.notified();
                if self.programs() == 0 {
                    break;
                }
                ended.await;
            }
            for worker in deliveries {
                let _ = worker.await;
            }
        };
        if timeout(most, all).await.is_err() {
            tracing::warn!("hooks are not done; they are left");
        }
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // A task that ends kills its program.
        let state = self.shared.lock();
        let tasks: Vec<_> = state.slots.values().filter_map(|it| it.task.clone()).collect();
        drop(state);
        tasks.iter().for_each(AbortHandle::abort);
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        let hooks: Vec<_> = state.hooks.iter().map(|it| &it.hook).collect();
        f.debug_struct("Hooks").field("hooks", &hooks).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program that is to run in a place, with the number of the change; `None`, and no such
    /// place any more, if there is none, or if the program of change `done` was the last.
    fn next(&self, key: &SlotKey, done: Option<u64>) -> Option<(Launch, u64)> {
        let mut state = self.lock();
        let slot = state.slots.get(key)?;
        let wanted = slot.wanted.clone().filter(|_| done != Some(slot.change));
        let next = wanted.map(|launch| (launch, slot.change));
        if next.is_none() {
            state.slots.remove(key);
            drop(state);
            self.ended.notify_waiters();
        }
        next
    }

    fn is_at(&self, key: &SlotKey, change: u64) -> bool {
        self.lock().slots.get(key).is_some_and(|slot| slot.change == change)
    }
}

impl ProgramSlot {
    fn want(&mut self, launch: Option<Launch>) {
        if launch.is_some() || self.wanted.is_some() {
            self.wanted = launch;
            self.change += 1;
            self.changed.notify_one();
        }
    }
}

/// Runs the programs of one place, one after the other, for as long as one is wanted there.
async fn keep(shared: Arc<Shared>, key: SlotKey, changed: Arc<Notify>) {
    let kind = key.1;
    let mut done = None;
    while let Some((Launch { hook, variables }, change)) = shared.next(&key, done) {
        let HookAction::Run { words, restarts } = hook.action() else { return };
        let until_changed = || async {
            while shared.is_at(&key, change) {
                changed.notified().await;
            }
        };
        let title = format!("hook {} on {kind}", hook.title());
        let end = run(words, &variables, &title, hook.timeout(), until_changed()).await;
        let result = match &end {
            Ok(ChildEnd::Ended) => HookResult::Done,
            Ok(ChildEnd::Exited(status)) if status.success() => HookResult::Done,
            _ => HookResult::Failed,
        };
        shared.counts.add(kind, result);
        match end {
            Ok(ChildEnd::Ended) => {}
            Ok(ChildEnd::Exited(status)) if status.success() => tracing::debug!("{title}: done"),
            Ok(ChildEnd::Exited(status)) => tracing::warn!("{title}: ended with {status}"),
            Ok(ChildEnd::TimedOut) => tracing::warn!("{title}: ended, as it ran too long"),
            Err(error) => tracing::warn!("{title}: {error}"),
        }
        done = (!restarts).then_some(change);
        if *restarts {
            let _ = timeout(RESTART_PAUSE, until_changed()).await;
        }
    }
}

/// The pause before a program is started again, as MediaMTX's.
const RESTART_PAUSE: Duration = Duration::from_secs(5);
