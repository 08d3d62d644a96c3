//! Groups against recordings of libsrt: the datagrams of sessions between this implementation and
//! libsrt 1.5.5 built with bonding, in both roles, over two paths of which the first is cut after
//! 2.6 s. Two sessions are encrypted (AES-CTR, 128 bits). Each line has the time in microseconds
//! since the first datagram of its path, the path, the sender, and the datagram. Datagrams that
//! were lost by the cut, and most ACKs, are left out.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{
    Acceptance, Attempt, ConnectionId, Endpoint, Event, Group, GroupDriver, GroupKind, Incoming,
    LinkId, LinkState, LocalEndpoints,
};
use punctual_testbed::datagrams;
use punctual_units::Instant;
use punctual_wire::{ControlPacket, HandshakeRequest, Packet};

use crate::bond::address;
use crate::datagram::{Kind, edit_handshake, handshake, kind};
use crate::node::{EPOCH, endpoint_config};
use crate::{MS, latency};

const BROADCAST_FROM_LIBSRT: &str = include_str!("../vectors/broadcast-called-by-libsrt.txt");
const BACKUP_FROM_LIBSRT: &str = include_str!("../vectors/backup-called-by-libsrt.txt");
const ENCRYPTED_BROADCAST: &str =
    include_str!("../vectors/broadcast-encrypted-called-by-libsrt.txt");
const ENCRYPTED_BACKUP: &str = include_str!("../vectors/backup-encrypted-called-by-libsrt.txt");
const BROADCAST_TO_LIBSRT: &str = include_str!("../vectors/broadcast-called-by-punctual.txt");
const BACKUP_TO_LIBSRT: &str = include_str!("../vectors/backup-called-by-punctual.txt");

/// The passphrase of the encrypted sessions.
const SECRET: &str = "correcthorse";

/// The number of messages in each session. A message is its number, and 28 times the lowest byte of
/// it.
const MESSAGES: u32 = 120;

struct Recorded {
    at: Instant,
    path: usize,
    from_libsrt: bool,
    datagram: Vec<u8>,
}

fn read(text: &str) -> Vec<Recorded> {
    let line = |line: &str| {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("four words");
        let at = EPOCH + Duration::from_micros(word().parse().expect("microseconds"));
        let path = word().parse::<usize>().expect("a path") - 1;
        let from_libsrt = word() == "libsrt";
        let hex = word().as_bytes();
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("ASCII");
            u8::from_str_radix(pair, 16).expect("hexadecimal")
        };
        let datagram = hex.chunks(2).map(byte).collect();
        Recorded { at, path, from_libsrt, datagram }
    };
    text.lines().map(line).collect()
}

/// One end of a group, which receives a recording.
struct Player {
    endpoints: Vec<Endpoint>,
    /// A link is identified by the index of its endpoint, and the connection there.
    driver: GroupDriver<(usize, ConnectionId)>,
    /// The link of each path.
    links: Vec<Option<(LinkId, ConnectionId)>>,
    received: Vec<u32>,
}

impl Player {
    fn new(kind: GroupKind, endpoints: usize) -> Self {
        let endpoint = |host| Endpoint::new(endpoint_config(9, host), EPOCH);
        Self {
            endpoints: (0..endpoints).map(|host| endpoint(1 + host as u8)).collect(),
            driver: GroupDriver::new(Group::new(kind, MS(60), 0x1234_5678_9ABC_DEF0, EPOCH)),
            links: vec![None; 2],
            received: Vec::new(),
        }
    }

    fn endpoint(&mut self, path: usize) -> &mut Endpoint {
        let index = path.min(self.endpoints.len() - 1);
        &mut self.endpoints[index]
    }

    /// Handles a datagram, with our socket ID in place of the recorded one. Returns the answers.
    fn play(&mut self, at: Instant, path: usize, mut datagram: Vec<u8>) -> Vec<Vec<u8>> {
        if let Some((_, id)) = self.links[path] {
            let own =
                self.endpoint(path).connections().get(id).expect("a connection").info().socket_id;
            datagram[12..16].copy_from_slice(&own.value().to_be_bytes());
        }
        let endpoint = self.endpoint(path);
        endpoint.handle_datagram(at, address(path), Bytes::from(datagram));
        self.run(at);
        self.answers(at, path)
    }

    fn answers(&mut self, at: Instant, path: usize) -> Vec<Vec<u8>> {
        datagrams(self.endpoint(path), at).into_iter().map(|(_, answer)| answer).collect()
    }

    /// Runs the timers that are due at `now`, and takes the received messages.
    fn run(&mut self, now: Instant) {
        for index in 0..self.endpoints.len() {
            self.endpoints[index].handle_timeout(now);
            while let Some(event) = self.endpoints[index].poll_event() {
                match event {
                    Event::Incoming(incoming) => self.accept(now, index, &incoming),
                    Event::Connected(_) => {
                        let (link, _) = self.links[index].expect("called");
                        self.link_up(now, link);
                    }
                    Event::Closed(_, reason) => {
                        assert!(now > EPOCH + MS(3_000), "{reason} at {now}");
                    }
                    _ => {}
                }
            }
        }
        let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
        while let Some(message) = self.driver.recv(&mut endpoints) {
            let number = u32::from_be_bytes(message.payload[..4].try_into().expect("four bytes"));
            assert_eq!(&message.payload[4..], [number as u8; 28]);
            self.received.push(number);
        }
    }

    fn accept(&mut self, now: Instant, index: usize, incoming: &Incoming) {
        let offer = incoming.group.expect("a link calls");
        assert_eq!(offer.kind, self.driver.group().kind());
        let path = usize::from(incoming.path != address(0));
        assert_eq!(offer.weight, [10, 5][path]);
        let endpoint = &mut self.endpoints[index];
        let link = self.driver.add_link(now, offer.weight, |membership| {
            let id = endpoint.accept(now, incoming.id, Acceptance::link(None, membership));
            id.map(|id| (index, id))
        });
        let link = link.expect("it fits");
        self.links[path] = self.driver.link(link).map(|&(_, id)| (link, id));
        self.link_up(now, link);
    }

    fn link_up(&mut self, now: Instant, link: LinkId) {
        let mut endpoints = LocalEndpoints { now, endpoints: &mut self.endpoints };
        self.driver.link_up(&mut endpoints, link).expect("of this group");
    }
}

#[test]
fn recorded_packets_are_parsed_and_written_unchanged() {
    for text in [
        BROADCAST_FROM_LIBSRT,
        BACKUP_FROM_LIBSRT,
        ENCRYPTED_BROADCAST,
        ENCRYPTED_BACKUP,
        BROADCAST_TO_LIBSRT,
        BACKUP_TO_LIBSRT,
    ] {
        let mut handshakes = 0;
        for recorded in read(text) {
            match Packet::parse(&recorded.datagram).expect("a packet") {
                Packet::Data(data) => assert_eq!(data.header.to_bytes(), recorded.datagram[..16]),
                Packet::Control(ControlPacket { timestamp, dest, control }) => {
                    handshakes += usize::from(kind(&recorded.datagram) == Kind::Handshake);
                    let mut again = Vec::new();
                    ControlPacket { timestamp, dest, control }.emit(&mut again);
                    assert_eq!(again, recorded.datagram);
                }
            }
        }
        assert_eq!(handshakes, 8, "four per path");
    }
}

#[test]
fn a_recorded_group_of_libsrt_is_accepted_and_its_stream_is_complete() {
    for (kind, text, passphrase) in [
        (GroupKind::Broadcast, BROADCAST_FROM_LIBSRT, ""),
        (GroupKind::Backup, BACKUP_FROM_LIBSRT, ""),
        (GroupKind::Broadcast, ENCRYPTED_BROADCAST, SECRET),
        (GroupKind::Backup, ENCRYPTED_BACKUP, SECRET),
    ] {
        let mut player = Player::new(kind, 1);
        let config = latency(500).with_group_connect(true);
        let config = config.with_passphrase(passphrase).expect("a legal length");
        player.endpoints[0].listen(Some(config));
        let mut cookies = [0; 2];
        let mut now = EPOCH;
        for recorded in read(text).into_iter().filter(|it| it.from_libsrt) {
            while now + MS(1) < recorded.at {
                now += MS(1);
                player.run(now);
                for path in 0..2 {
                    player.answers(now, path);
                }
            }
            now = now.max(recorded.at);
            let path = recorded.path;
            // Our cookie differs from the recorded one.
            let datagram = edit_handshake(recorded.datagram, |handshake| {
                if handshake.request == HandshakeRequest::Conclusion {
                    handshake.cookie = cookies[path];
                }
            });
            let answers = player.play(now, path, datagram);
            if let Some(answer) = answers.first().and_then(|answer| handshake(answer)) {
                cookies[path] = answer.cookie;
            }
        }
        assert!(player.links.iter().all(Option::is_some), "both links are established");
        for _ in 0..1_000 {
            now += MS(1);
            player.run(now);
        }
        assert_eq!(player.received, (0..MESSAGES).collect::<Vec<_>>(), "{kind:?} {passphrase}");
    }
}

#[test]
fn recorded_answers_of_libsrt_establish_a_group() {
    for (group, text) in
        [(GroupKind::Broadcast, BROADCAST_TO_LIBSRT), (GroupKind::Backup, BACKUP_TO_LIBSRT)]
    {
        let mut player = Player::new(group, 2);
        let listener = SocketAddr::from(([192, 0, 2, 1], 9_000));
        for path in 0..2 {
            let endpoint = &mut player.endpoints[path];
            let link = player.driver.add_link(EPOCH, [10, 5][path], |membership| {
                let id = endpoint.connect(EPOCH, listener, Attempt::link(latency(500), membership));
                id.map(|id| (path, id))
            });
            let link = link.expect("an address");
            player.links[path] = player.driver.link(link).map(|&(_, id)| (link, id));
        }
        let mut sent = [None, None];
        for (path, sent) in sent.iter_mut().enumerate() {
            *sent = player.answers(EPOCH, path).first().and_then(|it| handshake(it));
        }
        let mut groups = Vec::new();
        for recorded in read(text).into_iter().filter(|it| it.from_libsrt) {
            if kind(&recorded.datagram) != Kind::Handshake {
                continue;
            }
            let isn = sent[recorded.path].as_ref().expect("we called").isn;
            let datagram = edit_handshake(recorded.datagram, |answer| answer.isn = isn);
            let (now, path) = (recorded.at, recorded.path);
            let (_, id) = player.links[path].expect("called");
            let own =
                player.endpoints[path].connections().get(id).expect("a call").info().socket_id;
            let mut datagram = datagram;
            datagram[12..16].copy_from_slice(&own.value().to_be_bytes());
            player.endpoints[path].handle_datagram(now, listener, Bytes::from(datagram));
            player.run(now);
            player.answers(now, path);
            groups.extend(player.driver.group().peer_group());
        }
        assert!(groups.windows(2).all(|pair| pair[0] == pair[1]) && groups[0] >> 30 == 1);
        let states: Vec<LinkState> =
            player.driver.group().links().map(|(_, _, state)| state).collect();
        assert!(states.iter().all(|state| state.is_up()), "{states:?}");
    }
}
