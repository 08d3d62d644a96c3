//! A link with all that happens to it, and both ways of a path.

use crate::config::LinkConfig;
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
}
