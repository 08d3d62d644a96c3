//! Real sockets on the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests, also where they are not in a test function")]

mod addresses;
mod cancel;
mod close;
mod coalesce;
mod common;
mod connect;
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
mod own_policies;
#[path = "../../examples/own_retransmission.rs"]
#[expect(dead_code, reason = "a test does not run its main function")]
mod own_retransmission_example;
mod reconnect;
mod rendezvous;
mod stream;
