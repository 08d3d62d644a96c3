//! Decides who may publish and view on a relay.
//!
//! A caller comes with a stream ID, which [`Call::parse`] reads in every form that encoders,
//! players and servers use. [`Access::decide`] then admits or refuses it, by the relay's
//! [users](User), by [signed tokens](Token), by [JSON web tokens](JwtConfig), or by the word of a
//! server of the operator's, a [callout](CalloutConfig). [`Access::operator`] decides about the
//! API.
//!
//! The limits of a stream, such as the number of its viewers, belong to the machine of streams.
//!
//! ```
//! use punctual_relay_access::{
//!     Access, AccessConfig, Action, Call, CallDefaults, Caller, Password, TicketKey, User,
//! };
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ann = User::new("ann")
//!     .with_password(Password::new("hush")?)
//!     .with_permission(Action::Publish, "live/*".parse()?);
//! let config = AccessConfig { users: vec![ann], ..AccessConfig::default() };
//! let access = Access::new(config, TicketKey::random())?;
//!
//! let caller = Caller::srt("192.0.2.1".parse()?, "1");
//! let decide = async |stream_id: &str| {
//!     let call = Call::parse(&stream_id.into(), &CallDefaults::default())?;
//!     access.decide(&call, &caller).await
//! };
//! assert_eq!(decide("publish:live/cam:ann:hush").await?.user(), Some("ann"));
//! let refused = decide("publish:live/cam:ann:guess").await.unwrap_err();
//! assert_eq!(refused.to_string(), "the password of `ann` is wrong");
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "tokens end by the time of day")]

mod access;
mod action;
mod call;
mod callout;
mod credentials;
mod decision;
mod forms;
mod jwks;
mod jwt;
mod name;
mod network;
mod one_certificate;
mod operator;
mod password;
mod pattern;
mod query;
mod secret;
mod token;
mod user;
mod web;

pub use access::{Access, AccessConfig, AccessError, TicketKey};
pub use action::{Action, ActionError, Role};
pub use call::{Call, CallDefaults, CallError, shown};
pub use callout::{CalloutConfig, CalloutFormat, CalloutFormatError};
pub use credentials::Credentials;
pub use decision::{Admitted, Caller, Decision, Refusal, Refused};
pub use jwt::JwtConfig;
pub use name::{StreamName, StreamNameError};
pub use network::{Network, NetworkError, Networks};
pub use operator::Operator;
pub use password::{Password, PasswordError};
pub use pattern::{Narrowness, PatternError, StreamPattern};
pub use secret::Secret;
pub use token::{SigningKey, SigningKeyError, Token, TokenError};
pub use user::{Permission, User, UserError};
pub use web::{Url, UrlError, Web, WebError};
