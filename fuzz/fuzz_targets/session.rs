//! A whole session between two honest ends, of which somebody on the way holds back, drops,
//! doubles, reorders, shortens and damages what he likes: neither end panics, both come to rest,
//! and neither sends or keeps more than its configuration allows.
#![no_main]

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use punctual_proto::{
    BufferSize, Config, ConnectionId, Endpoint, EndpointConfig, Event, SendOptions,
};
use punctual_units::Instant;

const START: Instant = Instant::from_millis(100_000);
const WINDOW: usize = 128;
/// What waits on the way, each way.
const MOST_UNDER_WAY: usize = 512;
/// Datagrams of one turn: both ends may have everything to send again.
const MOST_AT_ONCE: usize = 4 * WINDOW + 256;

fuzz_target!(|input: &[u8]| {
    let Some((&kind, steps)) = input.split_first() else { return };
    let mut session = Session::new(kind);
    for step in steps.chunks(3) {
        let value = |at: usize| step.get(at).copied().unwrap_or(0);
        session.step(value(0), value(1), value(2));
        session.settle();
    }
});

struct Session {
    now: Instant,
    ends: [End; 2],
    /// What each end has sent and nobody has got yet.
    under_way: [VecDeque<Vec<u8>>; 2],
}

struct End {
    endpoint: Endpoint,
    address: SocketAddr,
    connection: Option<ConnectionId>,
}

impl Session {
    /// A call, or a rendezvous, with options that the lowest bits choose.
    fn new(kind: u8) -> Self {
        let mut ends = [1, 2].map(|host| End {
            endpoint: Endpoint::new(EndpointConfig::new([host; 32]), START),
            address: SocketAddr::from(([192, 0, 2, host], 9_000)),
            connection: None,
        });
        let [a, b] = &mut ends;
        let [of_a, of_b] = [config(kind), config(kind >> 1)];
        if kind & 0x80 == 0 {
            b.endpoint.listen(Some(of_b));
            a.connection = a.endpoint.connect(START, b.address, of_a).ok();
        } else {
            a.connection = a.endpoint.rendezvous(START, b.address, of_a).ok();
            b.connection = b.endpoint.rendezvous(START, a.address, of_b).ok();
        }
        let mut session = Self { now: START, ends, under_way: Default::default() };
        session.settle();
        session
    }

    fn step(&mut self, what: u8, first: u8, second: u8) {
        let from = usize::from(what & 1);
        match what >> 1 & 15 {
            0..=4 => (0..=first % 16).for_each(|_| self.deliver(from, |_| {})),
            5 => drop(self.under_way[from].pop_front()),
            6 => {
                if let Some(datagram) = self.under_way[from].front().cloned() {
                    self.under_way[from].push_back(datagram);
                }
            }
            7 => self.under_way[from].rotate_left(usize::from(first).min(self.waiting(from))),
            8 | 9 => self.deliver(from, |datagram| {
                if let Some(byte) = datagram.get_mut(usize::from(first)) {
                    *byte ^= second;
                }
            }),
            10 => self.deliver(from, |datagram| datagram.truncate(usize::from(first))),
            11 => self.now += Duration::from_micros(u64::from(first) * 256 + u64::from(second)),
            12 => self.now += Duration::from_millis(u64::from(first) * 8),
            13 | 14 => self.send(from, first, second),
            _ => {
                if first == 0xFF
                    && let Some(id) = self.ends[from].connection
                {
                    self.ends[from].endpoint.close(self.now, id);
                }
            }
        }
    }

    fn waiting(&self, from: usize) -> usize {
        self.under_way[from].len()
    }

    fn deliver(&mut self, from: usize, damage: impl FnOnce(&mut Vec<u8>)) {
        let Some(mut datagram) = self.under_way[from].pop_front() else { return };
        damage(&mut datagram);
        let remote = self.ends[from].address;
        self.ends[1 - from].endpoint.handle_datagram(self.now, remote, Bytes::from(datagram));
    }

    fn send(&mut self, from: usize, first: u8, second: u8) {
        let end = &mut self.ends[from];
        let Some(id) = end.connection else { return };
        let payload = vec![first; 1 + usize::from(first) * 5];
        let ttl = (second > 200).then(|| Duration::from_millis(second.into()));
        let options = SendOptions { ttl, ..SendOptions::default() };
        let _ = end.endpoint.send(self.now, id, payload.into(), options);
    }

    fn settle(&mut self) {
        for (end, under_way) in self.ends.iter_mut().zip(&mut self.under_way) {
            end.settle(self.now, under_way);
        }
    }
}

impl End {
    /// Runs timers, reads, and puts on the way what there is to send, until nothing is left to do.
    fn settle(&mut self, now: Instant, under_way: &mut VecDeque<Vec<u8>>) {
        let (mut buffer, mut sent) = (Vec::new(), 0);
        for _ in 0..10_000 {
            if self.endpoint.poll_timeout().is_some_and(|at| at <= now) {
                self.endpoint.handle_timeout(now);
            }
            while let Some(event) = self.endpoint.poll_event() {
                self.take(now, &event);
            }
            while let Some(transmit) = self.endpoint.poll_transmit(now, 1, &mut buffer) {
                assert!(transmit.size <= 1_472, "a datagram too long");
                sent += 1;
                under_way.push_back(std::mem::take(&mut buffer));
                if under_way.len() > MOST_UNDER_WAY {
                    under_way.pop_front();
                }
            }
            if self.endpoint.poll_timeout().is_none_or(|at| at > now) {
                break;
            }
        }
        let rests = self.endpoint.poll_timeout().is_none_or(|at| at > now);
        assert!(rests, "the endpoint does not come to rest");
        assert!(sent <= MOST_AT_ONCE, "{sent} datagrams at once");
        let Some(id) = self.connection else { return };
        let Some(statistics) = self.endpoint.statistics(now, id) else { return };
        assert!(statistics.receive_buffer_packets as usize <= WINDOW);
        assert!(statistics.send_buffer_packets as usize <= WINDOW);
    }

    fn take(&mut self, now: Instant, event: &Event) {
        match event {
            Event::Incoming(incoming) => {
                if let Ok(id) = self.endpoint.accept(now, incoming.id, None) {
                    self.connection.get_or_insert(id);
                }
            }
            Event::Readable(id) => while let Ok(Some(_)) = self.endpoint.recv(now, *id) {},
            _ => {}
        }
    }
}

/// Options that these bits choose.
fn config(bits: u8) -> Config {
    let config = Config::default()
        .with_receive_buffer(BufferSize::Packets(WINDOW))
        .with_send_buffer(BufferSize::Packets(WINDOW))
        .with_tsbpd(bits & 4 == 0)
        .with_periodic_nak(bits & 8 == 0);
    let config = if bits & 16 == 0 { config } else { config.with_stream_id("a").expect("short") };
    let tolerance = if bits & 32 == 0 { 0 } else { 5 };
    config.with_reorder_tolerance(tolerance).expect("in range")
}
