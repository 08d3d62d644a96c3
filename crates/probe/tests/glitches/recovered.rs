//! A stream in virtual time over two links that lose packets. The receiver asks for each packet
//! until it comes; nothing is given up.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::time::Duration;

use punctual_netem::{Link, LinkConfig, Loss, Packet};
use punctual_probe::model::glitch::{Effort, WantedTime};
use punctual_units::Instant;

use crate::setting::{PACKET, PACKETS_IN_CHUNK, RTT, Setting};

/// The glitches that were found, and the cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Readchunks with a packet that came too late.
    pub(crate) glitches: u32,
    /// Retransmissions for each original.
    pub(crate) overhead: f64,
}

/// Streams in this setting, and counts.
pub(crate) fn recovered(setting: &Setting, seed: u64) -> Found {
    let mut stream = Stream::new(setting, seed);
    while let Some(now) = stream.next() {
        stream.handle(now);
    }
    stream.found()
}

/// A data packet.
#[derive(Clone, Copy, Debug)]
struct Data(u64);

/// A datagram on the way back: one of a NAK, or an ACK.
#[derive(Clone, Debug)]
enum Report {
    Nak(Nak),
    Ack,
}

/// A NAK, with what the sender would know of the deadline.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Nak {
    number: u64,
    missing: Vec<u64>,
    copies: u32,
    /// The time in which the copies are to arrive: the end of the last round, or the margin.
    end: Option<Instant>,
}

#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Event {
    Original(u64),
    Copy(Vec<u64>),
    Datagram(Nak),
    NakTimer(Vec<u64>),
    Ack,
}

struct Stream<'a> {
    setting: &'a Setting,
    there: Link<Data>,
    back: Link<Report>,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    scheduled: u64,
    packets: u64,
    retransmissions: u64,
    missing: BTreeSet<u64>,
    /// The next packet that should come.
    next: u64,
    naks: u64,
    /// NAKs with a retransmission, of the newest ones.
    answered: BTreeSet<u64>,
    late: Vec<bool>,
}

impl<'a> Stream<'a> {
    fn new(setting: &'a Setting, seed: u64) -> Self {
        let link = |loss: f64| {
            let loss = match setting.burst {
                _ if loss == 0.0 => Loss::None,
                1.0 => Loss::Random(loss),
                burst => Loss::bursts(loss, burst),
            };
            LinkConfig::default().with_delay(RTT / 2).with_loss(loss).expect("a loss")
        };
        // Packets behind the last readchunk let its losses be noticed.
        let packets = (u64::from(setting.chunks) + 1) * PACKETS_IN_CHUNK;
        let mut stream = Self {
            setting,
            there: Link::new(link(setting.loss), seed),
            back: Link::new(link(setting.return_loss), seed.wrapping_add(1)),
            events: BinaryHeap::new(),
            scheduled: 0,
            packets,
            retransmissions: 0,
            missing: BTreeSet::new(),
            next: 0,
            naks: 0,
            answered: BTreeSet::new(),
            late: vec![false; setting.chunks as usize + 2],
        };
        stream.schedule(Instant::ORIGIN, Event::Original(0));
        stream.schedule(Instant::ORIGIN, Event::Ack);
        stream
    }

    fn next(&self) -> Option<Instant> {
        let event = self.events.peek().map(|Reverse((at, ..))| *at);
        [event, self.there.poll_timeout(), self.back.poll_timeout()].into_iter().flatten().min()
    }

    fn handle(&mut self, now: Instant) {
        while let Some(arrival) = self.there.recv(now) {
            self.arrived(now, arrival.packet.0);
        }
        while let Some(arrival) = self.back.recv(now) {
            if let Report::Nak(nak) = arrival.packet {
                self.answer(now, &nak);
            }
        }
        while let Some(Reverse((at, ..))) = self.events.peek()
            && *at <= now
        {
            let Some(Reverse((_, _, event))) = self.events.pop() else { break };
            self.happen(now, event);
        }
    }

    fn happen(&mut self, now: Instant, event: Event) {
        match event {
            Event::Original(packet) => {
                self.there.send(now, Data(packet));
                if packet + 1 < self.packets {
                    self.schedule(now + PACKET, Event::Original(packet + 1));
                }
            }
            Event::Copy(packets) => self.retransmit(now, &packets),
            Event::Datagram(nak) => self.back.send(now, Report::Nak(nak)),
            Event::NakTimer(packets) => self.ask(now, packets),
            Event::Ack => {
                self.back.send(now, Report::Ack);
                if self.next < self.packets - PACKETS_IN_CHUNK / 2 || !self.missing.is_empty() {
                    self.schedule(now + Duration::from_millis(10), Event::Ack);
                }
            }
        }
    }

    /// At the receiver: a data packet came.
    fn arrived(&mut self, now: Instant, packet: u64) {
        if packet >= self.next {
            let gap: Vec<u64> = (self.next..packet).collect();
            self.missing.extend(&gap);
            self.next = packet + 1;
            self.ask(now, gap);
        } else if self.missing.remove(&packet) && now > self.wanted(packet) {
            let chunk = self.chunk(packet);
            self.late[chunk] = true;
        }
    }

    /// At the receiver: sends NAKs for these packets as far as they are missing, one for those of
    /// the same effort.
    fn ask(&mut self, now: Instant, mut packets: Vec<u64>) {
        packets.retain(|packet| self.missing.contains(packet));
        let (last, usual): (Vec<u64>, Vec<u64>) =
            packets.iter().partition(|packet| self.is_last(now, **packet));
        for group in [last, usual].iter().filter(|group| !group.is_empty()) {
            self.send_nak(now, group);
        }
    }

    fn send_nak(&mut self, now: Instant, packets: &[u64]) {
        let timing = self.setting.timing();
        let is_last = self.is_last(now, packets[0]);
        let Effort { datagrams, copies } =
            if is_last { self.setting.last } else { self.setting.usual };
        self.naks += 1;
        let end = is_last.then(|| self.wanted(packets[0]));
        let nak = Nak { number: self.naks, missing: packets.to_vec(), copies, end };
        for datagram in 0..datagrams {
            self.schedule(now + timing.spacing * datagram, Event::Datagram(nak.clone()));
        }
        self.schedule(now + RTT + timing.margin, Event::NakTimer(packets.to_vec()));
    }

    /// Whether a NAK for this packet is the last one that can be answered in time.
    fn is_last(&self, now: Instant, packet: u64) -> bool {
        let (timing, last) = (self.setting.timing(), self.setting.last);
        let left = self.wanted(packet).saturating_since(now);
        let needed = RTT + timing.spacing * (last.datagrams - 1) + PACKET * last.copies;
        needed <= left && left < needed + RTT + timing.margin
    }

    /// At the sender: a datagram of a NAK came.
    fn answer(&mut self, now: Instant, nak: &Nak) {
        if !self.answered.insert(nak.number) {
            return;
        }
        if self.answered.len() > 10_000 {
            self.answered.pop_first();
        }
        self.retransmit(now, &nak.missing);
        let left = nak.end.map(|end| end.saturating_since(now + RTT / 2) * 7 / 8);
        let spread = left.unwrap_or(self.setting.timing().margin);
        for copy in 1..=nak.copies {
            let at = now + spread * copy / nak.copies;
            self.schedule(at, Event::Copy(nak.missing.clone()));
        }
    }

    fn retransmit(&mut self, now: Instant, packets: &[u64]) {
        for packet in packets {
            self.there.send(now, Data(*packet));
            self.retransmissions += 1;
        }
    }

    /// The time at which the player wants a packet.
    fn wanted(&self, packet: u64) -> Instant {
        let last = match self.setting.wanted {
            WantedTime::ByPacket => packet,
            WantedTime::ByChunk => (packet / PACKETS_IN_CHUNK + 1) * PACKETS_IN_CHUNK - 1,
        };
        let at = PACKET * u32::try_from(last).expect("few packets") + RTT / 2;
        Instant::ORIGIN + at + self.setting.buffer
    }

    fn chunk(&self, packet: u64) -> usize {
        usize::try_from(packet / PACKETS_IN_CHUNK).expect("few readchunks")
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.scheduled += 1;
        self.events.push(Reverse((at, self.scheduled, event)));
    }

    fn found(&self) -> Found {
        let late = self.late.iter().take(self.setting.chunks as usize).filter(|late| **late);
        #[expect(clippy::cast_precision_loss, reason = "counts of a test")]
        let overhead = self.retransmissions as f64 / self.packets as f64;
        Found { glitches: u32::try_from(late.count()).expect("few"), overhead }
    }
}

impl Packet for Data {
    fn len(&self) -> usize {
        1_000
    }

    fn corrupt(&mut self, _: u64) {}
}

impl Packet for Report {
    fn len(&self) -> usize {
        50
    }

    fn corrupt(&mut self, _: u64) {}
}
