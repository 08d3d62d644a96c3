//! The built program, run as people run it.

#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests of a program start it, and wait for it"
)]

mod lab;
mod latency;
mod model;
mod program;
