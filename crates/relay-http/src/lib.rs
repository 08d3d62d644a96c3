//! The HTTP service of a relay: its API, page, player, metrics and health.
//!
//! The relay itself is behind the trait [`Relay`], and the rights of callers behind [`Access`].
//! [`router`] makes the service of both, and [`serve`] puts it on a port.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_types, reason = "the tasks of connections share their state")]

mod access;
mod app;
mod compat;
mod event_log;
mod guard;
mod health;
mod kept_streams;
mod metrics;
mod numbers;
mod page;
mod play;
mod problem;
mod receiving;
mod relay;
pub mod report;
mod routes;
mod serve;
mod v1;
mod watch;

pub use access::{Access, Allowed, Caller, Credential, Right, Verdict};
pub use app::{App, Settings};
pub use event_log::{EventLog, Following};
pub use play::{PLAYER_JS, PlayFeed, PlayMessage};
pub use relay::{
    Answer, ConfigSection, Done, ExcerptFile, ExcerptTimes, Fault, HlsFile, Relay, SectionChange,
    SectionEdit, StreamAct, Ticket, View,
};
pub use routes::{metrics_router, openapi, router};
pub use serve::{Certificate, CertificateError, Limits, serve};
