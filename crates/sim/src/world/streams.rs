//! The applications at both ends of the streams.

use punctual_proto::{CloseReason, ConnectionId, Incoming, SendError, SendOptions};

use super::{StreamId, World, number};
use crate::agenda::Source;
use crate::packet::{Cargo, IpPacket};
use crate::stream::{End, Phase, Transport};

impl World {
    /// The application of a stream sends no more. What it has sent is still delivered, and the
    /// connection stands.
    pub fn stop(&mut self, stream: StreamId) {
        let index = stream.0 as usize;
        self.streams[index].stop();
        self.agenda.set(Source::Stream(index), None);
    }

    /// A stream's application has something to do.
    pub(super) fn run_stream(&mut self, index: usize) {
        match self.streams[index].phase {
            Phase::Waiting => self.start(index),
            Phase::Sending => self.send(index),
            Phase::Connecting | Phase::Done => self.agenda.set(Source::Stream(index), None),
        }
    }

    fn start(&mut self, index: usize) {
        let stream = &mut self.streams[index];
        let Transport::Srt { sender, receiver, caller } = &stream.config.transport else {
            return self.begin(index);
        };
        let (calling, called, config) = match caller {
            End::Sender => (stream.from, stream.to, sender.clone()),
            End::Receiver => (stream.to, stream.from, receiver.clone()),
        };
        stream.phase = Phase::Connecting;
        self.agenda.set(Source::Stream(index), None);
        let remote = self.hosts[called].address;
        let host = &mut self.hosts[calling];
        let local = host.clock.local(self.now);
        let Ok(id) = host.endpoint.connect(local, remote, config) else { return };
        host.streams.insert(id, index);
        let own = host.endpoint.info(id).map(|info| (host.address, info.socket_id));
        let caller = *caller;
        self.streams[index].set_connection(caller, id);
        if let Some(own) = own {
            self.hosts[called].expected.insert(own, index);
        }
        self.drain(calling);
    }

    /// The application can send from now on.
    fn begin(&mut self, index: usize) {
        let next = self.streams[index].begin(self.now);
        self.agenda.set(Source::Stream(index), next);
    }

    fn send(&mut self, index: usize) {
        let now = self.now;
        while let Some(payload) = self.streams[index].next_message(now, &mut self.memory) {
            let stream = &mut self.streams[index];
            let from = stream.from;
            let sent = match (&stream.config.transport, stream.connection(End::Sender)) {
                (Transport::Srt { .. }, Some(id)) => {
                    let host = &mut self.hosts[from];
                    let local = host.clock.local(now);
                    host.endpoint.send(local, id, payload, SendOptions::default())
                }
                (Transport::Srt { .. }, None) => Err(SendError::NotConnected),
                (Transport::Udp, _) => {
                    let cargo = Cargo::Udp { stream: number(index) };
                    let packet = IpPacket::udp(cargo, stream.route, payload);
                    self.enter(packet);
                    Ok(())
                }
            };
            self.streams[index].submitted(&sent);
        }
        let stream = &mut self.streams[index];
        let next = stream.wake();
        self.agenda.set(Source::Stream(index), next);
        if matches!(stream.config.transport, Transport::Srt { .. }) {
            let from = stream.from;
            self.drain(from);
        }
    }

    /// A caller waits for an answer.
    pub(super) fn accept(&mut self, host: usize, incoming: &Incoming) {
        let caller = (incoming.remote, incoming.peer_socket_id);
        let Some(&index) = self.hosts[host].expected.get(&caller) else { return };
        let stream = &mut self.streams[index];
        let Transport::Srt { sender, receiver, caller } = &stream.config.transport else { return };
        let (end, config) = match caller {
            End::Sender => (End::Receiver, receiver.clone()),
            End::Receiver => (End::Sender, sender.clone()),
        };
        let local = self.hosts[host].clock.local(self.now);
        // Who does not fit is told so, and his end closes.
        let accepted = self.hosts[host].endpoint.accept(local, incoming.id, Some(config));
        let Ok(id) = accepted else { return };
        stream.set_connection(end, id);
        self.hosts[host].streams.insert(id, index);
        if end == End::Sender {
            self.begin(index);
        }
    }

    /// A call was answered.
    pub(super) fn connected(&mut self, host: usize, id: ConnectionId) {
        let Some(&index) = self.hosts[host].streams.get(&id) else { return };
        if self.streams[index].from == host {
            self.begin(index);
        }
    }

    /// Reads what is due.
    pub(super) fn read(&mut self, host: usize, id: ConnectionId) {
        let Some(&index) = self.hosts[host].streams.get(&id) else { return };
        let Self { hosts, streams, now, .. } = self;
        let (host, receiving) = (&mut hosts[host], &mut streams[index].receiving);
        let local = host.clock.local(*now);
        while let Ok(Some(message)) = host.endpoint.recv(local, id) {
            receiving.read(*now, &message.payload);
            receiving.judge(local, message.due);
        }
    }

    /// A connection ended.
    pub(super) fn closed(&mut self, host: usize, id: ConnectionId, reason: CloseReason) {
        self.read(host, id);
        let Some(&index) = self.hosts[host].streams.get(&id) else { return };
        self.streams[index].end(reason);
        self.agenda.set(Source::Stream(index), None);
    }
}
