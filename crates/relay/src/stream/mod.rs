//! One stream of a relay.

mod flow;
mod intake;
mod ring;
mod seats;
mod viewer;
mod way_out;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
pub use flow::ViewerLink;
use punctual_mpegts::Inspector;
use punctual_units::Instant;
pub use ring::Message;
pub use seats::{Publisher, PublisherId, Seat};
pub use viewer::{Viewer, ViewerId, ViewerPhase};

use crate::stream::intake::Intake;
use crate::stream::ring::Ring;
use crate::stream::seats::Seats;
use crate::stream::viewer::ViewerPlace;
use crate::stream::way_out::WayOut;
use crate::{NotAdmitted, SlowViewer, StreamRules};

/// One stream: its publishers, its latest messages and its viewers.
#[derive(Debug)]
pub struct Stream {
    name: Arc<str>,
    rules: StreamRules,
    seats: Seats,
    /// Whether the viewers were told the end.
    is_over: bool,
    /// Since when nobody publishes.
    gap_since: Option<Instant>,
    online_since: Option<Instant>,
    intake: Intake,
    ring: Ring,
    way_out: WayOut,
    viewers: BTreeMap<ViewerId, ViewerPlace>,
    events: VecDeque<StreamEvent>,
    received: MessageCount,
    sent: MessageCount,
    skips: u64,
    switches: u64,
}

/// Messages, and their bytes.
#[derive(Clone, Copy, Debug, Default)]
struct MessageCount {
    messages: u64,
    bytes: u64,
}

impl MessageCount {
    fn add(&mut self, payload: &Bytes) {
        self.messages += 1;
        self.bytes += payload.len() as u64;
    }
}

/// An event of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StreamEvent {
    /// A publisher became active, and no other was active just before.
    Online(PublisherId),
    /// A newer publisher took the place of this one, which is to be disconnected.
    Replaced {
        /// The publisher that is no longer active.
        old: PublisherId,
        /// The one that is.
        by: PublisherId,
    },
    /// A publisher that waited became active.
    Promoted(PublisherId),
    /// Nobody publishes any more; viewers wait for [`StreamRules::keep_viewers`].
    Offline,
    /// The active publisher has sent no message for 10 s, and is to be disconnected.
    Stalled(PublisherId),
    /// A viewer was too slow, and goes on at a later random access point.
    Skipped {
        /// The viewer.
        viewer: ViewerId,
        /// How far it was behind.
        lag: Duration,
    },
    /// A viewer was too slow, and is to be disconnected.
    TooSlow {
        /// The viewer.
        viewer: ViewerId,
        /// How far it was behind.
        lag: Duration,
    },
    /// Nobody has published for [`StreamRules::keep_viewers`]: these viewers are to be
    /// disconnected, and the stream is over.
    Ended {
        /// All viewers that were left.
        viewers: Vec<ViewerId>,
    },
}

/// The state of a stream at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamState {
    /// Whether a publisher is active, and its messages come.
    pub is_online: bool,
    /// Since when a publisher is active.
    pub online_since: Option<Instant>,
    /// The active publisher.
    pub publisher: Option<PublisherId>,
    /// Those that wait.
    pub standby: Vec<PublisherId>,
    /// Viewers, without parts of the relay.
    pub viewers: usize,
    /// Whether it is a transport stream; `None` while too little has come.
    pub is_transport_stream: Option<bool>,
    /// Bytes that the active publishers sent.
    pub received_bytes: u64,
    /// Messages of them.
    pub received_messages: u64,
    /// Bytes that viewers got.
    pub sent_bytes: u64,
    /// Messages that viewers got.
    pub sent_messages: u64,
    /// Bytes that are held for viewers.
    pub held_bytes: usize,
    /// Times that a viewer was too slow.
    pub skips: u64,
    /// Times that another publisher became active while one was there.
    pub switches: u64,
}

/// The state of a viewer at one moment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ViewerState {
    /// Its description.
    pub viewer: Viewer,
    /// Its phase.
    pub phase: ViewerPhase,
    /// How far it is behind the stream.
    pub lag: Duration,
    /// Times that it was too slow.
    pub skips: u64,
    /// Bytes that it got.
    pub bytes: u64,
    /// Messages that it got.
    pub messages: u64,
    /// Whether its link carries less than the stream, so that what is on its way is limited.
    pub is_limited: bool,
}

impl Stream {
    /// A stream without publisher and viewers.
    pub fn new(name: impl Into<Arc<str>>, rules: StreamRules, now: Instant) -> Self {
        Self {
            name: name.into(),
            way_out: WayOut::new(&rules),
            rules,
            seats: Seats::default(),
            is_over: false,
            gap_since: Some(now),
            online_since: None,
            intake: Intake::default(),
            ring: Ring::default(),
            viewers: BTreeMap::new(),
            events: VecDeque::new(),
            received: MessageCount::default(),
            sent: MessageCount::default(),
            skips: 0,
            switches: 0,
        }
    }

    /// Its name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Its rules.
    pub const fn rules(&self) -> &StreamRules {
        &self.rules
    }

    /// Changes its rules. Publishers and viewers that are there stay.
    pub fn set_rules(&mut self, rules: StreamRules) {
        self.rules = rules;
    }

    /// A publisher comes.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::InUse`], or [`NotAdmitted::Ended`] after [`StreamEvent::Ended`].
    pub fn publish(
        &mut self,
        now: Instant,
        id: PublisherId,
        publisher: Publisher,
    ) -> Result<Seat, NotAdmitted> {
        if self.is_over {
            return Err(NotAdmitted::Ended);
        }
        let arrival = self.seats.arrive(now, id, publisher, self.rules.second_publisher)?;
        if let Some(old) = arrival.replaced {
            self.switches += 1;
            self.events.push_back(StreamEvent::Replaced { old, by: id });
        }
        if arrival.seat == Seat::Active {
            if arrival.replaced.is_none() {
                self.events.push_back(StreamEvent::Online(id));
            }
            self.begin_source(now);
        }
        Ok(arrival.seat)
    }

    /// A publisher has gone.
    pub fn unpublish(&mut self, now: Instant, id: PublisherId) {
        if !self.seats.leave(id) {
            return;
        }
        if let Some(next) = self.seats.promote(now) {
            self.switches += 1;
            self.events.push_back(StreamEvent::Promoted(next));
            self.begin_source(now);
        } else {
            self.gap_since = Some(now);
            self.online_since = None;
            self.events.push_back(StreamEvent::Offline);
        }
    }

    /// The next message of this publisher begins anew, as that of another source does: a file that
    /// is sent once more.
    pub fn next_source(&mut self, id: PublisherId) {
        if self.seats.active() == Some(id) {
            self.intake.begin_source();
        }
    }

    /// Counts the totals of the state from zero again.
    pub fn reset_counters(&mut self) {
        (self.received, self.sent) = Default::default();
        (self.skips, self.switches) = (0, 0);
    }

    /// Takes in a message of a publisher, which counts if it is the active one. `origin` is the
    /// time from which a viewer's latency counts.
    pub fn push(&mut self, now: Instant, id: PublisherId, origin: Instant, payload: Bytes) {
        if !self.seats.hear(now, id) {
            return;
        }
        self.received.add(&payload);
        self.intake.push(&mut self.ring, now, origin, payload);
        if self.intake.is_transport_stream() == Some(true) {
            self.way_out.follow(now, &self.ring, self.rules.viewer_buffer);
        }
        if self.intake.is_transport_stream() == Some(false) {
            for place in self.viewers.values_mut() {
                place.start_at_once(&self.ring);
            }
        }
        self.ring.forget(now, self.rules.viewer_buffer + FINISH);
    }

    /// Whether [`publish`](Self::publish) would take a publisher now.
    ///
    /// # Errors
    ///
    /// Those of `publish`.
    pub fn admits_publisher(&self, publisher: Publisher) -> Result<(), NotAdmitted> {
        if self.is_over {
            return Err(NotAdmitted::Ended);
        }
        self.seats.admit(publisher, self.rules.second_publisher)
    }

    /// Whether [`view`](Self::view) would take a viewer now.
    ///
    /// # Errors
    ///
    /// Those of `view`.
    pub fn admits_viewer(&self, viewer: &Viewer) -> Result<(), NotAdmitted> {
        if self.is_over {
            return Err(NotAdmitted::Ended);
        }
        let counted = || self.viewers.values().filter(|place| !place.viewer().is_internal);
        let is_full = |count: usize, most: Option<usize>| most.is_some_and(|most| count >= most);
        if !viewer.is_internal {
            if is_full(counted().count(), self.rules.max_viewers) {
                return Err(NotAdmitted::TooManyViewers);
            }
            let of_user = counted().filter(|place| place.viewer().user == viewer.user).count();
            if viewer.user.is_some() && is_full(of_user, self.rules.max_viewers_per_user) {
                return Err(NotAdmitted::TooManyOfUser);
            }
        }
        Ok(())
    }

    /// A viewer comes.
    ///
    /// # Errors
    ///
    /// [`NotAdmitted::TooManyViewers`], [`NotAdmitted::TooManyOfUser`], or [`NotAdmitted::Ended`]
    /// after [`StreamEvent::Ended`].
    pub fn view(&mut self, id: ViewerId, viewer: Viewer) -> Result<(), NotAdmitted> {
        self.admits_viewer(&viewer)?;
        let mut place = ViewerPlace::new(viewer, &self.ring, self.intake.source(), &self.rules);
        if self.intake.is_transport_stream() == Some(false) {
            place.start_at_once(&self.ring);
        }
        self.viewers.insert(id, place);
        Ok(())
    }

    /// A viewer has gone.
    pub fn unview(&mut self, id: ViewerId) {
        self.viewers.remove(&id);
    }

    /// Notes what a viewer's connection tells of its link.
    pub fn observe(&mut self, now: Instant, id: ViewerId, link: ViewerLink) {
        if let Some(place) = self.viewers.get_mut(&id) {
            place.observe(now, link, &self.ring);
        }
    }

    /// Whether a viewer's link is to be looked at before each turn, because what is on its way is
    /// limited.
    pub fn is_limited(&self, id: ViewerId) -> bool {
        self.viewers.get(&id).is_some_and(|place| place.flow().is_limited())
    }

    /// Hands a viewer what it gets next, as long as `take` says that it took a message. One that is
    /// further behind than it may be skips to a later random access point, or is to be
    /// disconnected.
    pub fn feed(&mut self, now: Instant, id: ViewerId, mut take: impl FnMut(&Message) -> bool) {
        let Some(place) = self.viewers.get_mut(&id) else { return };
        let sent = &mut self.sent;
        let mut count = |message: &Message| {
            let is_taken = take(message);
            if is_taken {
                sent.add(&message.payload);
            }
            is_taken
        };
        let buffer = self.rules.viewer_buffer;
        place.feed(now, &self.ring, buffer, &mut count);
        let lag = place.lag(now, &self.ring);
        let is_slow = lag > buffer && place.phase() == ViewerPhase::Playing;
        if is_slow
            && self.rules.slow_viewer == SlowViewer::Disconnect
            && !place.viewer().is_internal
        {
            self.skips += 1;
            self.events.push_back(StreamEvent::TooSlow { viewer: id, lag });
            self.viewers.remove(&id);
            return;
        }
        if is_slow {
            place.skip(&self.ring);
            place.feed(now, &self.ring, buffer, count);
        }
        if place.take_skip() {
            self.skips += 1;
            self.events.push_back(StreamEvent::Skipped { viewer: id, lag });
        }
    }

    /// The viewers, parts of the relay among them.
    pub fn viewers(&self) -> impl Iterator<Item = ViewerId> {
        self.viewers.keys().copied()
    }

    /// The state of a viewer.
    pub fn viewer(&self, now: Instant, id: ViewerId) -> Option<ViewerState> {
        let place = self.viewers.get(&id)?;
        Some(ViewerState {
            viewer: place.viewer().clone(),
            phase: place.phase(),
            lag: place.lag(now, &self.ring),
            skips: place.skips(),
            bytes: place.flow().handed(),
            messages: place.messages(),
            is_limited: place.flow().is_limited(),
        })
    }

    /// The state of the stream.
    pub fn state(&self, now: Instant) -> StreamState {
        let is_heard = self.seats.heard().is_some_and(|heard| now.saturating_since(heard) < QUIET);
        StreamState {
            is_online: is_heard && self.intake.has_begun(),
            online_since: self.online_since,
            publisher: self.seats.active(),
            standby: self.seats.standby().collect(),
            viewers: self.viewers.values().filter(|place| !place.viewer().is_internal).count(),
            is_transport_stream: self.intake.is_transport_stream(),
            received_bytes: self.received.bytes,
            received_messages: self.received.messages,
            sent_bytes: self.sent.bytes,
            sent_messages: self.sent.messages,
            held_bytes: self.ring.bytes(),
            skips: self.skips,
            switches: self.switches,
        }
    }

    /// The programs, formats and faults of the transport stream of its present source.
    pub fn inspector(&self) -> &Inspector {
        self.intake.inspector()
    }

    /// The transport stream as a viewer gets it that is never too slow, over all sources.
    pub const fn way_out(&self) -> &Inspector {
        self.way_out.inspector()
    }

    /// Whether the stream ended for good: a publisher that comes now gets a new one.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let gap = self.gap_since.map(|since| since + self.rules.keep_viewers);
        gap.or_else(|| self.seats.heard().map(|heard| heard + STALL))
    }

    /// Does what is due: a publisher that is silent, viewers that have waited long enough.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.poll_timeout().is_none_or(|at| now < at) {
            return;
        }
        if let Some(active) = self.seats.active() {
            self.events.push_back(StreamEvent::Stalled(active));
            self.unpublish(now, active);
            return;
        }
        let viewers = std::mem::take(&mut self.viewers).into_keys().collect();
        (self.gap_since, self.is_over) = (None, true);
        self.ring.clear();
        self.events.push_back(StreamEvent::Ended { viewers });
    }

    /// The next event, in order.
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.pop_front()
    }

    fn begin_source(&mut self, now: Instant) {
        self.gap_since = None;
        self.online_since.get_or_insert(now);
        self.intake.begin_source();
    }
}

/// A publisher that has sent no message for this long counts as absent in the state.
const QUIET: Duration = Duration::from_secs(2);

/// A publisher that has sent no message for this long is to be disconnected, whatever its
/// keepalives say.
const STALL: Duration = Duration::from_secs(10);

/// Messages stay this much longer than a viewer may be behind, so that a viewer that skips can
/// finish what has begun.
const FINISH: Duration = Duration::from_millis(500);
