//! The machine of a relay: streams, their publishers and viewers, and what each viewer gets next.
//!
//! The machine has no socket, no clock and no thread: the caller passes in messages and the time,
//! and takes out messages and events. One [`Stream`] is one name: at most one publisher is active,
//! its messages are held once, its transport stream is read once, and each viewer is a place in it.
//! [`Refusals`] keeps the latest callers that were refused, [`Places`] counts the connections of
//! each address.
//!
//! ```
//! use bytes::Bytes;
//! use punctual_relay::{Publisher, PublisherId, Start, Stream, StreamRules, Viewer, ViewerId};
//! use punctual_units::Instant;
//!
//! let now = Instant::from_millis(0);
//! let rules = StreamRules { start: Start::Live, ..StreamRules::default() };
//! let mut stream = Stream::new("live", rules, now);
//! stream.publish(now, PublisherId(1), Publisher::default())?;
//! stream.view(ViewerId(2), Viewer::default())?;
//! for _ in 0..8 {
//!     // After 8 messages without packets it is no transport stream.
//!     stream.push(now, PublisherId(1), now, Bytes::from_static(b"no transport stream"));
//! }
//! let mut got = Vec::new();
//! stream.feed(now, ViewerId(2), |message| {
//!     got.push(message.payload.clone());
//!     true
//! });
//! assert_eq!(got, [&b"no transport stream"[..]; 8]);
//! # Ok::<(), punctual_relay::NotAdmitted>(())
//! ```

#![forbid(unsafe_code)]

mod admission;
mod places;
mod refusals;
mod rules;
mod stream;

pub use admission::NotAdmitted;
pub use places::{Place, Places};
pub use refusals::{Refusals, RefusedCall};
pub use rules::{SecondPublisher, SlowViewer, Start, StreamRules};
pub use stream::{
    Message, Publisher, PublisherId, Seat, Stream, StreamEvent, StreamState, Viewer, ViewerId,
    ViewerLink, ViewerPhase, ViewerState,
};
