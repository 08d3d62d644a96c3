//! A link with all that happens to it, and both ways of a path.

use crate::config::LinkConfig;
use crate::text::error::LinkTextError;
use crate::text::{key, words};
use crate::timeline::Timeline;
use crate::trace::Trace;

/// One direction of a link, and its changes over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkProfile {
    /// Its parameters at time zero.
    pub config: LinkConfig,
    /// The changes and their times.
    pub timeline: Timeline,
    /// A recorded course of its capacity, and perhaps of its delay and loss. At the same instant
    /// it comes before the timeline, so that a timeline has the last word.
    pub trace: Option<Trace>,
}

/// A path there and back.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathProfile {
    /// From the client, caller or sender.
    pub up: LinkProfile,
    /// To it.
    pub down: LinkProfile,
}

impl From<LinkConfig> for LinkProfile {
    fn from(config: LinkConfig) -> Self {
        Self { config, ..Self::default() }
    }
}

impl<T: Into<LinkProfile>> From<T> for PathProfile {
    /// The same value in both directions.
    fn from(both: T) -> Self {
        let up = both.into();
        Self { down: up.clone(), up }
    }
}

impl LinkProfile {
    /// With this timeline.
    #[must_use]
    pub fn with_timeline(self, timeline: Timeline) -> Self {
        Self { timeline, ..self }
    }

    /// With this trace.
    #[must_use]
    pub fn with_trace(self, trace: Option<Trace>) -> Self {
        Self { trace, ..self }
    }

    /// Gives a parameter a value: each key of [`Change::parse`](crate::Change::parse), and `at` for
    /// [events](crate::Event) that are added to the timeline.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkTextError> {
        key::set_one_way(self, key, value)
    }

    /// The link in a line for people: `delay 25 ms, loss 2 % in bursts`.
    pub fn in_words(&self) -> String {
        words::in_words(self)
    }
}

impl PathProfile {
    /// Gives a parameter a value both ways: each key of [`LinkProfile::set`], and `rtt`, half of
    /// which becomes the delay of each way; with `-up` or `-down` behind it, one way only.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), LinkTextError> {
        key::set_both_ways(self, key, value)
    }
}
