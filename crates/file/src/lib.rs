//! Files and folders over an SRT connection, as `punctual file` carries them.
//!
//! [`send`](fn@send) carries a [`Listing`] of files over a connected [`Socket`], and
//! [`receive`](fn@receive) writes them into a [`Store`]. Three formats exist, and both ends find
//! out which one to use:
//!
//! - Two ends that run Punctual use all messages of [`message`]: an interrupted file is resumed, a
//!   file that the receiver has already is not sent, and the SHA-256 of each file is compared.
//! - With srt-xtransmit each message is one of its segments ([`message::Segment`]): files go from
//!   their start, without checksums.
//! - A connection in stream mode carries one file, as srt-file-transmit does: its name is the
//!   caller's stream ID, and the end of the connection is the end of the file.
//!
//! The crate makes no connections and prints nothing. It reports to the caller's [`Observer`] what
//! happens, as [`Event`]s; [`Progress`] adds them up. A problem with one file is an event, and the
//! transfer goes on; an [`Error`] ends it.
//!
//! ```no_run
//! use std::path::Path;
//!
//! use punctual::{Config, Port, PortConfig, Transmission};
//! use punctual_file::{Event, Listing, SendFormat, send};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let port = Port::bind(PortConfig::default()).await?;
//! let config = Config::default().with_transmission(Transmission::Messages);
//! let socket = port.connect("192.0.2.1:4200".parse()?, config).await?;
//!
//! let listing = Listing::of(Path::new("recordings"))?;
//! let report = |event: Event<'_>| println!("{event:?}");
//! send(&socket, &listing, SendFormat::default(), &report).await?;
//! socket.close().await;
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod byte_stream;
mod error;
mod event;
mod handover;
pub mod message;
mod path;
mod progress;
mod receive;
mod receiver;
mod send;
mod sender;
mod source;
mod store;

pub use error::{Error, KeptFile, Side};
pub use event::{Event, Observer};
pub use handover::abandon;
pub use path::{PathError, RelativePath};
pub use progress::Progress;
pub use receive::{ReceiveFormat, receive};
pub use send::{SendFormat, send};
pub use source::{Entry, Listing};
pub use store::{Store, StoreError};

#[doc(no_inline)]
pub use punctual::Socket;
