//! How people write links: parameters, their values, and events.

pub(crate) mod error;
mod event;
pub(crate) mod key;
mod nearest;
mod show;
mod value;
pub(crate) mod words;

pub use error::LinkTextError;
pub use key::{KEYS, LinkKey};
pub(crate) use nearest::nearest;
