//! Viewers that mean harm, beside an honest one at the same listener: the honest one gets the
//! stream whole and at its time, and nothing stays of the others.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

use punctual_proto::{
    Config, Connection, ConnectionId, Endpoint, Event, Message, SendOptions, SeqNo, SocketId,
};
use punctual_testbed::datagrams;
use punctual_units::Instant;
use punctual_wire::{Ack, Control, LossListBuilder, Timestamp};

use crate::datagram::{Kind, data_header, forged, forged_data, kind};
use crate::node::{endpoint_config, number_of, numbered};
use crate::{MS, SECS, latency};

/// The way of a datagram, in milliseconds.
const WAY: Duration = Duration::from_millis(10);
/// Time between two messages of the stream.
const GAP: Duration = Duration::from_millis(2);

/// The harm that a viewer does with each data packet that comes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Harm {
    /// It does nothing.
    None,
    /// Of what it would send it sends handshakes and keepalives alone.
    NoAcks,
    /// It acknowledges packets that were not sent yet, at every border of the number space.
    AcksAhead,
    /// It reports everything lost, again and again.
    Naks,
    /// It sends what comes back, and ten packets of its own for each.
    SendsBack,
}

/// A viewer: an endpoint that calls the listener.
struct Viewer {
    endpoint: Endpoint,
    address: SocketAddr,
    call: ConnectionId,
    harm: Harm,
    /// The listener's socket ID, as the viewer knows it once it is connected.
    dest: Option<SocketId>,
    received: Vec<Message>,
    times: Vec<Duration>,
}

/// A listener that sends each message to all viewers, and the viewers.
struct Hall {
    now: Instant,
    listener: Endpoint,
    connections: Vec<ConnectionId>,
    viewers: Vec<Viewer>,
    /// The number of viewers that have come.
    came: u16,
    /// Datagrams on their way: their arrival, and the viewer's address and whether they go to it.
    on_the_way: VecDeque<(Instant, SocketAddr, bool, Vec<u8>)>,
    sent: u32,
    /// The times of the messages that were sent.
    sent_at: BTreeMap<u32, Instant>,
    closed: Vec<ConnectionId>,
    most_connections: usize,
    /// Datagrams that the listener sent to each address.
    sent_to: BTreeMap<SocketAddr, u32>,
}

const LISTENER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 5_000);

impl Hall {
    fn new() -> Self {
        let now = Instant::from_millis(1_000);
        let mut listener = Endpoint::new(endpoint_config(1, 1), now);
        listener.listen(Some(config()));
        Self {
            now,
            listener,
            connections: Vec::new(),
            viewers: Vec::new(),
            came: 0,
            on_the_way: VecDeque::new(),
            sent: 0,
            sent_at: BTreeMap::new(),
            closed: Vec::new(),
            most_connections: 0,
            sent_to: BTreeMap::new(),
        }
    }

    fn enter(&mut self, harm: Harm) {
        self.came += 1;
        let address = SocketAddr::from(([198, 51, 100, 1], 10_000 + self.came));
        let mut endpoint = Endpoint::new(endpoint_config(self.came.into(), 2), self.now);
        let call = endpoint.connect(self.now, LISTENER, config()).expect("an address");
        self.viewers.push(Viewer {
            endpoint,
            address,
            call,
            harm,
            dest: None,
            received: Vec::new(),
            times: Vec::new(),
        });
    }

    /// A viewer vanishes, or says so before.
    fn leave(&mut self, viewer: usize, says_so: bool) {
        if says_so {
            let Viewer { endpoint, call, .. } = &mut self.viewers[viewer];
            endpoint.connection(self.now, *call).expect("not released").close();
            self.step_viewers();
        }
        self.viewers.remove(viewer);
    }

    /// Streams for this time.
    fn stream(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            let message = numbered(self.sent);
            self.sent_at.insert(self.sent, self.now);
            self.sent += 1;
            for &connection in &self.connections {
                // A viewer that acknowledges nothing has a full buffer at some time.
                let options = SendOptions::default();
                if let Some(mut connection) = self.listener.connection(self.now, connection) {
                    let _ = connection.send(message.clone(), options);
                }
            }
            for _ in 0..GAP.as_millis() {
                self.now += MS(1);
                self.step();
            }
        }
    }

    fn step(&mut self) {
        while let Some((arrival, ..)) = self.on_the_way.front()
            && *arrival <= self.now
            && let Some((_, address, to_viewer, datagram)) = self.on_the_way.pop_front()
        {
            if !to_viewer {
                self.listener.handle_datagram(self.now, address, datagram.into());
            } else if let Some(viewer) = self.viewers.iter_mut().find(|it| it.address == address) {
                viewer.endpoint.handle_datagram(self.now, LISTENER, datagram.clone().into());
                for harm in viewer.harm(&datagram) {
                    self.on_the_way.push_back((self.now + WAY, address, false, harm));
                }
            }
        }
        self.listener.handle_timeout(self.now);
        while let Some(event) = self.listener.poll_event() {
            match event {
                Event::Incoming(incoming) => {
                    let taken = self.listener.accept(self.now, incoming.id, None);
                    self.connections.push(taken.expect("there is room"));
                }
                Event::Closed(id, _) => {
                    self.connections.retain(|&it| it != id);
                    self.closed.push(id);
                    self.listener.connection(self.now, id).expect("not released").release();
                }
                _ => {}
            }
        }
        // Nobody reads what viewers send.
        let (now, way, sent_to) = (self.now, &mut self.on_the_way, &mut self.sent_to);
        for (path, datagram) in datagrams(&mut self.listener, now) {
            let to = path.address().expect("UDP has addresses");
            *sent_to.entry(to).or_default() += 1;
            way.push_back((now + WAY, to, true, datagram));
        }
        self.most_connections = self.most_connections.max(self.listener.connections().count());
        self.step_viewers();
    }

    fn step_viewers(&mut self) {
        for viewer in &mut self.viewers {
            let (now, way) = (self.now, &mut self.on_the_way);
            viewer.endpoint.handle_timeout(now);
            while viewer.endpoint.poll_event().is_some() {}
            let info = viewer.endpoint.connections().get(viewer.call).map(Connection::info);
            viewer.dest = info.filter(|info| info.connected).map(|info| info.peer_socket_id);
            let mut connection =
                viewer.endpoint.connection(now, viewer.call).expect("not released");
            while let Ok(Some(message)) = connection.recv() {
                let number = number_of(&message.payload);
                viewer.times.push(now - self.sent_at[&number]);
                viewer.received.push(message);
            }
            let (address, harm) = (viewer.address, viewer.harm);
            drop(connection);
            for (_, datagram) in datagrams(&mut viewer.endpoint, now) {
                let silent = matches!(kind(&datagram), Kind::Ack | Kind::LightAck | Kind::Nak);
                if harm != Harm::NoAcks || !silent {
                    way.push_back((now + WAY, address, false, datagram));
                }
            }
        }
    }

    /// The first viewer got every message since it came, in order and at its time.
    #[track_caller]
    fn expect_whole_stream(&self) {
        let viewer = &self.viewers[0];
        let numbers: Vec<_> =
            viewer.received.iter().map(|message| number_of(&message.payload)).collect();
        let first = numbers[0];
        assert!(numbers.iter().copied().eq(first..first + numbers.len() as u32), "in order");
        assert!(numbers.len() as u32 + 100 > self.sent, "{} of {}", numbers.len(), self.sent);
        let most = viewer.times.iter().max().expect("some messages");
        assert!(*most <= MS(133), "{most:?}");
        let info = viewer.endpoint.connections().get(viewer.call).expect("it is there").info();
        assert!(info.connected);
    }
}

impl Viewer {
    /// The packets that it sends when `datagram` came.
    fn harm(&self, datagram: &[u8]) -> Vec<Vec<u8>> {
        let (Some(header), Some(dest)) = (data_header(datagram), self.dest) else {
            return Vec::new();
        };
        let stamp = Timestamp::default();
        match self.harm {
            Harm::None | Harm::NoAcks => Vec::new(),
            Harm::AcksAhead => BORDERS
                .iter()
                .map(|&ahead| {
                    let next = header.seq.plus(ahead);
                    forged(dest, stamp, Control::Ack(Ack::Light { next }))
                })
                .collect(),
            Harm::Naks => {
                let mut list = LossListBuilder::new(364);
                for _ in 0..100 {
                    assert!(list.push(header.seq.minus(1_000), header.seq));
                }
                vec![forged(dest, stamp, Control::Nak(list.as_list())); 3]
            }
            Harm::SendsBack => (0..11)
                .map(|number| {
                    let seq = SeqNo::new(header.seq.value() ^ number << 20);
                    forged_data(seq, header.timestamp, dest, &datagram[16..])
                })
                .collect(),
        }
    }
}

/// Distances from the latest packet.
const BORDERS: [u32; 8] =
    [2, 9_000, 1 << 17, 1 << 25, (1 << 30) - 1, 1 << 30, (1 << 30) + 1, 0x7FFF_FFFF];

fn config() -> Config {
    latency(120)
}

#[test]
fn hostile_viewers_cost_an_honest_one_nothing() {
    for harm in [Harm::NoAcks, Harm::AcksAhead, Harm::Naks, Harm::SendsBack] {
        let mut hall = Hall::new();
        hall.enter(Harm::None);
        hall.stream(MS(200));
        for _ in 0..5 {
            hall.enter(harm);
        }
        hall.stream(SECS(10));
        hall.expect_whole_stream();
        let most = hall.sent_to.values().max().expect("the stream was sent");
        assert!(*most <= 4 * hall.sent, "{harm:?}: {most} datagrams for {} messages", hall.sent);
        while hall.viewers.len() > 1 {
            hall.leave(1, false);
        }
        hall.stream(SECS(7));
        hall.expect_whole_stream();
        assert_eq!(hall.listener.connections().count(), 1, "{harm:?} leaves nothing");
    }
}

#[test]
fn a_thousand_viewers_that_come_and_go_cost_an_honest_one_nothing() {
    let mut hall = Hall::new();
    hall.enter(Harm::None);
    hall.stream(MS(200));
    for number in 0..1_000 {
        hall.enter(Harm::None);
        hall.stream(MS(6));
        if hall.viewers.len() > 10 {
            hall.leave(1, number % 2 == 0);
        }
    }
    while hall.viewers.len() > 1 {
        hall.leave(1, true);
    }
    hall.stream(SECS(7));
    hall.expect_whole_stream();
    assert!(hall.closed.len() > 900, "{} were taken and ended", hall.closed.len());
    assert_eq!(hall.listener.connections().count(), 1, "nothing stays");
    // Viewers that vanished without a word are kept until they were silent for 5 s.
    assert!(hall.most_connections < 600, "{} at once", hall.most_connections);
}
