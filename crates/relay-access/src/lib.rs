//! Who may publish and view on a relay.
#![forbid(unsafe_code)]

mod action;
mod call;
mod credentials;
mod forms;
mod name;
mod network;
mod password;
mod pattern;
mod query;
mod secret;
mod token;

pub use action::{Action, ActionError, Role};
pub use call::{Call, CallDefaults, CallError, shown};
pub use credentials::Credentials;
pub use name::{StreamName, StreamNameError};
pub use network::{Network, NetworkError, Networks};
pub use password::{Password, PasswordError};
pub use pattern::{Narrowness, PatternError, StreamPattern};
pub use secret::Secret;
pub use token::{SigningKey, SigningKeyError, Token, TokenError};
