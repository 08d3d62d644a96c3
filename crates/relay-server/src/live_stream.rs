//! A stream of the relay with the connections of its publishers and viewers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use punctual::Outgoing;
use punctual_relay::{
    Message, NotAdmitted, Publisher, PublisherId, Stream, StreamEvent, StreamRules, StreamState,
    Viewer, ViewerId, ViewerState,
};
use punctual_relay_access::Admitted;
use punctual_units::Instant;
use tokio::sync::Notify;

use crate::outlet::Outlet;
use crate::wall;

/// A stream with its viewers' outlets. Whoever brings messages also hands them to all viewers: one
/// wake-up serves the whole stream.
pub(crate) struct LiveStream {
    name: Arc<str>,
    since: SystemTime,
    inner: Mutex<LiveState>,
    /// Told when somebody begins to publish.
    online: Notify,
}

struct LiveState {
    machine: Stream,
    outlets: HashMap<ViewerId, Box<dyn Outlet>>,
    /// The rights of the publishers that called.
    admitted: HashMap<PublisherId, Admitted>,
    /// When the viewers' links are looked at next.
    next_look: Instant,
}

/// The result of a turn of a stream, for the relay to follow.
#[derive(Debug, Default)]
pub(crate) struct StreamTurn {
    /// The events, in order.
    pub(crate) events: Vec<StreamEvent>,
}

impl LiveStream {
    pub(crate) fn new(name: Arc<str>, rules: StreamRules) -> Self {
        let now = punctual::now();
        let machine = Stream::new(Arc::clone(&name), rules, now);
        let inner = LiveState {
            machine,
            outlets: HashMap::new(),
            admitted: HashMap::new(),
            next_look: now,
        };
        Self { name, since: wall::now(), inner: Mutex::new(inner), online: Notify::new() }
    }

    pub(crate) fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Since when it has been there.
    pub(crate) const fn since(&self) -> SystemTime {
        self.since
    }

    /// Seats a publisher.
    ///
    /// A caller comes with its rights, a source that is pulled without.
    ///
    /// # Errors
    ///
    /// Another publisher is active, and the rules keep it.
    pub(crate) fn publish(
        &self,
        id: PublisherId,
        admitted: Option<&Admitted>,
        is_backup: bool,
    ) -> Result<StreamTurn, NotAdmitted> {
        let mut inner = self.lock();
        let publisher = inner.publisher(admitted, is_backup);
        inner.machine.publish(punctual::now(), id, publisher)?;
        if let Some(admitted) = admitted {
            inner.admitted.insert(id, admitted.clone());
        }
        let turn = inner.events();
        drop(inner);
        self.online.notify_waiters();
        Ok(turn)
    }

    /// Whether [`publish`](Self::publish) would seat a caller now.
    ///
    /// # Errors
    ///
    /// Another publisher is active, and the rules keep it.
    pub(crate) fn admits_publisher(
        &self,
        admitted: &Admitted,
        is_backup: bool,
    ) -> Result<(), NotAdmitted> {
        let inner = self.lock();
        inner.machine.admits_publisher(inner.publisher(Some(admitted), is_backup))
    }

    pub(crate) fn unpublish(&self, id: PublisherId) -> StreamTurn {
        let mut inner = self.lock();
        inner.machine.unpublish(punctual::now(), id);
        inner.admitted.remove(&id);
        inner.events()
    }

    /// The next message of this publisher begins anew, as that of another source does.
    pub(crate) fn next_source(&self, id: PublisherId) {
        self.lock().machine.next_source(id);
    }

    /// Takes messages of a publisher, and hands all viewers what they get next.
    pub(crate) fn push(&self, id: PublisherId, messages: &mut Vec<Outgoing>) -> StreamTurn {
        let now = punctual::now();
        let mut inner = self.lock();
        for Outgoing { payload, options } in messages.drain(..) {
            let origin = options.origin.filter(|origin| *origin <= now).unwrap_or(now);
            inner.machine.push(now, id, origin, payload);
        }
        inner.serve(now)
    }

    /// Adds a viewer, which gets its messages by `outlet`.
    pub(crate) fn view(
        &self,
        id: ViewerId,
        viewer: Viewer,
        outlet: Box<dyn Outlet>,
    ) -> Result<StreamTurn, NotAdmitted> {
        let now = punctual::now();
        let mut inner = self.lock();
        inner.machine.view(id, viewer)?;
        inner.outlets.insert(id, outlet);
        Ok(inner.serve_one(now, id))
    }

    pub(crate) fn unview(&self, id: ViewerId) {
        let mut inner = self.lock();
        inner.machine.unview(id);
        inner.outlets.remove(&id);
    }

    /// Does what is due by time.
    pub(crate) fn tick(&self) -> StreamTurn {
        let now = punctual::now();
        let mut inner = self.lock();
        inner.machine.handle_timeout(now);
        inner.serve(now)
    }

    /// Completes when a publisher is there.
    pub(crate) async fn published(&self) {
        loop {
            let online = self.online.notified();
            if self.state().publisher.is_some() {
                return;
            }
            online.await;
        }
    }

    pub(crate) fn state(&self) -> StreamState {
        self.lock().machine.state(punctual::now())
    }

    pub(crate) fn viewer(&self, id: ViewerId) -> Option<ViewerState> {
        self.lock().machine.viewer(punctual::now(), id)
    }

    /// Lets `look` see the machine.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Stream) -> T) -> T {
        look(&self.lock().machine)
    }

    /// Counts the stream's totals from zero again.
    pub(crate) fn reset_counters(&self) {
        self.lock().machine.reset_counters();
    }

    pub(crate) fn set_rules(&self, rules: StreamRules) {
        self.lock().machine.set_rules(rules);
    }

    fn lock(&self) -> MutexGuard<'_, LiveState> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveState {
    /// Describes a newcomer to the machine.
    fn publisher(&self, admitted: Option<&Admitted>, is_backup: bool) -> Publisher {
        let active = self.machine.state(punctual::now()).publisher;
        let active = active.and_then(|active| self.admitted.get(&active));
        let may_replace = match (admitted, active) {
            (Some(newcomer), Some(active)) => newcomer.may_replace(active),
            _ => false,
        };
        Publisher { may_replace, is_backup }
    }

    /// Hands each viewer what it gets next.
    fn serve(&mut self, now: Instant) -> StreamTurn {
        let is_look = now >= self.next_look;
        if is_look {
            self.next_look = now + LOOK;
        }
        let mut gone = Vec::new();
        for (&id, outlet) in &mut self.outlets {
            if !hand(&mut self.machine, now, id, &mut **outlet, is_look) {
                gone.push(id);
            }
        }
        for id in gone {
            self.machine.unview(id);
            self.outlets.remove(&id);
        }
        self.events()
    }

    /// Hands one viewer what it gets next. The others wait for their turn: thousands that call at
    /// the same time would have it once for each caller.
    fn serve_one(&mut self, now: Instant, id: ViewerId) -> StreamTurn {
        if let Some(outlet) = self.outlets.get_mut(&id)
            && !hand(&mut self.machine, now, id, &mut **outlet, true)
        {
            self.machine.unview(id);
            self.outlets.remove(&id);
        }
        self.events()
    }

    /// The events since the last turn. A viewer that has to go loses its outlet, which tells its
    /// connection.
    fn events(&mut self) -> StreamTurn {
        let events: Vec<_> = std::iter::from_fn(|| self.machine.poll_event()).collect();
        for event in &events {
            match event {
                StreamEvent::TooSlow { viewer, .. } => drop(self.outlets.remove(viewer)),
                StreamEvent::Ended { viewers } => {
                    for viewer in viewers {
                        self.outlets.remove(viewer);
                    }
                }
                _ => {}
            }
        }
        StreamTurn { events }
    }
}

/// Hands a viewer what it gets next, after a look at its link if it is time for one. Returns
/// whether the viewer is still there.
fn hand(
    machine: &mut Stream,
    now: Instant,
    id: ViewerId,
    outlet: &mut dyn Outlet,
    is_look: bool,
) -> bool {
    let is_look = is_look || machine.is_limited(id);
    if is_look && let Some(link) = outlet.link() {
        machine.observe(now, id, link);
    }
    machine.feed(now, id, |message: &Message| outlet.take(message));
    outlet.flush()
}

/// The time between two looks at the viewers' links.
const LOOK: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use punctual_relay::ViewerLink;

    use super::*;

    /// Counts its turns.
    struct Turns(Arc<AtomicUsize>);

    impl Outlet for Turns {
        fn take(&mut self, _: &Message) -> bool {
            true
        }

        fn flush(&mut self) -> bool {
            self.0.fetch_add(1, Ordering::Relaxed);
            true
        }

        fn link(&self) -> Option<ViewerLink> {
            None
        }
    }

    #[test]
    fn a_viewer_that_comes_causes_no_turn_of_the_others() {
        let stream = LiveStream::new("live".into(), StreamRules::default());
        let turns: Vec<_> = (0..100).map(|_| Arc::new(AtomicUsize::new(0))).collect();
        for (id, turns) in (0..).zip(&turns) {
            let outlet = Box::new(Turns(Arc::clone(turns)));
            stream.view(ViewerId(id), Viewer::default(), outlet).expect("there is room");
        }
        assert!(turns.iter().all(|turns| turns.load(Ordering::Relaxed) == 1));
        stream.tick();
        assert!(turns.iter().all(|turns| turns.load(Ordering::Relaxed) == 2));
    }
}
