//! Streams of bytes that outlive their connections.
//!
//! Two ends that set [`Config::with_framing`](crate::Config::with_framing) and
//! [`Config::with_resume`](crate::Config::with_resume) agree to resume a stream whose connection is
//! lost. A [`ResumableSender`] keeps each message until the [`ResumableReceiver`] has confirmed
//! that it is written, in memory or, by a [`FileSpool`], also beyond the end of its process:
//!
//! ```no_run
//! use punctual::resume::ResumableSender;
//! use punctual::{Config, Reconnect};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let remote = "192.0.2.1:4200".parse()?;
//! let config = Config::file().with_framing(true).with_resume(true);
//! let stream = ResumableSender::in_memory(64 << 20)?;
//! let source = stream.clone();
//! tokio::spawn(async move {
//!     for number in 0..1_000_u32 {
//!         source.send(number.to_be_bytes().to_vec().into()).await?;
//!     }
//!     source.end();
//!     Ok::<(), punctual::resume::ResumeError>(())
//! });
//! loop {
//!     let socket = Reconnect::default().connect(remote, config.clone()).await?;
//!     match stream.carry(&socket, |_| ()).await {
//!         Ok(()) => break socket.close().await,
//!         Err(lost) => eprintln!("{lost}; connecting again"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod file_spool;
mod random;
mod receiver;
mod sender;

pub use file_spool::{FileSpool, FileSpoolError};
pub use punctual_resume::{
    Beginning, Kept, MemorySpool, ResumeError, Resumption, Sent, Spool, SpoolError, StreamSecret,
};
pub use receiver::{Received, ResumableReceiver, WrittenBytes};
pub use sender::{Carried, CarryError, ResumableSender};

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::KeyState;
use punctual_resume::ResumePeer;
use tokio::time::timeout;

use crate::socket::Socket;

/// The peer of `socket`: chosen if this end has called it, or if both have the passphrase.
fn peer_of(socket: &Socket) -> ResumePeer {
    let info = socket.info();
    let is_encrypted = [info.send_key_state, info.receive_key_state] == [KeyState::Secured; 2];
    if is_encrypted || !socket.was_accepted() { ResumePeer::Chosen } else { ResumePeer::Anybody }
}

/// Sends the last record to a peer that is refused, and ends the connection.
async fn refuse(socket: &Socket, mut record: Bytes) {
    let goodbye = async {
        if socket.write(&mut record).await.is_ok() {
            socket.close().await;
        }
    };
    let _ = timeout(GOODBYE, goodbye).await;
    socket.begin_abort();
}

/// The time for the record that refuses a peer, which may never read it.
const GOODBYE: Duration = Duration::from_millis(500);
