//! Real sockets on the loopback interface.
#![expect(clippy::unwrap_used, reason = "tests, also where they are not in a test function")]

mod addresses;
mod cancel;
mod close;
mod common;
mod connect;
mod exchange;
mod files;
mod gate;
mod group;
#[cfg(target_os = "linux")]
mod headers;
mod listener;
mod reconnect;
mod rendezvous;
mod stream;
