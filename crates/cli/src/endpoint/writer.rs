//! The destinations of messages.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use punctual::{Error, Group, Outgoing, Socket};

use crate::endpoint::Traffic;
use crate::endpoint::byte_writer::ByteWriter;
use crate::endpoint::datagrams::DatagramWriter;
use crate::endpoint::fit::Fit;
use crate::endpoint::frames::FrameWriter;
use crate::endpoint::recording::Recording;
use crate::endpoint::rtp::RtpWriter;
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
    Group(Group, Fit),
    /// To no destination: this end only reads.
    None,
    /// To a UDP socket, in RTP packets.
    Rtp(RtpWriter),
    /// To an SRT peer.
    Srt(Socket, Fit),
    /// To a UDP socket.
    Udp(DatagramWriter),
}

impl Writer {
    /// A writer to an SRT peer.
    pub(crate) fn srt(socket: Socket) -> Self {
        match socket.info().framing {
            true => Self::Frames(FrameWriter::new(socket)),
            false => {
                let fit = Fit::new(socket.peer_addr().to_string());
                Self::Srt(socket, fit)
            }
        }
    }

    /// A writer to a group.
    pub(crate) fn group(group: Group) -> Self {
        let fit = Fit::new("the group".to_owned());
        Self::Group(group, fit)
    }

    /// Another writer to the same SRT peer; `None` for other destinations.
    pub(crate) fn again(&self) -> Option<Self> {
        match self {
            Self::Frames(writer) => Some(Self::Frames(writer.again())),
            Self::Group(group, fit) => Some(Self::Group(group.clone(), fit.again())),
            Self::Srt(socket, fit) => Some(Self::Srt(socket.clone(), fit.again())),
            _ => None,
        }
    }

    /// Counts the messages here that are too long for the connection and not sent.
    pub(super) fn count_in(&mut self, traffic: &Arc<Traffic>) {
        if let Some(fit) = self.fit() {
            fit.count_in(traffic);
        }
    }

    /// The messages come from a stream of bytes, so that they may be cut anywhere.
    pub(super) fn cut_anywhere(&mut self) {
        if let Some(fit) = self.fit() {
            fit.cut_anywhere();
        }
    }

    fn fit(&mut self) -> Option<&mut Fit> {
        match self {
            Self::Group(_, fit) | Self::Srt(_, fit) => Some(fit),
            Self::Rtp(writer) => Some(writer.fit()),
            _ => None,
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
            Self::Group(group, fit) => write_to_group(group, fit, batch).await?,
            Self::None => batch.clear(),
            Self::Srt(socket, fit) => write_to_socket(socket, fit, batch).await?,
            Self::Rtp(writer) => writer.write(batch).await?,
            Self::Udp(writer) => writer.write(&mut payloads(batch)).await?,
        }
        Ok(())
    }

    /// Ends the stream in good order: buffered messages are still sent.
    pub(crate) async fn close(&mut self) {
        if let Some(fit) = self.fit() {
            fit.finish();
        }
        let closed = match self {
            Self::Bytes(writer) => writer.shutdown().await,
            Self::File(recording) => recording.shutdown().await,
            Self::Frames(writer) => {
                writer.close().await;
                Ok(())
            }
            Self::Srt(socket, _) => {
                socket.close().await;
                Ok(())
            }
            Self::Group(group, _) => {
                group.close().await;
                Ok(())
            }
            Self::None | Self::Rtp(_) | Self::Udp(_) => Ok(()),
        };
        if let Err(error) = closed {
            tracing::debug!("closing: {error}");
        }
    }
}

/// Writes all of `batch`, with messages cut to what the connection carries. Cancel safe.
async fn write_to_socket<M>(
    socket: &Socket,
    fit: &mut Fit,
    batch: &mut VecDeque<M>,
) -> Result<(), Failure>
where
    M: Clone + Into<Outgoing>,
{
    loop {
        let sent = match fit.parts() {
            parts if !parts.is_empty() => socket.send_many(parts).await,
            _ if batch.is_empty() => return Ok(()),
            _ if fit.is_open() => {
                take_next(fit, batch);
                continue;
            }
            _ => socket.send_many(batch).await,
        };
        check_size(sent.map(drop), fit, batch)?;
    }
}

/// The same for a group, which takes one message at a time.
async fn write_to_group<M>(
    group: &Group,
    fit: &mut Fit,
    batch: &mut VecDeque<M>,
) -> Result<(), Failure>
where
    M: Clone + Into<Outgoing>,
{
    loop {
        let is_part = !fit.parts().is_empty();
        let next: Option<Outgoing> = match fit.parts().front() {
            Some(part) => Some(part.clone()),
            None => batch.front().cloned().map(M::into),
        };
        let Some(next) = next else { return Ok(()) };
        if !is_part && fit.is_open() {
            take_next(fit, batch);
            continue;
        }
        match group.send_with(next.payload, next.options).await {
            Ok(()) if is_part => drop(fit.parts().pop_front()),
            Ok(()) => drop(batch.pop_front()),
            sent => check_size(sent, fit, batch)?,
        }
    }
}

/// After a message that was too long, cuts it and those like it.
fn check_size<M: Into<Outgoing>>(
    sent: Result<(), Error>,
    fit: &mut Fit,
    batch: &mut VecDeque<M>,
) -> Result<(), Failure> {
    match sent {
        Err(Error::Size { max, .. }) => {
            let was_part = !fit.parts().is_empty();
            fit.limit(max);
            if !was_part {
                take_next(fit, batch);
            }
            Ok(())
        }
        sent => Ok(sent?),
    }
}

fn take_next<M: Into<Outgoing>>(fit: &mut Fit, batch: &mut VecDeque<M>) {
    if let Some(message) = batch.pop_front() {
        fit.take(message.into(), !batch.is_empty());
    }
}

/// Takes the payloads out of the messages.
fn payloads<M: Into<Outgoing>>(batch: &mut VecDeque<M>) -> VecDeque<Bytes> {
    batch.drain(..).map(|message| message.into().payload).collect()
}
