//! The viewers of a stream: the place of each, and how it starts and skips.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{Cut, PACKET_LEN};
use punctual_units::Instant;

use crate::stream::flow::{ViewerFlow, ViewerLink};
use crate::stream::ring::{EntryPoint, Message, Ring};
use crate::{Start, StreamRules};

/// A viewer of a stream. The caller chooses a new number for each.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ViewerId(pub u64);

/// The description of a viewer that calls.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Viewer {
    /// The user, by whose rights it views; `None` for anybody.
    pub user: Option<String>,
    /// Where it starts; by default as the stream's rules say.
    pub start: Option<Start>,
    /// Whether it counts as a viewer: a recording or a part of the relay does not, and never waits
    /// for a random access point again once it has started.
    pub is_internal: bool,
}

/// The phase of a viewer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ViewerPhase {
    /// It waits for a place to start.
    Waiting,
    /// It gets the stream.
    Playing,
    /// It was too slow, and gets the rest of what has begun before it goes on later in the stream.
    Skipping,
}

/// The place of one viewer in the stream.
#[derive(Debug)]
pub(super) struct ViewerPlace {
    viewer: Viewer,
    /// The number of the message that it gets next.
    cursor: u64,
    step: ViewerStep,
    /// The source whose messages it gets.
    source: u64,
    /// Leaves out parts of the stream so that the viewer's decoder sees no error.
    cut: Cut,
    /// Messages that are due to it before the one at the cursor.
    due: VecDeque<Message>,
    /// Whether the next message that is due does not follow the one before.
    is_break: bool,
    flow: ViewerFlow,
    skips: u64,
    messages: u64,
    /// Since when it has had all there is, if it has.
    level_since: Option<Instant>,
    /// Whether a skip is to be told.
    has_skipped: bool,
}

/// The next messages for a viewer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ViewerStep {
    /// The first place to start at this message or later.
    Wait { from: u64, is_first: bool },
    /// All messages as they are: the viewer has not started at a random access point.
    Raw,
    /// All messages, by way of the cut.
    Play,
    /// The rest of what has begun, in messages up to this origin time: a unit that its publisher
    /// does not finish is not waited for.
    Leave { until: Instant },
}

impl ViewerPlace {
    pub(super) fn new(viewer: Viewer, ring: &Ring, source: u64, rules: &StreamRules) -> Self {
        let start = viewer.start.unwrap_or(rules.start);
        let step = match start {
            Start::Live => ViewerStep::Raw,
            Start::RandomAccess => ViewerStep::Wait { from: ring.end(), is_first: true },
            Start::Gop => {
                let from = ring.newest_point_of(source).map_or(ring.end(), |point| point.message);
                ViewerStep::Wait { from, is_first: true }
            }
        };
        Self {
            viewer,
            cursor: ring.end(),
            step,
            source,
            cut: Cut::default(),
            due: VecDeque::new(),
            is_break: false,
            flow: ViewerFlow::default(),
            skips: 0,
            messages: 0,
            level_since: None,
            has_skipped: false,
        }
    }

    /// A stream without tables and random access points: the viewer starts at once.
    pub(super) fn start_at_once(&mut self, ring: &Ring) {
        if matches!(self.step, ViewerStep::Wait { .. }) {
            self.cursor = self.cursor.max(ring.first());
            self.step = ViewerStep::Raw;
        }
    }

    pub(super) fn observe(&mut self, now: Instant, link: ViewerLink, ring: &Ring) {
        if self.flow.observe(now, link) {
            // All pictures up to the next place to start would show the damage.
            self.skip(ring);
        }
    }

    /// Notes whether the viewer has all there is. One that has it for long has a link that carries
    /// the stream.
    fn note_level(&mut self, now: Instant, ring: &Ring) {
        if !self.flow.is_limited() || !self.due.is_empty() || self.cursor < ring.end() {
            self.level_since = None;
        } else if now.saturating_since(*self.level_since.get_or_insert(now)) >= LEVEL {
            self.flow.caught_up();
        }
    }

    /// How far the viewer is behind the stream.
    pub(super) fn lag(&self, now: Instant, ring: &Ring) -> Duration {
        let next = match (self.due.front(), self.step) {
            (Some(due), _) => Some(due),
            (None, ViewerStep::Wait { .. }) => None,
            (None, _) => ring.get(self.cursor).map(|held| &held.message),
        };
        next.map_or(Duration::ZERO, |next| now.saturating_since(next.origin))
    }

    pub(super) fn phase(&self) -> ViewerPhase {
        match self.step {
            ViewerStep::Wait { is_first: true, .. } => ViewerPhase::Waiting,
            ViewerStep::Wait { .. } | ViewerStep::Leave { .. } => ViewerPhase::Skipping,
            ViewerStep::Raw | ViewerStep::Play => ViewerPhase::Playing,
        }
    }

    pub(super) const fn flow(&self) -> &ViewerFlow {
        &self.flow
    }

    /// Its description.
    pub(super) const fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    /// Whether it has skipped since this was asked.
    pub(super) const fn take_skip(&mut self) -> bool {
        std::mem::replace(&mut self.has_skipped, false)
    }

    pub(super) const fn skips(&self) -> u64 {
        self.skips
    }

    pub(super) const fn messages(&self) -> u64 {
        self.messages
    }

    /// Begins to skip: what has begun on each PID is finished, then the viewer waits for the next
    /// place to start.
    pub(super) fn skip(&mut self, ring: &Ring) {
        match self.step {
            ViewerStep::Play => {
                self.cut.leave();
                let held = ring.get(self.cursor);
                let next = held.map_or(Instant::ORIGIN, |held| held.message.origin);
                self.step = ViewerStep::Leave { until: next + FINISH };
            }
            ViewerStep::Raw if ring.newest_point().is_some() => self.wait(ring.end()),
            // Without places to start, it goes on with the newest message.
            ViewerStep::Raw => self.cursor = ring.end(),
            ViewerStep::Wait { .. } | ViewerStep::Leave { .. } => return,
        }
        self.skips += 1;
        self.has_skipped = true;
    }

    /// Hands the viewer what it gets next, as long as `take` takes it and its link has room.
    ///
    /// After a skip it goes on at a place to start that came within `buffer`: at an older one it
    /// would be too slow at once.
    pub(super) fn feed(
        &mut self,
        now: Instant,
        ring: &Ring,
        buffer: Duration,
        mut take: impl FnMut(&Message) -> bool,
    ) {
        // The rest of what has begun becomes due at once: the ring may forget it before the link
        // has carried it.
        while matches!(self.step, ViewerStep::Leave { .. }) && self.advance(now, ring, buffer) {}
        self.hand_over(now, ring, buffer, &mut take);
        self.note_level(now, ring);
    }

    fn hand_over(
        &mut self,
        now: Instant,
        ring: &Ring,
        buffer: Duration,
        take: &mut impl FnMut(&Message) -> bool,
    ) {
        loop {
            while let Some(message) = self.due.front() {
                if !self.flow.has_room() {
                    return;
                }
                // One that waited would come too late by its own origin time. The time stays in the
                // message that waits, since it tells how far the viewer is behind.
                let is_late = self.flow.is_limited() || message.origin + BEHIND < now;
                let origin = now + self.flow.delay();
                let is_taken = match is_late {
                    true => take(&Message { origin, ..message.clone() }),
                    false => take(message),
                };
                if !is_taken {
                    return;
                }
                self.flow.hand(message.payload.len());
                self.messages += 1;
                self.due.pop_front();
            }
            if !self.advance(now, ring, buffer) {
                return;
            }
        }
    }

    /// Makes the next messages due. Returns whether there may be any.
    fn advance(&mut self, now: Instant, ring: &Ring, buffer: Duration) -> bool {
        if let ViewerStep::Wait { from, is_first } = self.step {
            let from = from.max(ring.first());
            let is_usable = |point: &&EntryPoint| {
                let held = ring.get(point.message);
                let is_new = held.is_some_and(|held| now < held.arrival + buffer);
                point.message >= from && is_new && self.flow.is_settled()
            };
            let point = match is_first {
                true => ring.point_from(from),
                false => ring.newest_point().filter(is_usable),
            };
            let Some(point) = point else { return false };
            self.enter(point, ring);
            return true;
        }
        if self.cursor < ring.first() {
            // The ring has forgotten its place: what has begun stays unfinished.
            self.skips += 1;
            self.has_skipped = true;
            self.cut.leave();
            self.wait(ring.first());
            return true;
        }
        let Some(held) = ring.get(self.cursor) else { return false };
        if held.source != self.source && self.step != ViewerStep::Raw {
            self.cut.leave();
            self.source = held.source;
            self.wait(self.cursor);
            return true;
        }
        self.is_break |= held.source != self.source;
        self.source = held.source;
        let Message { payload, origin, .. } = &held.message;
        let payload = match self.step {
            ViewerStep::Raw => payload.clone(),
            _ => self.cut.pass(payload),
        };
        self.make_due(payload, *origin);
        self.cursor += 1;
        if let ViewerStep::Leave { until } = self.step
            && (self.cut.is_out() || *origin > until)
        {
            self.wait(self.cursor);
        }
        true
    }

    /// Starts at a random access point, with the tables before it.
    fn enter(&mut self, point: &EntryPoint, ring: &Ring) {
        self.cursor = point.message;
        self.step = ViewerStep::Play;
        let Some(held) = ring.get(point.message) else { return };
        self.source = held.source;
        let origin = held.message.origin;
        let tables = self.cut.enter(&point.tables, point.access);
        self.make_due(tables, origin);
        let rest = held.message.payload.slice(point.packet * PACKET_LEN..);
        let passed = self.cut.pass(&rest);
        self.make_due(passed, origin);
        self.cursor += 1;
    }

    /// Makes a payload due, in messages that each fit one packet of SRT.
    fn make_due(&mut self, mut payload: Bytes, origin: Instant) {
        let most = if payload.len() > LARGEST { WHOLE } else { LARGEST };
        while !payload.is_empty() {
            let message = payload.split_to(payload.len().min(most));
            let is_break = std::mem::take(&mut self.is_break);
            self.due.push_back(Message { payload: message, origin, is_break });
        }
    }

    fn wait(&mut self, from: u64) {
        self.is_break = true;
        self.step = ViewerStep::Wait { from, is_first: false };
    }
}

/// The time of the stream in which what has begun is finished: longer than most units last.
const FINISH: Duration = Duration::from_millis(500);

/// The largest payload of an SRT packet over IPv4 in an Ethernet frame.
const LARGEST: usize = 1_456;

/// The largest payload of whole transport packets.
const WHOLE: usize = 7 * PACKET_LEN;

/// A viewer that had all there is for this long has a link that carries the stream.
const LEVEL: Duration = Duration::from_secs(2);

/// A message that is older than this when it is handed over gets the time of handing over as its
/// origin time, so that the viewer does not drop it as too late.
const BEHIND: Duration = Duration::from_millis(30);
