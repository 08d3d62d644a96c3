//! The promises of the protocol machine, in virtual time: a caller and a listener with separate
//! clocks, connected by two modelled links.
//!
//! Each file has one topic. All randomness comes from one seed; a scenario that fails prints the
//! seed and the instant.

#![expect(unreachable_pub, reason = "a test program has no outside")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of a scenario are small")]

mod acks;
mod addresses;
mod attacks;
mod backup;
mod balance;
mod bounds;
mod broadcast;
mod caller_limits;
mod carriage;
mod clocks;
mod deadline;
mod delivery;
mod drops;
mod encryption;
mod ends;
mod explorer;
mod faults;
mod file_rates;
mod files;
mod filter;
mod forged;
mod group_encryption;
mod group_explorer;
mod group_handshake;
mod handshake;
mod handshake_floods;
mod hostile;
mod key_attacks;
mod key_refresh;
mod lifecycle;
mod link_counts;
mod long_streams;
mod lossy_calls;
mod message_numbers;
mod nak_timers;
mod odd_packets;
mod pacing;
mod peer_errors;
mod queueing_delay;
mod reconfigured;
mod recorded;
mod refusals;
mod rendezvous;
mod restarts;
mod retransmission;
mod rtt_estimators;
mod same_wire;
mod storms;
mod viewers;
mod windows;
mod wraps;

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss};
use punctual_proto::Config;
use punctual_testbed::{bond, datagram, node, pair, random, record};

const MS: fn(u64) -> Duration = Duration::from_millis;
const SECS: fn(u64) -> Duration = Duration::from_secs;

/// A perfect link with a delay of 10 ms.
fn link() -> LinkConfig {
    LinkConfig::default().with_delay(MS(10))
}

/// The same link with random losses.
fn lossy(share: f64) -> LinkConfig {
    link().with_loss(Loss::Random(share)).expect("a share")
}

/// The default options with this latency for both directions, milliseconds.
fn latency(ms: u64) -> Config {
    Config::default().with_latency(MS(ms)).expect("in range")
}
