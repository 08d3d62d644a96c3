//! The HTTP service over real connections, with a relay of the tests behind it.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "the tests' relay is shared with the server's tasks")]
#![expect(clippy::disallowed_methods, reason = "the server runs in real time")]
#![expect(clippy::unwrap_used, reason = "tests, also where they are not in a test function")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of the tests' relay are small")]

mod api;
mod browser;
mod client;
mod compat;
mod guard;
mod hostile;
mod metrics;
mod page;
mod play;
mod recordings;
mod stand_in;
mod tls;
