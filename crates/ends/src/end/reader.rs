//! The sources of messages.

use std::sync::Arc;

use bytes::Bytes;
use punctual::resume::WrittenBytes;
use punctual::{CloseReason, Error, FrameReader, Group, Message, Outgoing, Socket};

use crate::end::MessageTraffic;
use crate::end::bytes::ByteReader;
use crate::end::datagrams::DatagramReader;
use crate::end::frames;
use crate::end::paced::PacedReader;
use crate::end::resumed::ResumedReader;
use crate::end::rtp::RtpReader;
use crate::failure::Failure;

/// Reads messages from an end of a stream.
pub struct Reader(pub(super) Input);

/// The kinds of sources.
pub(super) enum Input {
    /// From a file, a pipe or TCP.
    Bytes(ByteReader),
    /// From an SRT peer, in frames of a stream of bytes.
    Frames { socket: Socket, pieces: Vec<Message>, frames: FrameReader },
    /// From an SRT peer by several links.
    Group(Group),
    /// From no source: this end only writes.
    None,
    /// From a recording, at its pace.
    Paced(Box<PacedReader>),
    /// From an SRT peer whose stream goes on over one connection after the other.
    Resumed(ResumedReader),
    /// From an SRT peer.
    Srt { socket: Socket, messages: Vec<Message> },
    /// From a UDP socket, in RTP packets.
    Rtp(Box<RtpReader>),
    /// From a UDP socket.
    Udp(Box<DatagramReader>),
}

impl Reader {
    /// A reader from an SRT peer.
    pub(super) fn srt(socket: Socket) -> Self {
        Self(match socket.info().framing {
            true => Input::Frames { socket, pieces: Vec::new(), frames: FrameReader::default() },
            false => Input::Srt { socket, messages: Vec::new() },
        })
    }

    /// Reads at least one message, or returns `false` if no more will come. Cancel safe.
    ///
    /// # Errors
    ///
    /// The connection failed, or the file cannot be read.
    pub async fn read(&mut self, batch: &mut Vec<Bytes>) -> Result<bool, Failure> {
        match &mut self.0 {
            Input::Bytes(reader) => Ok(reader.read(batch).await?),
            Input::Frames { socket, pieces, frames } => {
                let before = batch.len();
                while batch.len() == before {
                    match socket.recv_many(pieces, BATCH).await {
                        Ok(_) => {}
                        Err(Error::Closed(CloseReason::Peer | CloseReason::Local)) => {
                            return frames::finish(frames).map(|()| false);
                        }
                        Err(error) => return Err(error.into()),
                    }
                    for piece in pieces.drain(..) {
                        frames::take_in(frames, &piece.payload, batch)?;
                    }
                }
                Ok(true)
            }
            Input::Group(group) => match group.recv().await {
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
            Input::None => std::future::pending().await,
            Input::Paced(reader) => reader.read(batch).await,
            Input::Resumed(reader) => reader.read(batch).await,
            Input::Srt { socket, messages } => match socket.recv_many(messages, BATCH).await {
                Ok(_) => {
                    batch.extend(messages.drain(..).map(|message| message.payload));
                    Ok(true)
                }
                Err(Error::Closed(CloseReason::Peer | CloseReason::Local)) => Ok(false),
                Err(error) => Err(error.into()),
            },
            Input::Rtp(reader) => {
                let mut messages = Vec::new();
                reader.read_timed(&mut messages).await?;
                batch.extend(messages.into_iter().map(|message| message.payload));
                Ok(true)
            }
            Input::Udp(reader) => {
                reader.read(batch).await?;
                Ok(true)
            }
        }
    }

    /// Like [`read`](Self::read), with the origin time of each message if it is known better than
    /// by the time of reading.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub async fn read_timed(&mut self, batch: &mut Vec<Outgoing>) -> Result<bool, Failure> {
        match &mut self.0 {
            Input::Rtp(reader) => {
                reader.read_timed(batch).await?;
                return Ok(true);
            }
            Input::Udp(reader) => {
                reader.read_timed(batch).await?;
                return Ok(true);
            }
            _ => {}
        }
        let mut messages = Vec::new();
        let more = self.read(&mut messages).await?;
        batch.extend(messages.into_iter().map(Outgoing::from));
        Ok(more)
    }

    /// The count of bytes that are written, and the number of bytes that was read, for a peer that
    /// keeps messages until they are written.
    pub(crate) fn taken(&self) -> Option<(WrittenBytes, u64)> {
        match &self.0 {
            Input::Resumed(reader) => Some(reader.taken()),
            _ => None,
        }
    }

    /// Discards messages that wait already, so that a stream begins with the next arrival.
    pub(crate) async fn skip_old(&mut self) {
        match &mut self.0 {
            Input::Rtp(reader) => reader.skip().await,
            Input::Udp(reader) => reader.skip().await,
            _ => {}
        }
    }

    /// Counts messages that are missing by their numbers here.
    pub(super) fn count_in(&mut self, traffic: &Arc<MessageTraffic>) {
        if let Input::Rtp(reader) = &mut self.0 {
            reader.count_in(traffic);
        }
    }
}

/// The number of messages to read at once.
const BATCH: usize = 64;
