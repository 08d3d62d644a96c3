//! x
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "a sweep has workers, which share a file of rows")]
pub mod backend;
pub mod plan;
pub mod published;
pub mod report;
pub mod results;
pub mod run;
pub mod sweep;
