//! The relay's API, page, player and metrics.

#![forbid(unsafe_code)]

mod play;

pub use play::{PLAYER_JS, PlayFeed, PlayMessage};
