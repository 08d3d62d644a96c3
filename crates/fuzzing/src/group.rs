//! A group over several paths between two honest ends. On each path somebody holds back, drops,
//! doubles, reorders, shortens and damages what he likes, while links end and are called again.
//!
//! Nothing panics, and both ends come to rest. Undamaged messages are delivered as they were sent,
//! in order and once; each missing message is counted; and when the interference has ended and a
//! link is established, every message arrives.

mod end;

use std::collections::VecDeque;
use std::time::Duration;

use punctual_proto::{Config, GroupKind, SeqNo};
use punctual_units::Instant;

use self::end::{Datagram, End, address};
use crate::config::drawn_link;
use crate::forge::{self, FORGED};
use crate::input::{FuzzInput, START};
use crate::packet_cost::of_one_packet;

/// The most datagrams that wait on a path, each way.
const MOST_UNDER_WAY: usize = 256;

/// The first three bytes choose the kind of group, its paths and the options; each three after them
/// are a step.
pub(crate) fn run(input: &[u8]) {
    let mut input = FuzzInput(input);
    let mut bond = FuzzedBond::new(input.byte(), input.byte(), input.byte());
    while let Some(what) = input.next() {
        if what >= FORGED {
            of_one_packet(|| {
                bond.forge(what, &mut FuzzInput(input.bytes()));
                bond.settle();
            });
        } else {
            bond.step(what, input.byte(), input.byte());
            bond.settle();
        }
    }
    bond.heal();
}

/// The ends: the caller has a port for each path, the listener has one for all.
struct FuzzedBond {
    now: Instant,
    ends: [End; 2],
    /// The datagrams of each end that are under way on each path.
    under_way: Vec<[VecDeque<Datagram>; 2]>,
    config: Config,
    /// The number of the next packet of each end, by the latest one.
    next: [SeqNo; 2],
    is_damaged: bool,
}

impl FuzzedBond {
    fn new(kind: u8, basic: u8, extra: u8) -> Self {
        let paths = 2 + usize::from(kind >> 2 & 1);
        let groups = [GroupKind::Broadcast, GroupKind::Backup, GroupKind::Balance];
        let group = groups[usize::from(kind & 3) % 3];
        let config = drawn_link(basic, extra);
        let mut ends = [End::caller(group, paths), End::listener(group)];
        ends[1].listen(&config);
        let under_way = (0..paths).map(|_| Default::default()).collect();
        let (next, is_damaged) = ([SeqNo::default(); 2], false);
        let mut bond = Self { now: START, ends, under_way, config, next, is_damaged };
        for path in 0..paths {
            bond.call(path, kind.rotate_left(path as u32) >> 5);
        }
        bond.settle();
        // Two bits let the handshakes pass unharmed, so that there is more to see of the stream.
        if kind >> 3 & 3 != 3 {
            bond.run_for(Duration::from_millis(50));
        }
        bond
    }

    fn call(&mut self, path: usize, weight: u8) {
        let config = self.config.clone();
        self.ends[0].call(self.now, path, config, weight.into());
    }

    fn step(&mut self, what: u8, first: u8, second: u8) {
        let from = usize::from(what & 1);
        let path = usize::from(second & 3) % self.under_way.len();
        match what >> 1 & 15 {
            0..=4 => (0..=first % 16).for_each(|_| self.deliver(path, from)),
            5 => drop(self.under_way[path][from].pop_front()),
            6 => {
                if let Some(datagram) = self.under_way[path][from].front().cloned() {
                    self.under_way[path][from].push_back(datagram);
                }
            }
            7 => {
                let waiting = self.under_way[path][from].len();
                self.under_way[path][from].rotate_left(usize::from(first).min(waiting));
            }
            8 => {
                if let Some(datagram) = self.under_way[path][from].front_mut()
                    && let Some(byte) = datagram.get_mut(usize::from(first))
                {
                    self.is_damaged = true;
                    *byte ^= second | 1;
                }
            }
            9 => self.under_way[path][from].clear(),
            10 => (0..=first % 32).for_each(|_| self.ends[from].send(self.now, second)),
            11 => self.now += Duration::from_micros(u64::from(first) * 256 + u64::from(second)),
            12 => self.now += Duration::from_millis(u64::from(first) * 8),
            13 => self.ends[from].send(self.now, first),
            14 if first & 1 == 0 => self.ends[from].close_link(self.now, second.into()),
            // A group whose last link has ended is over.
            14 if self.ends[0].group().is_up() => self.call(path, first >> 4),
            14 => {}
            _ => self.run_for(Duration::from_millis(first.into())),
        }
    }

    /// One end gets a packet of a link with the borders of the number space in its fields.
    fn forge(&mut self, what: u8, input: &mut FuzzInput<'_>) {
        let to = usize::from(what & 1);
        let Some((path, dest)) = self.ends[to].a_link(input.byte().into()) else { return };
        let packet = match what >> 1 & 3 {
            0 => forge::data(input, dest, self.next[1 - to]),
            1 => forge::control(input, dest, self.next[1 - to]),
            _ => forge::control(input, dest, self.next[to]),
        };
        self.is_damaged = true;
        self.arrive(path, 1 - to, packet);
    }

    fn deliver(&mut self, path: usize, from: usize) {
        let Some(datagram) = self.under_way[path][from].pop_front() else { return };
        self.arrive(path, from, datagram);
    }

    fn arrive(&mut self, path: usize, from: usize, datagram: Datagram) {
        let (now, to) = (self.now, &mut self.ends[1 - from]);
        if from == 0 {
            to.endpoint(0).handle_datagram(now, address(path), datagram.into());
        } else {
            to.endpoint(path).handle_datagram(now, end::LISTENER, datagram.into());
        }
    }

    /// Lets everything through at once for a while.
    fn run_for(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            for path in 0..self.under_way.len() {
                for from in [0, 1] {
                    let waiting = self.under_way[path][from].len();
                    (0..waiting).for_each(|_| self.deliver(path, from));
                }
            }
            self.settle();
            if self.under_way.iter().flatten().any(|waiting| !waiting.is_empty()) {
                continue;
            }
            let next = self.ends.iter().filter_map(|end| end.next(self.now)).min();
            match next.filter(|&at| at <= end) {
                Some(at) => self.now = self.now.max(at),
                None => break,
            }
        }
        self.now = end;
        self.settle();
    }

    fn settle(&mut self) {
        for from in [0, 1] {
            let (under_way, next) = (&mut self.under_way, &mut self.next[from]);
            self.ends[from].settle(self.now, |path, datagram| {
                *next = forge::next_number(&datagram).unwrap_or(*next);
                let waiting = &mut under_way[path][from];
                waiting.push_back(datagram);
                if waiting.len() > MOST_UNDER_WAY {
                    waiting.pop_front();
                }
            });
        }
        if !self.is_damaged {
            let [a, b] = &mut self.ends;
            a.expect_what_was_sent(b.sent);
            b.expect_what_was_sent(a.sent);
        }
    }

    /// If the buffers are full, the retransmissions come after a time that depends on the estimates
    /// of the round trips.
    fn send_when_there_is_room(&mut self, from: usize) {
        let before = self.ends[from].sent;
        for _ in 0..30 {
            self.ends[from].send(self.now, 9);
            if self.ends[from].sent > before {
                return;
            }
            self.run_for(Duration::from_secs(20));
        }
        panic!("no room on healthy paths");
    }

    /// If a link is established at both ends, messages that are sent now arrive.
    fn heal(&mut self) {
        if self.is_damaged {
            return;
        }
        self.run_for(Duration::from_secs(30));
        let [calling, called] = self.ends.each_ref().map(End::established);
        if !calling.iter().any(|&(own, peer)| called.contains(&(peer, own))) {
            return;
        }
        // A packet behind a large gap is believed when another confirms it.
        for from in [0, 1, 0, 1, 0, 1] {
            self.send_when_there_is_room(from);
            self.run_for(Duration::from_millis(20));
        }
        let arrived =
            |ends: &[End; 2]| ends[0].sent == ends[1].next && ends[1].sent == ends[0].next;
        for _ in 0..30 {
            if arrived(&self.ends) {
                return;
            }
            self.run_for(Duration::from_secs(20));
            // A balancing group detects the loss of packets on a link that the peer has forgotten
            // too late for a link with longer round trips than the latency. The next packets go
            // over the other link, which reports the loss.
            if self.ends[0].group().kind() == GroupKind::Balance {
                for from in [0, 1] {
                    self.send_when_there_is_room(from);
                }
                self.run_for(Duration::from_secs(20));
            }
        }
        let state = self.ends.each_ref().map(|end| (end.sent, end.next));
        assert!(arrived(&self.ends), "not delivered on healthy paths: {state:?}");
    }
}
