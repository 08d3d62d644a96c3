//! Commands and URLs that the events of a relay start.
//!
//! A [`Hook`] says which events start which program, or go to which URL. [`Hooks`] are those of a
//! relay at work, which are told of each [`HookEvent`]: they start programs, end them with the
//! state that the event began, and send requests.
//!
//! A program gets the event as variables of its environment, by our names and by MediaMTX's, and no
//! shell reads its command. A URL gets it as JSON, signed with HMAC-SHA-256. Neither gets secrets.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "events come from any thread")]
#![expect(clippy::disallowed_methods, reason = "requests have the time of the day")]

#[cfg(unix)]
mod child;
#[cfg(not(unix))]
#[path = "no_child.rs"]
mod child;
mod counts;
mod deliveries;
mod event;
mod hook;
mod hooks;
#[cfg(unix)]
mod output;
mod request;
mod variables;

pub use counts::HookResult;
pub use event::{HookConnection, HookEvent, HookEventKind, HookSegment, UnknownHookEvent};
pub use hook::{Hook, HookError};
pub use hooks::Hooks;
