//! The built program, run as people run it.

mod lab;
mod latency;
mod model;
mod program;
