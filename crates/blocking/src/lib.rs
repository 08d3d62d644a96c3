//! Calls that block, over the sockets of the crate `punctual`, which do not: for interfaces in
//! other languages.
//!
//! [`Runtimes`] are the threads that drive the ports. A thread of the application that finds
//! nothing to do waits at the [`Readiness`] of its socket, which the socket's watcher raises;
//! [`Subscriber`]s such as the event sets of libsrt's interface hear of the same events. A
//! [`MessageInbox`] holds messages that one lock of the connection has brought.
//!
//! ```
//! use punctual_blocking::{Events, Readiness, now};
//! use std::time::Duration;
//!
//! let readiness = Readiness::<()>::default();
//! let mark = readiness.mark();
//! std::thread::scope(|scope| {
//!     scope.spawn(|| readiness.raise(1, Events::IN));
//!     assert!(readiness.wait(mark, Some(now() + Duration::from_secs(60))));
//! });
//! assert!(readiness.events().any(Events::IN));
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "this crate owns the locks of blocking calls")]

mod events;
mod inbox;
mod readiness;
mod runtimes;

pub use events::Events;
pub use inbox::MessageInbox;
pub use readiness::{Mark, Readiness, Subscriber, now};
pub use runtimes::Runtimes;
