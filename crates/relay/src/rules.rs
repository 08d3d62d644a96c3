//! The rules of a stream, which the operator sets.

use std::time::Duration;

/// The rules of one stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StreamRules {
    /// The answer to a publisher that calls while another one is active.
    pub second_publisher: SecondPublisher,
    /// The time for which viewers outlive their publisher.
    pub keep_viewers: Duration,
    /// Where a viewer starts.
    pub start: Start,
    /// The treatment of a viewer that is too slow.
    pub slow_viewer: SlowViewer,
    /// The most that a viewer may be behind the stream.
    pub viewer_buffer: Duration,
    /// The most viewers; `None` without a limit.
    pub max_viewers: Option<usize>,
    /// The most viewers of one user; `None` without a limit.
    pub max_viewers_per_user: Option<usize>,
}

/// The answer to a publisher that calls while another one is active.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecondPublisher {
    /// It replaces the active one if it has the same rights, and is refused otherwise.
    Replace,
    /// It is refused.
    Refuse,
    /// It waits, and becomes active when the active one ends. Nothing of it is kept meanwhile.
    Standby,
}

/// Where a viewer starts in a transport stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Start {
    /// At the next random access point, so that it gets no old packets at once.
    RandomAccess,
    /// At the latest random access point, so that a picture is there at once.
    Gop,
    /// At the next message, whatever it holds.
    Live,
}

/// The treatment of a viewer that is further behind than the rules allow.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SlowViewer {
    /// It goes on at a later random access point.
    Skip,
    /// It is disconnected.
    Disconnect,
}

impl Default for StreamRules {
    fn default() -> Self {
        Self {
            second_publisher: SecondPublisher::Replace,
            keep_viewers: Duration::from_secs(10),
            start: Start::RandomAccess,
            slow_viewer: SlowViewer::Skip,
            viewer_buffer: Duration::from_secs(1),
            max_viewers: None,
            max_viewers_per_user: None,
        }
    }
}
