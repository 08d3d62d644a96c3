use std::time::Duration;

use punctual_units::Bitrate;

/// The state of a probe, for people who watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbeProgress {
    /// Time since the beginning.
    pub elapsed: Duration,
    /// The present stage.
    pub stage: Stage,
    /// The latest round-trip time known.
    pub rtt: Duration,
    /// Share of packets lost at the present rate.
    pub loss: f64,
    /// The highest rate so far that the link carried.
    pub usable: Option<Bitrate>,
}

/// A stage of a probe.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// Learning which program is at the other end, and how large messages may be.
    Greeting,
    /// Sending at this rate, as part of the ramp.
    Ramp(Bitrate),
    /// Sending nothing while queues empty.
    Pause,
    /// Sending at the rate that is going to be recommended, for a while.
    Sustained(Bitrate),
    /// The probe has ended.
    Done,
}
