//! The operating system's part in a program that must be on time: one clock, timers far more exact
//! than tokio's, UDP sockets that send and receive many datagrams a call, and files as rings.
//!
//! - [`now`] reads the process's clock as an [`Instant`](punctual_units::Instant).
//! - [`Timer`] sleeps until an instant, [`SharedTimer`] does so for many tasks at once, and
//!   [`Alarm`] is a timer that any thread may set.
//! - [`UdpSocket`] sends and receives in batches (GSO and GRO on Linux), and [`Gather`] lets
//!   datagrams gather before a task wakes up for them.
//! - [`FileRing`] keeps bytes in a part of a file that is written round and round.
//! - [`utc_offset`] tells the time zone, and [`ignores_hangup`] how the process was started.
//!
//! The rest of the workspace that touches the system does it through here, so this is the only
//! crate with `unsafe` code besides the border to C, `crates/capi`.
#![deny(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate is below the ban on locks and sockets")]

mod alarm;
mod clock;
mod descriptors;
mod file_ring;
mod memory;
mod multicast;
mod process;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod registration;
mod shared_timer;
mod timer;
mod udp;

pub use alarm::Alarm;
pub use clock::now;
pub use file_ring::FileRing;
pub use memory::{available_memory, give_back_memory};
pub use multicast::join_source;
pub use process::{ignores_hangup, utc_offset};
pub use shared_timer::{SharedTimer, Sleeper};
pub use timer::Timer;
pub use udp::{
    Datagram, Gather, ReceiveBuffers, Received, Room, SendBatch, UdpOptions, UdpSocket, canonical,
};
