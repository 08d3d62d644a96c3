use std::net::SocketAddr;
use std::time::Duration;

use super::*;
use crate::config::{BufferSize, Config};
use crate::endpoint::{Acceptance, Attempt, EndpointConfig};
use crate::event::Event;

const START: Instant = Instant::from_millis(10_000);
const LATENCY: Duration = Duration::from_millis(100);

/// One end of a group: two endpoints of one clock, and their driver.
struct End {
    endpoints: Vec<Endpoint>,
    driver: GroupDriver<(usize, ConnectionId)>,
}

/// Both ends. A datagram arrives at once, at the other end's endpoint of the same index.
struct Ends {
    now: Instant,
    ends: [End; 2],
    /// Whether the path of this index drops everything.
    cut: [bool; 2],
}

fn address(end: usize, path: usize) -> SocketAddr {
    let hosts = [[1, 2], [3, 4]];
    SocketAddr::from(([192, 0, 2, hosts[end][path]], 9_000))
}

fn config() -> Config {
    let config = Config::default().with_group_connect(true).with_latency(LATENCY);
    config.expect("in range").with_send_buffer(BufferSize::Packets(256))
}

impl End {
    fn new(kind: GroupKind, number: u8) -> Self {
        let endpoint = |path| Endpoint::new(EndpointConfig::new([2 * number + path; 32]), START);
        let group = Group::new(kind, Duration::from_millis(60), number.into(), START);
        Self { endpoints: [1, 2].map(endpoint).into(), driver: GroupDriver::new(group) }
    }

    /// The driver, and the endpoints as it takes them.
    fn parts(
        &mut self,
        now: Instant,
    ) -> (&mut GroupDriver<(usize, ConnectionId)>, LocalEndpoints<'_>) {
        (&mut self.driver, LocalEndpoints { now, endpoints: &mut self.endpoints })
    }

    fn handle(&mut self, now: Instant, path: usize, event: &Event) {
        let (driver, mut endpoints) = self.parts(now);
        match event {
            Event::Incoming(incoming) => {
                let weight = incoming.group.expect("only links call").weight;
                let endpoint = &mut endpoints.endpoints[path];
                let link = driver.add_link(now, weight, |membership| {
                    let id = endpoint.accept(now, incoming.id, Acceptance::link(None, membership));
                    id.map(|id| (path, id))
                });
                driver.link_up(&mut endpoints, link.expect("it fits")).expect("of this group");
            }
            Event::Connected(id) => {
                let link = driver.find(|it| *it == (path, *id)).expect("a link");
                driver.link_up(&mut endpoints, link).expect("of this group");
            }
            Event::Closed(id, _) => {
                if let Some(link) = driver.find(|it| *it == (path, *id)) {
                    driver.link_ended(&mut endpoints, link);
                }
            }
            _ => driver.update(&mut endpoints),
        }
    }

    fn readiness(&mut self, now: Instant) -> Readiness {
        let (driver, mut endpoints) = self.parts(now);
        driver.readiness(&mut endpoints)
    }

    fn recv(&mut self, now: Instant) -> Vec<Bytes> {
        let (driver, mut endpoints) = self.parts(now);
        std::iter::from_fn(|| driver.recv(&mut endpoints)).map(|it| it.payload).collect()
    }

    fn send(&mut self, now: Instant, payload: &'static str) -> Result<(), SendError> {
        let (driver, mut endpoints) = self.parts(now);
        driver.send(&mut endpoints, payload.into(), SendOptions::default())
    }
}

impl Ends {
    /// A group whose links, of weights 2 and 1, are established at both ends.
    fn established(kind: GroupKind) -> Self {
        Self::established_with(kind, &config())
    }

    /// The same, where the connections have these options.
    fn established_with(kind: GroupKind, config: &Config) -> Self {
        let mut ends =
            Self { now: START, ends: [End::new(kind, 1), End::new(kind, 2)], cut: [false; 2] };
        for (path, weight) in [(0, 2), (1, 1)] {
            ends.ends[1].endpoints[path].listen(Some(config.clone()));
            let caller = &mut ends.ends[0];
            let endpoint = &mut caller.endpoints[path];
            let link = caller.driver.add_link(START, weight, |membership| {
                let to = address(1, path);
                let id = endpoint.connect(START, to, Attempt::link(config.clone(), membership));
                id.map(|id| (path, id))
            });
            link.expect("a callable address");
        }
        ends.run_for(Duration::from_millis(300));
        for end in &ends.ends {
            assert_eq!(end.driver.group().links().filter(|link| link.2.is_up()).count(), 2);
        }
        ends
    }

    /// Runs in steps of a millisecond.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.now += Duration::from_millis(1);
            while self.exchange() {}
            for end in &mut self.ends {
                let (driver, mut endpoints) = end.parts(self.now);
                driver.update(&mut endpoints);
            }
        }
    }

    /// Runs timers, handles events and delivers datagrams. Returns whether there were any.
    fn exchange(&mut self) -> bool {
        let now = self.now;
        let mut is_busy = false;
        for from in [0, 1] {
            for path in [0, 1] {
                self.ends[from].endpoints[path].handle_timeout(now);
                while let Some(event) = self.ends[from].endpoints[path].poll_event() {
                    self.ends[from].handle(now, path, &event);
                    is_busy = true;
                }
                let mut datagram = Vec::new();
                while self.ends[from].endpoints[path].poll_transmit(now, 1, &mut datagram).is_some()
                {
                    is_busy = true;
                    let arrives = Bytes::from(std::mem::take(&mut datagram));
                    if !self.cut[path] {
                        let to = &mut self.ends[1 - from].endpoints[path];
                        to.handle_datagram(now, address(from, path), arrives);
                    }
                }
            }
        }
        is_busy
    }

    /// Closes the sender's connection on a path.
    fn close(&mut self, path: usize) {
        let (_, id) = self.ends[0].driver.links().find(|(_, link)| link.0 == path).expect("a link");
        let id = id.1;
        self.ends[0].endpoints[path].connection(self.now, id).expect("not released").close();
    }
}

#[test]
fn messages_over_several_links_are_received_once_and_in_order() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut ends = Ends::established(kind);
        for payload in ["first", "second", "third"] {
            ends.ends[0].send(ends.now, payload).expect("room");
            ends.run_for(Duration::from_millis(5));
        }
        assert!(ends.ends[1].recv(ends.now).is_empty(), "{kind:?}: nothing is due yet");
        ends.run_for(LATENCY);
        assert_eq!(ends.ends[1].recv(ends.now), ["first", "second", "third"], "{kind:?}");
        assert!(ends.ends[1].recv(ends.now).is_empty(), "{kind:?}");
    }
}

#[test]
fn the_stream_continues_over_the_remaining_link() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut ends = Ends::established(kind);
        ends.cut[0] = true;
        for _ in 0..100 {
            ends.ends[0].send(ends.now, "anyway").expect("room");
            ends.run_for(Duration::from_millis(5));
        }
        ends.run_for(LATENCY);
        assert_eq!(ends.ends[1].recv(ends.now).len(), 100, "{kind:?}");
    }
}

#[test]
fn a_group_that_is_closed_again_for_now_says_goodbye_over_each_link() {
    let config = config().with_linger(Duration::from_secs(3));
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut ends = Ends::established_with(kind, &config);
        let up = |ends: &Ends| ends.ends[1].driver.group().links().any(|it| it.2.is_up());
        ends.ends[0].send(ends.now, "not played yet").expect("room");
        ends.run_for(Duration::from_millis(5));
        for linger in [Duration::from_secs(3), Duration::ZERO] {
            assert!(up(&ends), "{kind:?}: the peer is still to play the message");
            let now = ends.now;
            let (driver, mut endpoints) = ends.ends[0].parts(now);
            driver.close(&mut endpoints, now + linger);
            ends.run_for(Duration::from_millis(40));
        }
        assert!(!up(&ends), "{kind:?}");
    }
}

#[test]
fn an_ended_link_is_drained_after_its_last_message() {
    let mut ends = Ends::established(GroupKind::Broadcast);
    ends.ends[0].send(ends.now, "last").expect("room");
    ends.run_for(Duration::from_millis(5));
    ends.close(1);
    ends.run_for(Duration::from_millis(20));
    let receiver = &mut ends.ends[1];
    let link = receiver.driver.find(|link| link.0 == 1).expect("it has a message left");
    assert_eq!(receiver.driver.group().link_state(link), Some(LinkState::Gone));
    assert!(receiver.driver.poll_drained().is_none());
    ends.run_for(LATENCY);
    let receiver = &mut ends.ends[1];
    assert_eq!(receiver.recv(ends.now), ["last"]);
    let drained = receiver.driver.poll_drained().expect("nothing more comes from it");
    assert_eq!((drained.id, drained.weight, drained.link.0), (link, 1, 1));
    assert!(receiver.driver.link(link).is_none() && receiver.driver.poll_drained().is_none());
}

#[test]
fn an_ended_link_without_messages_is_drained_at_once() {
    let mut ends = Ends::established(GroupKind::Broadcast);
    ends.close(0);
    ends.run_for(Duration::from_millis(20));
    let drained = ends.ends[1].driver.poll_drained().expect("it had nothing to deliver");
    assert_eq!((drained.weight, drained.link.0), (2, 0));
}

#[test]
fn a_link_whose_call_fails_is_not_added() {
    let mut end = End::new(GroupKind::Broadcast, 1);
    let made = end.driver.add_link(START, 7, |_| Err::<(usize, ConnectionId), _>("no port"));
    assert_eq!(made, Err("no port"));
    assert_eq!((end.driver.links().count(), end.driver.group().links().count()), (0, 0));
}

#[test]
fn a_link_does_not_come_up_before_its_connection_is_established() {
    let mut end = End::new(GroupKind::Broadcast, 1);
    let endpoint = &mut end.endpoints[0];
    let link = end.driver.add_link(START, 0, |membership| {
        endpoint
            .connect(START, address(1, 0), Attempt::link(config(), membership))
            .map(|id| (0, id))
    });
    let link = link.expect("a callable address");
    let (driver, mut endpoints) = end.parts(START);
    assert_eq!(driver.link_up(&mut endpoints, link), Err(LinkUpError::NotEstablished));
    assert_eq!(driver.group().link_state(link), Some(LinkState::Joining));
    assert_eq!(end.send(START, "too early"), Err(SendError::NotConnected));
}

#[test]
fn the_readiness_of_a_group_can_be_read_at_any_time() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut unconnected = End::new(kind, 1);
        assert_eq!(unconnected.readiness(START), Readiness::default(), "{kind:?}: neither yet");

        let mut ends = Ends::established(kind);
        let readiness = ends.ends[0].readiness(ends.now);
        assert!(readiness.writable && !readiness.readable && !readiness.broken, "{kind:?}");
        ends.ends[0].send(ends.now, "last").expect("room");
        ends.run_for(LATENCY / 2);
        assert!(!ends.ends[1].readiness(ends.now).readable, "{kind:?}: it is not due yet");
        ends.run_for(LATENCY);
        assert!(ends.ends[1].readiness(ends.now).readable, "{kind:?}");
        assert!(ends.ends[1].readiness(ends.now).readable, "{kind:?}: reading it changes nothing");

        (0..2).for_each(|path| ends.close(path));
        ends.run_for(Duration::from_millis(20));
        let readiness = ends.ends[1].readiness(ends.now);
        assert!(readiness.broken && readiness.readable && !readiness.writable, "{kind:?}");
        assert_eq!(ends.ends[1].recv(ends.now), ["last"], "{kind:?}: each copy counts once");
        let readiness = ends.ends[1].readiness(ends.now);
        assert!(readiness.broken && !readiness.readable, "{kind:?}");
    }
}

#[test]
fn a_group_whose_links_are_full_is_not_writable_until_there_is_room() {
    for kind in [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance] {
        let mut ends = Ends::established(kind);
        while ends.ends[0].send(ends.now, "more").is_ok() {
            assert!(ends.ends[0].driver.group().statistics(ends.now).packets_sent_unique < 9_999);
        }
        assert!(!ends.ends[0].readiness(ends.now).writable, "{kind:?}");
        ends.run_for(LATENCY);
        assert!(ends.ends[0].readiness(ends.now).writable, "{kind:?}");
    }
}
