//! A C library with libsrt's functions, on Punctual's protocol machine.
//!
//! Each function of libsrt's interface is here under its C name. The work is done by
//! `punctual-sockets`, which has no unsafe code: this crate checks pointers and lengths, converts
//! C's types, and keeps the last error of each thread. A panic never crosses the border: it becomes
//! the error `SRT_EUNKNOWN`.
//!
//! The headers are in `include/srt`; `docs/c.md` explains how programs use the library.

#![deny(unsafe_op_in_unsafe_fn)]
#![expect(unsafe_code, reason = "this crate is the border to C")]
#![expect(clippy::disallowed_types, reason = "this crate owns the state of the process")]

pub mod abi;
mod address;
mod border;
#[cfg(test)]
mod calls;
pub mod connecting;
pub mod data;
pub mod epoll;
pub mod errors;
mod exit;
mod fork;
pub mod groups;
mod hooks;
mod library;
pub mod log;
pub mod options;
pub mod sockets;
pub mod startup;
pub mod statistics;
pub mod texts;
mod trace;
