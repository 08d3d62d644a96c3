//! Runs of a plan: which there are, and what each is.

mod blocks;
mod quic_model;
mod setup;
mod spec;
mod tcp;
mod transport;

pub use blocks::BlockOptions;
pub use quic_model::QuicTransfer;
pub use setup::{CrossTraffic, HostOptions, RateRamp, Setup, TrafficKind};
pub use spec::{RunSpec, Selection, SweepShard, runs};
pub use transport::{MessageCarriage, QuicCongestion, RunTransport};

pub(crate) use spec::hash;
