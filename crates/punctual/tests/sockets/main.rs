//! Real sockets on the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests, also where they are not in a test function")]

mod addresses;
mod cancel;
mod close;
mod coalesce;
mod common;
mod connect;
#[path = "../../examples/custom_congestion.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod custom_congestion_example;
#[path = "../../examples/custom_nak.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod custom_nak_example;
mod custom_policies;
#[path = "../../examples/custom_retransmission.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod custom_retransmission_example;
#[path = "../../examples/custom_rtt.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod custom_rtt_example;
mod exchange;
mod fan_out;
#[path = "../../examples/fan_out.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod fan_out_example;
mod files;
mod gate;
mod group;
mod group_return;
#[cfg(target_os = "linux")]
mod headers;
mod listener;
mod log;
#[cfg(feature = "quic")]
mod quic;
#[cfg(feature = "quic")]
mod reconnect;
mod relay;
#[path = "../../examples/relay.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod relay_example;
mod rendezvous;
mod resume;
mod stream;
mod watcher;
