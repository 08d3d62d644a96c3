//! Measures a link by sending a stream over it, and recommends settings of SRT for it: latency,
//! rate, bandwidth, buffers.
//!
//! A [`Probe`] calls and sends: rates that rise step by step until the link is congested, as in
//! "Examining SRT Streaming over 4G Networks" of the SRT cookbook, and then the rate that is going
//! to be recommended for a while. A [`Reporter`] at the listener tells it what arrives, in
//! [`Report`]s over the same connection; if the listener is another program, the probe uses the
//! statistics of its own side. The result is a [`Measurement`], and
//! [`recommend`](fn@recommend) turns it into a [`Recommendation`] with its reasons, which can be
//! written as URIs and as JSON.
//!
//! Neither side has a socket or a clock: time is an argument, so the same code probes real links
//! and simulated ones.

#![forbid(unsafe_code)]

mod both_ends;
mod capacity;
mod config;
mod events;
mod expect;
mod history;
mod json;
mod measurement;
pub mod model;
mod payload;
mod probe;
mod recommend;
mod report;
mod reporter;
mod step;
mod summary;
mod uris;
mod why;

pub use both_ends::BothEnds;
pub use config::{ProbeConfig, ProbeConfigError};
pub use expect::Expected;
pub use json::document;
pub use measurement::{
    Congestion, Delay, Limit, LossBursts, Losses, Measurement, PacketLoss, ProbePeer, RateVerdict,
    Reordering, ReturnPath, StepKind, StepResult, TimeDistribution, TriedRates, Unmeasured,
    Watched,
};
pub use probe::{Probe, ProbeProgress, Stage};
pub use recommend::{
    Algorithm, Buffer, Constraints, LinkKind, NotEnough, Recommendation, Why, recommend,
};
pub use report::{LinkSample, Report, Totals};
pub use reporter::Reporter;
pub use uris::{OtherPrograms, Uris, uris_of_needs};
pub use why::describe;
