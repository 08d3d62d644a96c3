//! The built program, run as people run it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a program start it, and wait for it"
)]

mod byte_streams;
mod callers;
mod calling;
#[cfg(target_os = "linux")]
mod clocks;
mod datagrams;
mod destinations;
mod emulate;
#[cfg(target_os = "linux")]
mod emulate_tun;
mod ends;
mod file_ends;
mod files;
mod groups;
mod growing;
#[cfg(target_os = "linux")]
mod interfaces;
#[cfg(unix)]
mod lab;
mod masses;
mod multicast;
#[cfg(target_os = "linux")]
mod outputs;
mod plot;
mod probe;
mod program;
#[cfg(feature = "quic")]
mod quic;
mod recordings;
mod resumed;
#[cfg(target_os = "linux")]
mod rotation;
mod secrets;
#[cfg(target_os = "linux")]
mod signals;
#[cfg(target_os = "linux")]
mod small_limits;
mod streams;
mod tcp;
mod viewers;
mod written;
