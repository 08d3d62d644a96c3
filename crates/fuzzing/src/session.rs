//! A whole session between two honest ends, of which somebody on the way holds back, drops,
//! doubles, reorders, shortens and damages what he likes, while their addresses change and their
//! keys are replaced.
//!
//! Neither end panics, both come to rest, and neither sends or keeps more than its configuration
//! allows. Undamaged or authenticated messages are delivered as they were sent, in order and once;
//! and when the interference has ended, every message arrives. The stream may be live, or a file,
//! of which nothing is missing then.

mod end;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{Attempt, Config, SendOptions, Transmission};
use punctual_units::Instant;

use self::end::{End, FuzzedDatagram, byte_at, expect_the_stream, expect_what_was_sent};
use crate::config::{drawn, drawn_file, is_authentic, without_waiting};
use crate::input::{FuzzInput, START};

/// The first four bytes choose the calling end, the kind of stream and the options; each three
/// after them are a step.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut session = Session::new(input.byte(), [input.byte(), input.byte()], input.byte());
    while let Some(what) = input.next() {
        session.step(what, input.byte(), input.byte());
        session.settle();
    }
    session.heal();
}

struct Session {
    now: Instant,
    ends: [End; 2],
    /// The datagrams of each end that are under way.
    under_way: [VecDeque<FuzzedDatagram>; 2],
    /// Whether a datagram was changed.
    is_damaged: bool,
    /// Whether packets that were changed are found out.
    is_authentic: bool,
    transmission: Transmission,
}

impl Session {
    /// A call or a rendezvous. Both ends have the same extras, but for what `differ` says.
    fn new(kind: u8, [basic, extra]: [u8; 2], differ: u8) -> Self {
        let extras = [extra, extra ^ differ];
        let transmission = match kind >> 3 & 3 {
            1 => Transmission::Stream,
            2 => Transmission::Messages,
            _ => Transmission::Live,
        };
        let basics = [basic, basic.rotate_left(1)];
        let configs = [0, 1].map(|end| match transmission {
            Transmission::Live => drawn(without_waiting(basics[end], extras), extras[end]),
            other => drawn_file(basics[end], extras[end], other),
        });
        let is_authentic = configs.iter().all(is_authentic);
        let mut ends = [1, 2].map(End::new);
        let [a, b] = &mut ends;
        let [of_a, of_b] = configs;
        if kind & 1 == 0 {
            b.endpoint.listen(Some(of_b));
            a.connection = a.endpoint.connect(START, b.address, of_a).ok();
        } else {
            let meet = |end: &mut End, remote, config: Config| {
                end.connection =
                    end.endpoint.connect(START, remote, Attempt::rendezvous(config)).ok();
            };
            let addresses = (a.address, b.address);
            meet(a, addresses.1, of_a);
            meet(b, addresses.0, of_b);
        }
        let under_way = Default::default();
        let is_damaged = false;
        let mut session =
            Self { now: START, ends, under_way, is_damaged, is_authentic, transmission };
        session.settle();
        // Two bits let the handshake pass unharmed, so that there is more to see of the stream.
        if kind & 6 == 0 {
            session.run_for(Duration::from_millis(50));
        }
        session
    }

    fn step(&mut self, what: u8, first: u8, second: u8) {
        let from = usize::from(what & 1);
        match what >> 1 & 15 {
            0..=4 => (0..=first % 16).for_each(|_| self.deliver(from)),
            5 => drop(self.under_way[from].pop_front()),
            6 => {
                if let Some(datagram) = self.under_way[from].front() {
                    let again = FuzzedDatagram { bytes: datagram.bytes.clone(), ..*datagram };
                    self.under_way[from].push_back(again);
                }
            }
            7 => {
                let waiting = self.under_way[from].len();
                self.under_way[from].rotate_left(usize::from(first).min(waiting));
            }
            8 => self.damage(from, |bytes| {
                if let Some(byte) = bytes.get_mut(usize::from(first)) {
                    *byte ^= second;
                }
            }),
            9 if first & 0x80 == 0 => self.damage(from, |bytes| bytes.truncate(first.into())),
            9 => self.ends[from].move_on(second),
            10 => (0..=first % 32).for_each(|_| self.send(from, second, 0)),
            11 => self.now += Duration::from_micros(u64::from(first) * 256 + u64::from(second)),
            12 => self.now += Duration::from_millis(u64::from(first) * 8),
            13 | 14 => self.send(from, first, second),
            _ if first == 0xFF => self.ends[from].close(self.now),
            _ => self.run_for(Duration::from_millis(first.into())),
        }
    }

    fn damage(&mut self, from: usize, change: impl FnOnce(&mut Vec<u8>)) {
        if let Some(datagram) = self.under_way[from].front_mut() {
            self.is_damaged = true;
            change(&mut datagram.bytes);
        }
        self.deliver(from);
    }

    fn deliver(&mut self, from: usize) {
        let Some(datagram) = self.under_way[from].pop_front() else { return };
        let to = &mut self.ends[1 - from];
        if datagram.to == to.address {
            to.endpoint.handle_datagram(self.now, datagram.from, datagram.bytes.into());
        }
    }

    fn send(&mut self, from: usize, first: u8, second: u8) {
        let end = &mut self.ends[from];
        let Some(id) = end.connection else { return };
        let mut connection = end.endpoint.connection(self.now, id).expect("not released");
        if self.transmission == Transmission::Stream {
            let most = end.bytes_sent + 4 + usize::from(first) * 80;
            let mut data: Bytes = (end.bytes_sent..most).map(byte_at).collect();
            while !data.is_empty() {
                let Ok(taken) = connection.write(&mut data) else { return };
                end.bytes_sent += taken;
            }
            return;
        }
        let scale = if self.transmission == Transmission::Live { 5 } else { 80 };
        let mut payload = u32::try_from(end.sent.len()).unwrap_or(0).to_be_bytes().to_vec();
        payload.resize(4 + usize::from(first) * scale, first);
        let payload = Bytes::from(payload);
        let ttl = (second > 200).then(|| Duration::from_millis(second.into()));
        let in_order = second & 64 == 0;
        let options = SendOptions { ttl, in_order, ..SendOptions::default() };
        if connection.send(payload.clone(), options).is_ok() {
            if self.transmission == Transmission::Messages {
                end.keeps_order &= in_order;
                end.owed.extend(ttl.is_none().then_some(end.sent.len()));
            }
            end.sent.push(payload);
        }
    }

    /// Lets everything through at once for a while.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for from in [0, 1] {
                (0..self.under_way[from].len()).for_each(|_| self.deliver(from));
            }
            self.settle();
            if self.under_way.iter().any(|waiting| !waiting.is_empty()) {
                continue;
            }
            let next = self.ends.iter().map(|end| end.endpoint.poll_timeout()).min();
            match next.and_then(|next| next.instant(self.now)).filter(|&at| at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    fn settle(&mut self) {
        let addresses = [self.ends[0].address, self.ends[1].address];
        for (at, under_way) in self.under_way.iter_mut().enumerate() {
            self.ends[at].settle(self.now, under_way);
        }
        debug_assert_eq!(addresses, [self.ends[0].address, self.ends[1].address]);
        if !self.is_damaged || self.is_authentic {
            let [a, b] = &mut self.ends;
            let expect = match self.transmission {
                Transmission::Stream => expect_the_stream,
                _ => expect_what_was_sent,
            };
            expect(a, b);
            expect(b, a);
        }
    }

    /// If both ends are established, and at most one has moved, messages that are sent now arrive.
    fn heal(&mut self) {
        let is_established = |end: &End| end.is_connected && !end.is_closed;
        let moved = self.ends.iter().filter(|end| end.has_moved).count();
        if self.is_damaged || moved > 1 || !self.ends.iter().all(is_established) {
            return;
        }
        // As long as it takes to ask again where a held-back handshake made the round trip
        // seem long.
        self.run_for(Duration::from_secs(30));
        if self.transmission != Transmission::Live {
            self.wait_until_all_arrived();
        }
        // A packet behind a large gap is believed when another confirms it.
        for from in [0, 1, 0, 1] {
            self.send_when_there_is_room(from);
            self.run_for(Duration::from_millis(10));
        }
        self.wait_until_all_arrived();
    }

    /// If the buffer is full, the retransmissions come after a time that depends on the estimate of
    /// the round trip.
    fn send_when_there_is_room(&mut self, from: usize) {
        let before = self.ends[from].taken();
        for _ in 0..30 {
            self.send(from, 1, 0);
            if self.ends[from].taken() > before {
                return;
            }
            self.run_for(Duration::from_secs(20));
        }
        panic!("the buffer is full on a healthy path");
    }

    /// If the handshake was held back, messages are played as much later; if a packet was, NAKs are
    /// as slow as the estimate of the round trip.
    fn wait_until_all_arrived(&mut self) {
        let is_live = self.transmission == Transmission::Live;
        let arrived = |ends: &[End; 2]| {
            [(0, 1), (1, 0)].map(|(from, to)| {
                let (from, to) = (&ends[from], &ends[to]);
                if is_live {
                    return from.sent.last() == to.received.last();
                }
                from.owed.is_empty() && from.bytes_sent == to.bytes_received
            })
        };
        for _ in 0..30 {
            if arrived(&self.ends) == [true; 2] {
                return;
            }
            self.run_for(Duration::from_secs(20));
        }
        assert_eq!(arrived(&self.ends), [true; 2], "not delivered on a healthy path");
    }
}
