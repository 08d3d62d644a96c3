//! The configuration of a relay: its keys, its file, and what a change of it changes.
//!
//! [`load`] reads a file in TOML, the environment and the changes that the API has kept, checks all
//! of them and tells all problems at once, each with its line and column. [`Sources`] keeps them
//! for a reload and for changes by the API, and [`check`] checks them again. [`ConfigChange`] says
//! in which keys two configurations differ, and [`Loaded::print`] shows one with the origin of each
//! value. [`keys`] describes every key from the same tables.
//!
//! ```
//! use punctual_relay_access::StreamName;
//! use punctual_relay_config::{Sources, check};
//!
//! let text = r#"
//! [defaults]
//! keep-viewers = "20s"
//! [stream."live/*"]
//! record = true
//! "#;
//! let configuration = check(&Sources::text("relay.toml", text)).unwrap().configuration;
//! let settings = configuration.stream(&StreamName::new("live/cam")?);
//! assert!(settings.record.enabled);
//! assert_eq!(settings.publishers.keep_viewers.as_secs(), 20);
//!
//! let text = "[http]\nlistne = \":9997\"\n";
//! let problem = check(&Sources::text("relay.toml", text)).unwrap_err()[0].to_string();
//! let start = "relay.toml:2:1: `http.listne`: unknown key; did you mean `listen`?";
//! assert!(problem.starts_with(start));
//! # Ok::<(), punctual_relay_access::StreamNameError>(())
//! ```

#![forbid(unsafe_code)]

mod api_changes;
mod change;
mod configuration;
mod environment_keys;
mod hooks;
mod http;
mod import;
mod listener;
mod load;
mod named_files;
mod origin;
mod print;
mod problem;
mod reference;
mod rows;
mod secret;
mod sources;
mod streams;
mod table;
mod toml_text;
mod users;
mod value;

pub use change::{ChangeKind, ConfigChange, KeyChange, PartChange};
pub use configuration::Configuration;
pub use hooks::{HookCommand, HookEvent, HookSettings};
pub use http::{DrainSettings, HttpSettings};
pub use import::{Imported, LeftKey, import};
pub use listener::{CallerMode, ListenerSettings, TlsFiles};
pub use load::{Loaded, check, load};
pub use origin::ValueOrigin;
pub use problem::ConfigProblem;
pub use reference::{KeySection, explain, keys, page, sections};
pub use rows::{KeyFacts, ReloadEffect};
pub use secret::SecretValue;
pub use sources::{Environment, Sources};
pub use streams::{
    AbsentStream, CipherChoice, EncryptionSettings, ForwardSettings, PublisherSettings, RecordPath,
    RecordSettings, RetryRange, SecondPublisher, SegmentTime, SlowViewer, SourceSettings,
    StreamSection, StreamSettings, StreamTable, StreamUri, ViewerSettings, ViewerStart,
};
pub use users::{AuthSettings, PermissionTable, UserTable};
