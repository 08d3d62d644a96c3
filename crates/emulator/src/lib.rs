//! A bad network between any two programs, in real time: [`punctual_netem`]'s links between real
//! sockets, or between real network stacks.
//!
//! - [`Emulator`] relays UDP between programs that are told to send to it. It needs no privilege.
//! - [`TunEmulator`], on Linux and with root's rights, joins two network namespaces: programs in
//!   them have no other network, whatever protocol they speak.
//!
//! Each works in a separate thread, and reports the totals of its links and how exactly they kept
//! the times of the model.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "it has threads, which share their state")]

mod client;
mod direction;
mod emulator;
mod realtime;
mod report;
#[cfg(target_os = "linux")]
mod tun;
mod udp;

pub use emulator::{Emulator, EmulatorConfig, LinkDirection, PassedDatagram};
pub use report::{DirectionReport, EmulatorReport, TunReport};
#[cfg(target_os = "linux")]
pub use tun::{
    Helper, Running, Side, SideCommand, TunConfig, TunEmulator, TunError, check_tun, init,
};
