//! The promises of a world: exact times, shared links, honest counts, and the same result from the
//! same seed.

#![expect(unreachable_pub, reason = "a test program has no outside")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of a test are small")]

mod captures;
mod common;
mod custom;
mod fast_paths;
mod files;
mod groups;
mod hosts;
mod playout;
#[cfg(feature = "quic")]
mod quic;
mod rate_control;
mod repeats;
mod streams;
mod tcp;
mod tcp_linux;
mod tcp_record;
mod traffic;
mod transfers;
mod watched;
