//! The relay between other people's programs: they publish and play, come back, are refused, and
//! the operator reloads and ends it.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "programs take real time")]

mod attached;
mod callers;
mod common;
mod groups;
mod operation;
mod passing;
mod publishers;
mod quic;
mod recordings;
mod refusals;
mod slow_links;
mod viewers;
