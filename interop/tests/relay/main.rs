//! The relay between other people's programs: they publish and play, come back, are refused, and the
//! operator reloads and ends it.

#![forbid(unsafe_code)]

mod attached;
mod common;
mod operation;
mod passing;
mod publishers;
mod refusals;
