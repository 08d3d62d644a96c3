//! Messages to an SRT peer, over a connection or a group.

use std::collections::VecDeque;

use bytes::Bytes;
use punctual::{Error, Group, Outgoing, SendOptions, Socket};

use crate::end::fit::Fit;
use crate::end::frames::FrameWriter;
use crate::failure::Failure;

/// Writes messages to an SRT peer.
pub struct SrtWriter(Carrier);

/// The ways to an SRT peer.
enum Carrier {
    /// In frames of a stream of bytes.
    Frames(FrameWriter),
    /// By several links.
    Group(Group, Fit),
    /// By one connection.
    Socket(Socket, Fit),
}

impl SrtWriter {
    /// A writer to the peer of `socket`.
    pub(super) fn to_socket(socket: Socket) -> Self {
        Self(match socket.info().framing {
            true => Carrier::Frames(FrameWriter::new(socket)),
            false => {
                let fit = Fit::new(socket.peer_addr().to_string());
                Carrier::Socket(socket, fit)
            }
        })
    }

    /// A writer to the peer of `group`.
    pub(super) fn to_group(group: Group) -> Self {
        let fit = Fit::new("the group".to_owned());
        Self(Carrier::Group(group, fit))
    }

    /// Another writer to the same peer.
    pub(super) fn again(&self) -> Self {
        Self(match &self.0 {
            Carrier::Frames(writer) => Carrier::Frames(writer.again()),
            Carrier::Group(group, fit) => Carrier::Group(group.clone(), fit.again()),
            Carrier::Socket(socket, fit) => Carrier::Socket(socket.clone(), fit.again()),
        })
    }

    /// The part that cuts messages to the size that the connection carries; `None` for frames.
    pub(super) fn fit(&mut self) -> Option<&mut Fit> {
        match &mut self.0 {
            Carrier::Frames(_) => None,
            Carrier::Group(_, fit) | Carrier::Socket(_, fit) => Some(fit),
        }
    }

    /// Writes all of `batch`, waiting for room as long as it takes. Cancel safe: what was not
    /// written is in `batch`, or kept for the next call.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        match &mut self.0 {
            Carrier::Frames(writer) => writer.write(batch).await,
            Carrier::Group(group, fit) => write_to_group(group, fit, batch).await,
            Carrier::Socket(socket, fit) => write_to_socket(socket, fit, batch).await,
        }
    }

    /// Writes from the front of `batch` what there is room for now, without waiting. The rest stays
    /// in `batch`, or is kept for the next call.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub fn try_write<M>(&mut self, batch: &mut VecDeque<M>) -> Result<(), Failure>
    where
        M: Clone + Into<Outgoing>,
    {
        match &mut self.0 {
            Carrier::Frames(writer) => writer.try_write(batch),
            Carrier::Group(group, fit) => try_write(fit, batch, |payload, options| {
                Ok(group.try_send_with(payload, options)?.is_some())
            }),
            Carrier::Socket(socket, fit) => try_write(fit, batch, |payload, options| {
                Ok(socket.try_send_with(payload.clone(), options, None)?.is_some())
            }),
        }
    }

    /// Ends the stream in good order: buffered messages are still sent.
    pub async fn close(&mut self) {
        match &mut self.0 {
            Carrier::Frames(writer) => writer.close().await,
            Carrier::Group(group, fit) => {
                fit.finish();
                group.close().await;
            }
            Carrier::Socket(socket, fit) => {
                fit.finish();
                socket.close().await;
            }
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
        let Some((next, is_part)) = next(fit, batch) else { return Ok(()) };
        match group.send_with(next.payload, next.options).await {
            Ok(()) if is_part => drop(fit.parts().pop_front()),
            Ok(()) => drop(batch.pop_front()),
            sent => check_size(sent, fit, batch)?,
        }
    }
}

/// Writes from the front of `batch` what `send` takes, which returns whether it took a message.
fn try_write<M>(
    fit: &mut Fit,
    batch: &mut VecDeque<M>,
    send: impl Fn(&Bytes, SendOptions) -> Result<bool, Error>,
) -> Result<(), Failure>
where
    M: Clone + Into<Outgoing>,
{
    while let Some((next, is_part)) = next(fit, batch) {
        match send(&next.payload, next.options) {
            Ok(false) => return Ok(()),
            Ok(true) if is_part => drop(fit.parts().pop_front()),
            Ok(true) => drop(batch.pop_front()),
            Err(error) => check_size(Err(error), fit, batch)?,
        }
    }
    Ok(())
}

/// The next message to be sent, and whether it is a part of one that was cut.
fn next<M>(fit: &mut Fit, batch: &mut VecDeque<M>) -> Option<(Outgoing, bool)>
where
    M: Clone + Into<Outgoing>,
{
    loop {
        if let Some(part) = fit.parts().front() {
            return Some((part.clone(), true));
        }
        let next = batch.front()?;
        if !fit.is_open() {
            return Some((next.clone().into(), false));
        }
        take_next(fit, batch);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual::{BufferSize, Config, Listener};

    use super::*;

    async fn pair(config: &Config) -> (Socket, Socket) {
        let listener =
            Listener::bind("127.0.0.1:0".parse().unwrap(), config.clone()).await.unwrap();
        let call = Socket::connect(listener.local_addr(), config.clone());
        let (caller, accepted) = tokio::join!(call, listener.accept());
        (caller.unwrap(), accepted.unwrap())
    }

    /// More messages than the buffers of both ends take.
    fn batch() -> VecDeque<Bytes> {
        (0..40_000_u32)
            .map(|number| [&number.to_be_bytes()[..], &[7; 1_000]].concat().into())
            .collect()
    }

    #[tokio::test]
    async fn a_write_without_waiting_keeps_the_messages_for_which_there_is_no_room() {
        // With this latency no message is too late to be sent.
        let live = Config::default().with_latency(Duration::from_secs(60)).unwrap();
        let live = live.with_send_buffer(BufferSize::Packets(1_000));
        for config in [live, Config::file().with_framing(true)] {
            let (caller, accepted) = pair(&config).await;
            let mut writer = SrtWriter::to_socket(caller);
            let mut batch = batch();
            // Nobody drives the connection meanwhile, so that a call that waits would not return.
            writer.try_write(&mut batch).unwrap();
            let left = batch.len();
            assert!(left > 0 && left < 40_000, "{left} are left");
            while batch.len() == left {
                tokio::time::sleep(Duration::from_millis(1)).await;
                writer.try_write(&mut batch).unwrap();
            }
            accepted.abort().await;
            while writer.try_write(&mut batch).is_ok() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
