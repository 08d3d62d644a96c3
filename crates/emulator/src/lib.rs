//! A bad network between any two programs, in real time: [`punctual_netem`]'s links between real
//! sockets.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "it has a thread, which shares its state")]

mod client;
mod emulator;
mod report;
mod udp;

pub use emulator::{Emulator, EmulatorConfig};
pub use report::{DirectionReport, EmulatorReport};
