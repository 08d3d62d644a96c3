//! Runs of a plan: which there are, and what each is.

mod setup;
mod spec;

pub use setup::{Carriage, CrossTraffic, HostOptions, Ramp, Setup, TrafficKind};
pub use spec::{RunSpec, Selection, Shard, runs};

pub(crate) use spec::hash;
