//! An endpoint with one connection, and arbitrary packets from its peer.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Config, ConnectionGuard, ConnectionId, Endpoint, EndpointConfig, Event, PathId, SendOptions,
    SeqNo,
};
use punctual_testbed::{datagrams, run_due, transmit};
use punctual_units::Instant;
use punctual_wire::{
    Control, ControlPacket, DataHeader, KeyFlag, MsgNo, Packet, Position, SocketId, Timestamp,
};

/// The endpoint, and the peer's knowledge of the connection.
pub struct Bed {
    pub victim: Endpoint,
    pub id: ConnectionId,
    /// The victim's socket ID.
    pub dest: SocketId,
    /// The next sequence number of the peer.
    pub next: SeqNo,
    pub theirs: SeqNo,
    /// The conclusion of the peer's handshake.
    pub conclusion: Vec<u8>,
    /// The time between two packets of the peer.
    pub interval: Duration,
    now: Instant,
    start: Instant,
}

impl Bed {
    /// A connection with a few received packets, and with `sent` packets of the victim in flight.
    pub fn new(config: &Config, sent: u32) -> Self {
        let mut now = Instant::from_millis(10_000);
        let mut peer = Endpoint::new(EndpointConfig::new([1; 32]), now);
        let mut victim = Endpoint::new(EndpointConfig::new([2; 32]), now);
        victim.listen(Some(config.clone()));
        let call = peer.connect(now, there(), config.clone()).expect("an address");
        let (mut id, mut conclusion) = (None, Vec::new());
        let is_connected = |peer: &Endpoint| {
            peer.connections().get(call).is_some_and(|connection| connection.info().connected)
        };
        while id.is_none() || !is_connected(&peer) {
            now += Duration::from_millis(1);
            peer.handle_timeout(now);
            for (_, datagram) in datagrams(&mut peer, now) {
                conclusion.clone_from(&datagram);
                victim.handle_datagram(now, here(), datagram.into());
            }
            while let Some(event) = victim.poll_event() {
                if let Event::Incoming(incoming) = event {
                    id = Some(victim.accept(now, incoming.id, None).expect("room"));
                }
            }
            for (_, datagram) in datagrams(&mut victim, now) {
                peer.handle_datagram(now, there(), datagram.into());
            }
        }
        let id = id.expect("a caller");
        let mut bed = Self {
            dest: victim.connections().get(id).expect("a connection").info().socket_id,
            victim,
            id,
            next: SeqNo::new(0),
            theirs: SeqNo::new(0),
            conclusion,
            interval: Duration::from_micros(200),
            now,
            start: now,
        };
        bed.learn_numbers(&mut peer, call);
        bed.send(sent);
        bed
    }

    fn connection(&mut self) -> ConnectionGuard<'_> {
        self.victim.connection(self.now, self.id).expect("not released")
    }

    fn learn_numbers(&mut self, peer: &mut Endpoint, call: ConnectionId) {
        let message = Bytes::from_static(&[7; 1_316]);
        let mut connection = peer.connection(self.now, call).expect("not released");
        connection.send(message.clone(), SendOptions::default()).expect("room");
        drop(connection);
        self.connection().send(message, SendOptions::default()).expect("room");
        let number = |datagrams: &[(PathId, Vec<u8>)]| {
            let data = datagrams.iter().find_map(|(_, datagram)| match Packet::parse(datagram) {
                Ok(Packet::Data(data)) => Some(data.header.seq),
                _ => None,
            });
            data.expect("a data packet").next()
        };
        let sent = datagrams(peer, self.now);
        self.next = number(&sent);
        for (_, datagram) in sent {
            self.victim.handle_datagram(self.now, here(), datagram.into());
        }
        self.theirs = number(&datagrams(&mut self.victim, self.now));
    }

    /// Makes the victim send this number of packets, which the peer does not acknowledge.
    fn send(&mut self, packets: u32) {
        for _ in 0..packets {
            self.now += Duration::from_micros(100);
            let message = Bytes::from_static(&[7; 1_316]);
            self.connection().send(message, SendOptions::default()).expect("room");
            self.drain();
        }
        self.theirs = self.theirs.plus(packets);
    }

    /// Makes the victim send this number of messages that expire before the peer acknowledges them,
    /// and then one that does not expire.
    pub fn expire(&mut self, messages: u32) {
        let options = SendOptions { ttl: Some(Duration::from_millis(1)), ..Default::default() };
        for number in 0..=messages {
            self.now += Duration::from_micros(100);
            let message = Bytes::from_static(&[7; 16]);
            let options = if number < messages { options } else { SendOptions::default() };
            self.connection().send(message, options).expect("room");
            run_due(&mut self.victim, self.now);
            self.drain();
            if number.is_multiple_of(10_000) {
                // The peer is not silent.
                let keepalive = self.control(Control::KeepAlive, 0);
                self.take(keepalive);
            }
        }
    }

    /// The victim handles a datagram, answers it, runs due timers, and reads.
    pub fn take(&mut self, datagram: Bytes) {
        self.now += self.interval;
        self.victim.handle_datagram(self.now, here(), datagram);
        run_due(&mut self.victim, self.now);
        self.drain();
        while self.victim.poll_event().is_some() {}
        let mut connection = self.connection();
        while let Ok(Some(_)) = connection.recv() {}
    }

    pub const fn now(&self) -> Instant {
        self.now
    }

    fn drain(&mut self) {
        transmit(&mut self.victim, self.now, |_, _| {});
    }

    /// The timestamp of a packet that arrives after `packets` others.
    pub fn stamp(&self, packets: u32) -> Timestamp {
        let at = self.now + self.interval * packets;
        Timestamp::from_micros(u32::try_from((at - self.start).as_micros()).expect("a short run"))
    }

    pub fn data(&self, seq: SeqNo, packets: u32) -> Bytes {
        let header = DataHeader {
            seq,
            position: Position::Solo,
            in_order: false,
            key: KeyFlag::Clear,
            retransmitted: false,
            msgno: MsgNo::FIRST,
            timestamp: self.stamp(packets),
            dest: self.dest,
        };
        [&header.to_bytes()[..], &[7; 1_316]].concat().into()
    }

    pub fn control(&self, control: Control<'_>, packets: u32) -> Bytes {
        let mut datagram = Vec::new();
        ControlPacket { timestamp: self.stamp(packets), dest: self.dest, control }
            .emit(&mut datagram);
        datagram.into()
    }
}

/// The peer's address.
pub fn here() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5_000))
}

fn there() -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 2], 5_000))
}
