//! The destinations of messages.

use std::collections::VecDeque;

use bytes::Bytes;
use punctual::{Error, Group, Outgoing, Socket};

use crate::endpoint::byte_writer::ByteWriter;
use crate::endpoint::cut::cut_message;
use crate::endpoint::datagrams::DatagramWriter;
use crate::endpoint::frames::FrameWriter;
use crate::endpoint::recording::Recording;
use crate::exit::Failure;

/// Writes messages.
pub(crate) enum Writer {
    /// To a pipe or TCP.
    Bytes(ByteWriter),
    /// To a file.
    File(Recording),
    /// To an SRT peer, in frames of a stream of bytes.
    Frames(FrameWriter),
    /// To an SRT peer by several links.
    Group(Group),
    /// To no destination: this end only reads.
    None,
    /// To a QUIC peer, without SRT.
    #[cfg(feature = "quic")]
    Quic(punctual::quic::QuicConnection),
    /// To an SRT peer.
    Srt(Socket),
    /// To a UDP socket.
    Udp(DatagramWriter),
}

impl Writer {
    /// A writer to an SRT peer.
    pub(crate) fn srt(socket: Socket) -> Self {
        match socket.info().framing {
            true => Self::Frames(FrameWriter::new(socket)),
            false => Self::Srt(socket),
        }
    }

    /// Writes all of `batch`, waiting for room as long as it takes.
    pub(crate) async fn write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        match self {
            Self::Bytes(writer) => writer.write(&mut payloads(batch)).await?,
            Self::File(recording) => recording.write(&mut payloads(batch)).await?,
            Self::Frames(writer) => writer.write(batch).await?,
            Self::Group(group) => {
                while let Some(message) = batch.front() {
                    let message: Outgoing = message.clone().into();
                    let Outgoing { payload, options } = message.clone();
                    match group.send_with(payload, options).await {
                        Ok(()) => {}
                        Err(Error::Size { max, .. }) => {
                            for Outgoing { payload, options } in fit(message, max) {
                                group.send_with(payload, options).await?;
                            }
                        }
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
                        Err(Error::Size { max, .. }) => {
                            let Some(message) = batch.pop_front() else { break };
                            let mut pieces = fit(message.into(), max);
                            while !pieces.is_empty() {
                                socket.send_many(&mut pieces).await?;
                            }
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
            #[cfg(feature = "quic")]
            Self::Quic(connection) => {
                crate::endpoint::quic_messages::write(connection, &mut payloads(batch)).await?;
            }
            Self::Udp(writer) => writer.write(&mut payloads(batch)).await?,
        }
        Ok(())
    }

    /// Ends the stream in good order: buffered messages are still sent.
    pub(crate) async fn close(&mut self) {
        let closed = match self {
            Self::Bytes(writer) => writer.shutdown().await,
            Self::File(recording) => recording.shutdown().await,
            Self::Frames(writer) => {
                writer.close().await;
                Ok(())
            }
            Self::Srt(socket) => {
                socket.close().await;
                Ok(())
            }
            Self::Group(group) => {
                group.close().await;
                Ok(())
            }
            #[cfg(feature = "quic")]
            Self::Quic(connection) => {
                connection.close().await;
                Ok(())
            }
            Self::None | Self::Udp(_) => Ok(()),
        };
        if let Err(error) = closed {
            tracing::debug!("closing: {error}");
        }
    }
}

/// The parts of a message that is too long for a connection with payloads of at most `max` bytes: a
/// transport stream is cut between its packets, and other messages are left out with a warning.
fn fit(message: Outgoing, max: usize) -> VecDeque<Outgoing> {
    let Outgoing { payload, options } = message;
    match cut_message(&payload, max) {
        Some(pieces) => pieces.map(|payload| Outgoing { payload, options }).collect(),
        None => {
            let size = payload.len();
            tracing::warn!(
                "a message of {size} bytes is left out: this connection carries at most {max}"
            );
            VecDeque::new()
        }
    }
}

/// Takes the payloads out of the messages.
fn payloads<M: Into<Outgoing>>(batch: &mut VecDeque<M>) -> VecDeque<Bytes> {
    batch.drain(..).map(|message| message.into().payload).collect()
}
