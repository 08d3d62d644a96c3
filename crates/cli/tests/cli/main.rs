//! The built program, run as people run it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a program start it, and wait for it"
)]

mod emulate;
#[cfg(target_os = "linux")]
mod emulate_tun;
mod ends;
mod files;
mod groups;
mod lab;
mod latency;
mod plot;
mod probe;
mod program;
mod streams;
