//! The application's turn with a connection: the time of its verbs, and their consequences.

use std::time::Duration;

use punctual_units::Instant;

/// The turn that an application has with a connection, from the time when the endpoint hands it out
/// until it is given back.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turn {
    now: Instant,
    /// How long before its time a message can be read.
    early: Duration,
    unsettled: Unsettled,
}

/// The consequences of the application's verbs that the endpoint has to deal with: a set, empty at
/// first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Unsettled(u8);

impl Turn {
    /// A turn that begins now, and in which messages can be read this time before they are due.
    pub(crate) const fn new(now: Instant, early: Duration) -> Self {
        Self { now, early, unsettled: Unsettled::NOTHING }
    }

    /// The time of the turn.
    pub(super) const fn now(self) -> Instant {
        self.now
    }

    /// The time by which a message must be due to be read in this turn.
    pub(super) fn due_by(self) -> Instant {
        self.now + self.early
    }

    /// Notes what a verb leaves to the endpoint.
    pub(super) const fn leave(&mut self, unsettled: Unsettled) {
        self.unsettled.0 |= unsettled.0;
    }

    /// The time of the turn, and what its verbs left to the endpoint.
    pub(crate) const fn result(self) -> (Instant, Unsettled) {
        (self.now, self.unsettled)
    }
}

impl Unsettled {
    /// Nothing changed.
    pub(crate) const NOTHING: Self = Self(0);
    /// Something was submitted: it is to be sent, or its timers are to be set.
    pub(crate) const SUBMITTED: Self = Self(1);
    /// An ACK that announces room is to be sent.
    pub(crate) const ACK: Self = Self(2);
    /// The time of the next delivery has moved.
    pub(crate) const DELIVERY: Self = Self(4);
    /// Anything may have changed: events, timers, packets to send.
    pub(crate) const ANYTHING: Self = Self(8);

    /// The set without the members of `other`.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether the set is empty.
    pub(crate) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the set has something of `other`.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}
