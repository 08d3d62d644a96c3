//! Punctual against other people's programs: the common part of the tests in `tests/`.
//!
//! A test has its own [`Folder`], names the [`Tool`]s that it needs (and is skipped, with a note,
//! if one is not installed), starts them as [`Process`]es and reads their output. Nothing waits for
//! a fixed time where a port, a line in a log or a growing file can be waited for.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "real programs run in real time, with threads and sockets"
)]

mod arrival;
mod av1;
mod c_library;
mod chromium;
mod clip;
mod clock;
mod documented;
mod folder;
mod libsrt;
mod middle;
mod passage;
mod ports;
mod process;
mod program;
mod relay;
mod stalls;
mod tap;
mod tool;
mod turns;

pub use arrival::{
    assert_arrived_up_to_the_end, assert_arrived_whole, wait_for_silence, wait_for_size,
};
pub use av1::name_av1;
pub use c_library::SrtLibrary;
pub use chromium::{Chromium, Page, Window};
pub use clip::{Clip, Feed, crc32};
pub use clock::{READ_CLOCK, clock_encoder};
pub use documented::documented_commands;
pub use folder::Folder;
pub use libsrt::{CProgram, LibsrtPeer};
pub use middle::{Middle, Place, Side};
pub use passage::{Passage, start_link};
pub use ports::{Nobody, free_port, wait_until_bound};
pub use process::{Process, send};
pub use program::{
    Direction, End, Program, Role, bridge_certificate, build_punctual_lab, emulator,
    gstreamer_pipeline, punctual, punctual_relay, quic_bridge,
};
pub use relay::{HttpAnswer, Relay};
pub use rustix::process::Signal;
pub use stalls::{retry_if_stalled, retry_if_stalled_async};
pub use tap::Tap;
pub use tool::{Tool, have_all, skip};
pub use turns::{Turn, Turns};
