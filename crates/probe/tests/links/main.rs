//! Probes of simulated links in virtual time, and streams that are set up as they recommend.

#![forbid(unsafe_code)]

mod needs;
mod probing;
mod promise;
