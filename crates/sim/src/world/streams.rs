//! The applications at both ends of the streams.

use bytes::Bytes;
use punctual_proto::{CloseReason, ConnectionId, Incoming, SendError, SendOptions, Transmission};

use super::{StreamId, World, number};
use crate::agenda::Source;
use crate::host::Use;
use crate::packet::{Cargo, IpPacket};
use crate::stream::{End, Phase, Transport};

impl World {
    /// The application of a stream sends no more. Its messages so far are still delivered, and the
    /// connection stays established.
    pub fn stop(&mut self, stream: StreamId) {
        let index = stream.0 as usize;
        self.streams[index].sending.stop();
        self.agenda.set(Source::Stream(index), None);
    }

    /// A stream's application has something to do.
    pub(super) fn run_stream(&mut self, index: usize) {
        match self.streams[index].sending.phase() {
            Phase::Waiting => self.start(index),
            Phase::Sending => self.send(index),
            Phase::Connecting | Phase::Blocked | Phase::Done => {
                self.agenda.set(Source::Stream(index), None);
            }
        }
        self.drain_touched();
    }

    fn start(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        if matches!(stream.config.transport, Transport::Udp) {
            return self.begin(index);
        }
        stream.sending.connect();
        self.agenda.set(Source::Stream(index), None);
        if matches!(self.streams[index].config.transport, Transport::Group { .. }) {
            return self.start_group(index);
        }
        #[cfg(feature = "quic")]
        if let Transport::Quic(carry) = self.streams[index].config.transport {
            return self.call_by_quic(index, carry);
        }
        let stream = &self.streams[index];
        let Some((config, _, caller)) = stream.config.transport.calling_and_called() else {
            return;
        };
        let (calling, called) = match caller {
            End::Sender => (stream.from, stream.to),
            End::Receiver => (stream.to, stream.from),
        };
        let remote = self.hosts[called].address;
        let host = &mut self.hosts[calling];
        let local = host.clock.local(self.now);
        let path = host.machine.path_to(local, remote);
        let Ok(id) = host.machine.srt().connect(local, path, config.clone()) else { return };
        self.streams[index].set_connection(caller, id);
        self.expect(calling, called, id, Use { stream: index, link: 0 });
    }

    /// A host calls another one, which learns here the purpose of the call.
    pub(super) fn expect(&mut self, calling: usize, called: usize, id: ConnectionId, purpose: Use) {
        let host = &mut self.hosts[calling];
        host.streams.insert(id, purpose);
        if let Some(info) = host.machine.srt().info(id) {
            let caller = (host.address, info.socket_id);
            self.hosts[called].expected.insert(caller, purpose);
        }
        self.touch(calling);
    }

    /// The application can send from now on.
    pub(super) fn begin(&mut self, index: usize) {
        let next = self.streams[index].sending.begin(self.now);
        self.agenda.set(Source::Stream(index), next);
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        while let Some(mut payload) =
            self.streams[index].sending.next_message(now, &mut self.memory)
        {
            let sent = self.submit(index, &mut payload);
            self.streams[index].sending.submitted(&sent, payload);
        }
        let stream = &mut self.streams[index];
        let next = stream.sending.wake();
        self.agenda.set(Source::Stream(index), next);
        if !matches!(stream.config.transport, Transport::Udp | Transport::Group { .. }) {
            let from = stream.from;
            self.drain(from);
        }
    }

    /// Hands a message over; the part that is not taken stays in `payload`.
    fn submit(&mut self, index: usize, payload: &mut Bytes) -> Result<(), SendError> {
        let stream = &self.streams[index];
        let host = &mut self.hosts[stream.from];
        let local = host.clock.local(self.now);
        match &stream.config.transport {
            Transport::Udp => {
                let cargo = Cargo::Udp { stream: number(index) };
                let packet = IpPacket::udp(cargo, stream.route, payload.clone());
                self.enter(packet);
                Ok(())
            }
            Transport::Group { .. } => self.submit_to_group(index, payload.clone()),
            #[cfg(feature = "quic")]
            &Transport::Quic(carry) => self.send_by_quic(index, carry, payload.clone()),
            Transport::Srt { sender, .. } => {
                let id = stream.connection(End::Sender).ok_or(SendError::NotConnected)?;
                if sender.transmission() != Transmission::Stream {
                    let in_order = sender.transmission() == Transmission::Messages;
                    let options = SendOptions { in_order, ..SendOptions::default() };
                    return host.machine.srt().send(local, id, payload.clone(), options);
                }
                while !payload.is_empty() {
                    host.machine.srt().write(local, id, payload)?;
                }
                Ok(())
            }
        }
    }

    /// There is room again in a connection.
    pub(super) fn writable(&mut self, host: usize, id: ConnectionId) {
        let Some(&Use { stream, .. }) = self.hosts[host].streams.get(&id) else { return };
        if self.streams[stream].sending.unblock() {
            let next = self.streams[stream].sending.wake();
            self.agenda.set(Source::Stream(stream), next.map(|at| at.max(self.now)));
        }
    }

    /// A caller waits for an answer.
    pub(super) fn accept(&mut self, host: usize, incoming: &Incoming) {
        let Some(remote) = self.hosts[host].machine.remote(incoming.path) else { return };
        let caller = (remote, incoming.peer_socket_id);
        let Some(&purpose) = self.hosts[host].expected.get(&caller) else { return };
        let stream = &mut self.streams[purpose.stream];
        if let Transport::Group { .. } = &stream.config.transport {
            return self.accept_link(host, incoming, purpose);
        }
        let Some((_, config, caller)) = stream.config.transport.calling_and_called() else {
            return;
        };
        let local = self.hosts[host].clock.local(self.now);
        // A caller that does not fit is told so, and closes its end.
        let endpoint = self.hosts[host].machine.srt();
        let accepted = endpoint.accept(local, incoming.id, Some(config.clone()));
        let Ok(id) = accepted else { return };
        stream.set_connection(caller.other(), id);
        self.hosts[host].streams.insert(id, purpose);
        if caller == End::Receiver {
            self.begin(purpose.stream);
        }
    }

    /// A call was answered.
    pub(super) fn connected(&mut self, host: usize, id: ConnectionId) {
        let Some(&Use { stream, .. }) = self.hosts[host].streams.get(&id) else { return };
        if matches!(self.streams[stream].config.transport, Transport::Group { .. }) {
            self.link_is_up(stream, host, id);
        } else if self.streams[stream].from == host {
            self.begin(stream);
        }
    }

    /// Reads the due messages.
    pub(super) fn read(&mut self, host: usize, id: ConnectionId) {
        let Some(&Use { stream, .. }) = self.hosts[host].streams.get(&id) else { return };
        if matches!(self.streams[stream].config.transport, Transport::Group { .. }) {
            return self.link_has_news(stream, host);
        }
        let Self { hosts, streams, now, .. } = self;
        let (host, receiving) = (&mut hosts[host], &mut streams[stream].receiving);
        let local = host.clock.local(*now);
        while let Ok(Some(message)) = host.machine.srt().recv(local, id) {
            receiving.take(*now, local, &message);
        }
    }

    /// A connection ended.
    pub(super) fn closed(&mut self, host: usize, id: ConnectionId, reason: CloseReason) {
        self.read(host, id);
        let Some(&Use { stream, .. }) = self.hosts[host].streams.get(&id) else { return };
        if matches!(self.streams[stream].config.transport, Transport::Group { .. }) {
            return self.link_ended(stream, host, id, reason);
        }
        self.streams[stream].end(reason);
        self.agenda.set(Source::Stream(stream), None);
    }
}
