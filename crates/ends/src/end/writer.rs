//! The destinations of messages.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use punctual::Outgoing;

use crate::end::byte_writer::ByteWriter;
use crate::end::datagrams::DatagramWriter;
use crate::end::fit::Fit;
use crate::end::recording::Recording;
use crate::end::rtp::RtpWriter;
use crate::end::{MessageTraffic, SrtWriter};
use crate::failure::Failure;

/// Writes messages to an end of a stream.
pub struct Writer(pub(super) Output);

/// The kinds of destinations.
pub(super) enum Output {
    /// A pipe or TCP.
    Bytes(ByteWriter),
    /// A file.
    File(Recording),
    /// No destination: this end only reads.
    None,
    /// A UDP socket, in RTP packets.
    Rtp(RtpWriter),
    /// An SRT peer.
    Srt(SrtWriter),
    /// A UDP socket.
    Udp(DatagramWriter),
}

impl Writer {
    /// A writer to an SRT peer.
    pub(super) fn srt(writer: SrtWriter) -> Self {
        Self(Output::Srt(writer))
    }

    /// Another writer to the same SRT peer, which can also write without waiting; `None` for other
    /// destinations.
    pub fn to_same_peer(&self) -> Option<SrtWriter> {
        match &self.0 {
            Output::Srt(writer) => Some(writer.again()),
            _ => None,
        }
    }

    /// Counts the messages here that are too long for the connection and not sent.
    pub(super) fn count_in(&mut self, traffic: &Arc<MessageTraffic>) {
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
        match &mut self.0 {
            Output::Srt(writer) => writer.fit(),
            Output::Rtp(writer) => Some(writer.fit()),
            _ => None,
        }
    }

    /// Writes all of `batch`, waiting for room as long as it takes.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the file cannot be written.
    pub async fn write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        match &mut self.0 {
            Output::Bytes(writer) => writer.write(&mut payloads(batch)).await?,
            Output::File(recording) => recording.write(&mut payloads(batch)).await?,
            Output::None => batch.clear(),
            Output::Rtp(writer) => writer.write(batch).await?,
            Output::Srt(writer) => writer.write(batch).await?,
            Output::Udp(writer) => writer.write(&mut payloads(batch)).await?,
        }
        Ok(())
    }

    /// Ends the stream in good order: buffered messages are still sent.
    pub async fn close(&mut self) {
        let closed = match &mut self.0 {
            Output::Bytes(writer) => writer.shutdown().await,
            Output::File(recording) => recording.shutdown().await,
            Output::Srt(writer) => {
                writer.close().await;
                Ok(())
            }
            Output::Rtp(writer) => {
                writer.fit().finish();
                Ok(())
            }
            Output::None | Output::Udp(_) => Ok(()),
        };
        if let Err(error) = closed {
            tracing::debug!("closing: {error}");
        }
    }
}

/// Takes the payloads out of the messages.
fn payloads<M: Into<Outgoing>>(batch: &mut VecDeque<M>) -> VecDeque<Bytes> {
    batch.drain(..).map(|message| message.into().payload).collect()
}
