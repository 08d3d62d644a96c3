//! SRT sockets as programs for libsrt know them: sockets by number, blocking and non-blocking
//! calls, event sets, options by number.
//!
//! A [`Library`] holds them all, with the threads that drive them. Its methods are the functions of
//! libsrt's interface in Rust's types; `punctual-capi` is the same interface in C. Programs in Rust
//! do better with the crate `punctual`, on which this one is built.
//!
//! ```
//! use punctual_sockets::{Library, OptionNumber, SocketOptionValue};
//!
//! let library = Library::start()?;
//! let listener = library.create_socket();
//! library.bind(listener, "127.0.0.1:0".parse().unwrap())?;
//! library.listen(listener, 1)?;
//! let address = library.local_address(listener)?;
//!
//! let caller = library.create_socket();
//! library.set_option(caller, OptionNumber::STREAMID, SocketOptionValue::Text(b"camera
//! 1".to_vec()))?; library.connect(caller, address)?; let (accepted, _) =
//! library.accept(listener)?; library.send(caller, b"on time", &mut Default::default())?; let mut
//! buffer = [0; 1_316]; assert_eq!(library.receive(accepted, &mut buffer, &mut
//! Default::default())?, 7); library.shut_down();
//! # Ok::<(), punctual_sockets::Failure>(())
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate owns the locks of blocking calls")]

mod code;
mod event_set;
mod library;
mod options;
mod ports;
mod reaper;
mod reject;
mod socket;
mod subscriptions;
mod system_poll;
#[cfg(test)]
mod testing;

pub use punctual_blocking::Events;

pub use code::{Code, Failure};
pub use event_set::{ENABLE_EMPTY, ENABLE_OUTPUT_CHECK, EventReport, EventSet, Wanted};
pub use library::{Library, OpenSocket, RememberedSocket};
pub use options::{Defaults, Kind, OptionNumber, SocketOptionValue, kind};
pub use socket::{
    BufferLevel, BufferLevels, ConnectHook, LinkCall, ListenHook, MemberInfo, MemberState,
    MessageControl, SocketState, StartedCall, TransferStatistics,
};
