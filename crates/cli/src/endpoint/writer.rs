//! Where messages go to.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use punctual::{Error, Group, Socket};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::UdpSocket;

use crate::endpoint::reader::LastPeer;
use crate::exit::Failure;

/// Writes messages.
pub(crate) enum Writer {
    /// To a file, a pipe or TCP.
    Bytes(Box<dyn AsyncWrite + Send + Sync + Unpin>),
    /// To an SRT peer by several links.
    Group(Group),
    /// To nowhere: this end only reads.
    None,
    /// To an SRT peer.
    Srt(Socket),
    /// To the peer of a UDP socket.
    Udp(Arc<UdpSocket>),
    /// To who sent the last datagram to a UDP socket.
    UdpAnswer(Arc<UdpSocket>, LastPeer),
}

impl Writer {
    /// Writes all of `batch`, waiting for room as long as it takes.
    pub(crate) async fn write(&mut self, batch: &mut VecDeque<Bytes>) -> Result<(), Failure> {
        match self {
            Self::Bytes(stream) => {
                for message in batch.drain(..) {
                    stream.write_all(&message).await?;
                }
                stream.flush().await?;
            }
            Self::Group(group) => {
                while let Some(message) = batch.front() {
                    match group.send(message.clone()).await {
                        Ok(()) => {}
                        Err(Error::Size { size, max }) => tracing::warn!(
                            "a message of {size} bytes is left out: SRT carries at most {max}"
                        ),
                        Err(error) => return Err(error.into()),
                    }
                    batch.pop_front();
                }
            }
            Self::None => batch.clear(),
            Self::Srt(socket) => {
                while !batch.is_empty() {
                    match socket.send_many(batch).await {
                        Ok(_) => {}
                        Err(Error::Size { size, max }) => {
                            batch.pop_front();
                            tracing::warn!(
                                "a message of {size} bytes is left out: SRT carries at most {max}"
                            );
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            Self::Udp(socket) => {
                for message in batch.drain(..) {
                    ignore_refusal(socket.send(&message).await)?;
                }
            }
            Self::UdpAnswer(socket, last_peer) => {
                let peer = *last_peer.lock().unwrap_or_else(PoisonError::into_inner);
                for message in batch.drain(..) {
                    if let Some(peer) = peer {
                        ignore_refusal(socket.send_to(&message, peer).await)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Ends the stream in good order: what is buffered is still sent.
    pub(crate) async fn close(&mut self) {
        let closed = match self {
            Self::Bytes(stream) => stream.shutdown().await,
            Self::Srt(socket) => {
                socket.close().await;
                Ok(())
            }
            Self::Group(group) => {
                group.close().await;
                Ok(())
            }
            Self::None | Self::Udp(_) | Self::UdpAnswer(..) => Ok(()),
        };
        if let Err(error) = closed {
            tracing::debug!("closing: {error}");
        }
    }
}

/// Nobody listens at a UDP port: for a sender that is no reason to stop.
fn ignore_refusal(sent: io::Result<usize>) -> io::Result<()> {
    match sent {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        result => result.map(|_| ()),
    }
}
