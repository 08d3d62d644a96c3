//! x
#![forbid(unsafe_code)]
pub mod backend;
pub mod plan;
pub mod results;
pub mod run;
