//! Streams over bare QUIC.

use bytes::Bytes;
use punctual_proto::{CloseReason, SendError};
use punctual_quic::{ConnectionInfo, Event};

use super::{StreamId, World};
use crate::agenda::Source;
use crate::bare_quic::QuicCarry;
use crate::stream::{End, Transport};

impl World {
    /// The state of the QUIC connection that carries a stream, at one end; `None` if there is none.
    pub fn quic_info(&self, stream: StreamId, end: End) -> Option<ConnectionInfo> {
        let index = stream.0 as usize;
        let stream = &self.streams[index];
        let host = &self.hosts[if end == End::Sender { stream.from } else { stream.to }];
        match &stream.config.transport {
            Transport::Quic(_) => host.machine.bare_quic_info(index),
            _ => {
                let path = host.machine.path_of(stream.connection(end)?)?;
                host.machine.quic_info_of(path)
            }
        }
    }

    /// The sender's host calls the receiver's.
    pub(super) fn call_by_quic(&mut self, index: usize, carry: QuicCarry) {
        let (from, to) = (self.streams[index].from, self.streams[index].to);
        let (caller, remote) = (self.hosts[from].address, self.hosts[to].address);
        let local = self.hosts[from].clock.local(self.now);
        if let Some(called) = self.hosts[to].machine.bare_quic() {
            called.expect(caller, index);
        }
        if let Some(calling) = self.hosts[from].machine.bare_quic()
            && let Err(error) = calling.call(local, remote, carry, index)
        {
            let reason = error.to_string();
            self.streams[index].end(CloseReason::PathLost(reason.into()));
        }
        self.touch(from);
    }

    /// Sends a message of a stream.
    pub(super) fn send_by_quic(
        &mut self,
        index: usize,
        carry: QuicCarry,
        message: Bytes,
    ) -> Result<(), SendError> {
        let from = self.streams[index].from;
        let quic = self.hosts[from].machine.bare_quic().ok_or(SendError::NotConnected)?;
        let id = quic.connection(index).ok_or(SendError::NotConnected)?;
        let size = message.len();
        quic.send(id, carry, message).map_err(|error| match error {
            punctual_quic::SendError::TooLong { largest, .. } => {
                SendError::Size { size, max: largest }
            }
            error @ punctual_quic::SendError::Closed => {
                SendError::Closed(CloseReason::PathLost(error.to_string().into()))
            }
        })
    }

    pub(super) fn handle_quic_event(&mut self, host: usize, event: Event) {
        let Some(quic) = self.hosts[host].machine.bare_quic() else { return };
        match event {
            Event::Established(id, _) => {
                let stream = quic.established(id);
                if let Some(stream) = stream.filter(|&it| self.streams[it].from == host) {
                    self.begin(stream);
                }
            }
            Event::Readable(id) => {
                let Some(stream) = quic.stream(id) else { return };
                while let Some(message) = quic.recv(id) {
                    self.streams[stream].receiving.read(self.now, &message);
                }
            }
            Event::Closed(id, reason) => {
                let Some(stream) = quic.stream(id) else { return };
                self.streams[stream].end(CloseReason::PathLost(reason.to_string().into()));
                self.agenda.set(Source::Stream(stream), None);
            }
            Event::LargestDatagram(..) | Event::Moved(..) => {}
        }
    }
}
