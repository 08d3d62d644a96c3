//! The changes of a link, and their times.

use std::time::Duration;

use punctual_units::Bitrate;

use crate::change::Change;

/// Changes of a link at given times, counted from the link's [time zero](crate::Link::start).
///
/// Of changes at the same time, the one that was added later is made later.
///
/// It is written with one event a line; blank lines and text after a `#` do not count:
///
/// | | |
/// |---|---|
/// | `20s: delay=300ms` | from 20 s on a parameter has this value: any of [`Change::parse`] |
/// | `20s: rate=2Mbps; loss=1%` | several changes at the same time |
/// | `20s: delay=300ms over 2s` | it goes there in 2 s, straight: `rate`, `delay`, `loss` |
/// | `60s: outage 1s` | for 1 s all that enters is lost |
/// | `30s: stall 1050ms` | for this time nothing leaves, then all comes at the link's rate |
/// | `30s: stall 1050ms drain 12Mbps` | as before, but then all comes at this rate |
/// | `10s every 30s: stall 400ms` | at 10 s, 40 s, 70 s ... |
/// | `every 30s until 5min: outage 1s` | at 30 s, 60 s ... 5 min |
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    events: Vec<Event>,
}

/// Something that happens to a link at a given time, once or again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// When, after the link's time zero.
    pub at: Duration,
    /// The time from one to the next, if it is repeated. Less than 1 ms counts as 1 ms.
    pub every: Option<Duration>,
    /// When repetition ends: none is later. `None` for never.
    pub until: Option<Duration>,
    /// The action.
    pub action: Action,
}

/// A change of a link.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Action {
    /// A parameter has another value from now on.
    Set(Change),
    /// A parameter goes from its value to another one, in a straight line.
    Ramp {
        /// The parameter, and its value at the end.
        to: Ramp,
        /// The time until the new value is reached.
        over: Duration,
    },
    /// For this long every packet that enters is lost. Packets in the link still arrive.
    Outage(Duration),
    /// For some time nothing leaves the queue. The waiting packets then come as a burst, as from a
    /// mobile network that has no room for a user, and makes up for it.
    ///
    /// A queue limited in time holds as much as the link transmits in that time afterwards.
    Stall {
        /// Its duration.
        duration: Duration,
        /// The rate at which the link goes on until its queue is empty or its rate is changed;
        /// `None` for the rate that it has.
        drain: Option<Bitrate>,
    },
}

/// A parameter that can be changed little by little, and its value at the end.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Ramp {
    /// [`LinkConfig::rate`](crate::LinkConfig::rate). It changes every 10 ms, to the mean of the
    /// 10 ms to come, so that as many bits are transmitted as if it changed without steps. A link
    /// that had no limit has the rate at the end at once.
    Rate(Bitrate),
    /// [`LinkConfig::delay`](crate::LinkConfig::delay): each packet has the delay of the instant
    /// at which its transmission ends.
    Delay(Duration),
    /// The share of packets lost by chance, 0 to 1; each packet has that of the instant at which
    /// it enters. Another loss model counts by its [mean](crate::Loss::mean) at the start and gives
    /// way to [`Loss::Random`](crate::Loss::Random).
    Loss(f64),
}

impl Timeline {
    /// Nothing ever happens.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing ever happens.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The events in the order in which they were added.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Adds an event.
    pub fn push(&mut self, event: Event) {
        self.events.push(event);
    }

    /// With one more event.
    #[must_use]
    pub fn with(mut self, event: Event) -> Self {
        self.push(event);
        self
    }
}

impl Extend<Event> for Timeline {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        self.events.extend(events);
    }
}

impl FromIterator<Event> for Timeline {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        Self { events: events.into_iter().collect() }
    }
}

impl Event {
    /// Something that happens once.
    pub fn once(at: Duration, action: Action) -> Self {
        Self { at, every: None, until: None, action }
    }

    /// Something that happens again and again, for the first time after one period.
    pub fn every(period: Duration, action: Action) -> Self {
        Self { at: period, every: Some(period), until: None, action }
    }

    /// A parameter's new value.
    pub fn set(at: Duration, change: Change) -> Self {
        Self::once(at, Action::Set(change))
    }

    /// A parameter's way to a new value.
    pub fn ramp(at: Duration, to: Ramp, over: Duration) -> Self {
        Self::once(at, Action::Ramp { to, over })
    }

    /// The time from one to the next.
    pub(crate) fn period(&self) -> Option<Duration> {
        self.every.map(|every| every.max(SHORTEST_PERIOD))
    }

    /// The next time after `at`, if there is one.
    pub(crate) fn after(&self, at: Duration) -> Option<Duration> {
        let next = at.checked_add(self.period()?)?;
        (self.until.is_none_or(|until| next <= until)).then_some(next)
    }
}

/// The shortest period of an event.
const SHORTEST_PERIOD: Duration = Duration::from_millis(1);
