//! Where messages come from.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::{Bytes, BytesMut};
use punctual::{CloseReason, Error, Group, Message, Socket};
use tokio::net::UdpSocket;

use crate::endpoint::bytes::ByteReader;
use crate::endpoint::paced::PacedReader;
use crate::exit::Failure;

/// Reads messages.
pub(crate) enum Reader {
    /// From a file, a pipe or TCP.
    Bytes(ByteReader),
    /// From an SRT peer by several links.
    Group(Group),
    /// From nowhere: this end only writes.
    None,
    /// From a recording, at its pace.
    Paced(Box<PacedReader>),
    /// From an SRT peer.
    Srt { socket: Socket, messages: Vec<Message> },
    /// From a UDP socket.
    Udp { socket: Arc<UdpSocket>, last_peer: LastPeer, buffer: BytesMut },
}

/// Who sent the last datagram, for answers.
pub(crate) type LastPeer = Arc<Mutex<Option<SocketAddr>>>;

impl Reader {
    /// Reads at least one message, or gives `false` if no more will come. Cancel safe.
    pub(crate) async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<bool, Failure> {
        match self {
            Self::Bytes(reader) => Ok(reader.read(batch).await?),
            Self::Group(group) => match group.recv().await {
                Ok(message) => {
                    batch.push(message.payload);
                    while batch.len() < BATCH
                        && let Ok(Some(message)) = group.try_recv()
                    {
                        batch.push(message.payload);
                    }
                    Ok(true)
                }
                Err(Error::Closed(CloseReason::Peer | CloseReason::Local)) => Ok(false),
                Err(error) => Err(error.into()),
            },
            Self::None => std::future::pending().await,
            Self::Paced(reader) => reader.read(batch).await,
            Self::Srt { socket, messages } => match socket.recv_many(messages, BATCH).await {
                Ok(_) => {
                    batch.extend(messages.drain(..).map(|message| message.payload));
                    Ok(true)
                }
                Err(Error::Closed(CloseReason::Peer | CloseReason::Local)) => Ok(false),
                Err(error) => Err(error.into()),
            },
            Self::Udp { socket, last_peer, buffer } => {
                loop {
                    socket.readable().await?;
                    match read_datagrams(socket, last_peer, buffer, batch) {
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        // What an ICMP message says of an earlier datagram; the socket goes on.
                        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                        result => return Ok(result.map(|()| true)?),
                    }
                }
            }
        }
    }

    /// Throws away what waits already, so that a stream begins with what arrives from now on.
    pub(crate) fn skip_old(&mut self) {
        if let Self::Udp { socket, last_peer, buffer } = self {
            let mut old = Vec::new();
            while read_datagrams(socket, last_peer, buffer, &mut old).is_ok() {
                old.clear();
            }
        }
    }
}

/// Reads the datagrams that are there, at least one.
fn read_datagrams(
    socket: &UdpSocket,
    last_peer: &LastPeer,
    buffer: &mut BytesMut,
    batch: &mut Vec<Bytes>,
) -> io::Result<()> {
    for read in 0..BATCH {
        buffer.reserve(LARGEST_DATAGRAM);
        match socket.try_recv_buf_from(buffer) {
            Ok((_, peer)) => {
                *last_peer.lock().unwrap_or_else(PoisonError::into_inner) = Some(peer);
                batch.push(buffer.split().freeze());
            }
            Err(error) if read == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(())
}

/// Messages to read at once.
const BATCH: usize = 64;

/// No UDP datagram is larger.
const LARGEST_DATAGRAM: usize = 65_535;
