//! The test bed: two ends of a connection or a group over modelled links, in virtual time, with
//! everything random drawn from one seed. Scenarios, explorers, simulator tests and fuzzers share
//! it.
//!
//! A [`Pair`] is a caller and a listener with a link each way; a [`TestBond`] is both ends of a
//! group with a path for each link. Both print their seed when a test panics. [`plan`] draws links
//! and options for explorers. [`callgrind`] counts the instructions of a test.
//!
//! The test bed panics where it is used wrongly, as a test does.

#![forbid(unsafe_code)]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of a scenario are small")]

pub mod bond;
mod callgrind;
pub mod datagram;
pub mod group_end;
pub mod node;
pub mod pair;
pub mod plan;
pub mod random;
pub mod record;
mod shown;
pub mod steps;

pub use self::bond::TestBond;
pub use self::callgrind::callgrind;
pub use self::group_end::GroupEnd;
pub use self::pair::{Pair, Side};
pub use self::random::Random;
pub use self::record::Record;
pub use self::shown::ShownOnPanic;
pub use self::steps::{Steps, datagrams, run_due, settle, transmit};
