//! The queueing delay that the sender of a live stream measures, beside the queue of its link.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use punctual_netem::{LinkConfig, Reorder};
use punctual_testbed::datagram::edit_handshake;
use punctual_units::{Bitrate, Instant};
use punctual_wire::{Extension, HsFlags};

use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency};

/// Bytes of a message, and of its packet on the wire.
const MESSAGE: u64 = 1_316;
const PACKET: usize = 1_316 + 16;
/// Headers of IPv4 and UDP.
const HEADERS: i32 = 28;
/// The link's delay, one way.
const DELAY: Duration = Duration::from_millis(20);
/// The least delay of this time is the present one.
const PRESENT: Duration = Duration::from_millis(45);
/// The promise.
const CLOSE: Duration = Duration::from_millis(2);

/// The queue before the link, by the packets that enter it.
struct Queue {
    rate: Bitrate,
    limit: Duration,
    /// When the last packet will have left.
    free: Instant,
    /// When packets leave the queue, and how long they waited.
    waits: VecDeque<(Instant, Duration)>,
}

impl Queue {
    /// A packet of `bytes` comes; `false` if there is no room for it.
    fn enter(&mut self, now: Instant, bytes: usize) -> bool {
        let wait = self.free.saturating_since(now);
        if wait > self.limit {
            return false;
        }
        self.free = now.max(self.free) + self.rate.time_for(bytes as u64 + HEADERS as u64);
        self.waits.push_back((now + wait, wait));
        true
    }

    /// The least and the greatest wait of the packets that left in this time. Packets that left
    /// before it are forgotten.
    fn waits(&mut self, from: Instant, to: Instant) -> [Duration; 2] {
        while self.waits.front().is_some_and(|&(at, _)| at < from) {
            self.waits.pop_front();
        }
        let waits = || self.waits.iter().filter(|&&(at, _)| at <= to).map(|&(_, wait)| wait);
        [waits().min(), waits().max()].map(Option::unwrap_or_default)
    }
}

/// A live stream, its link, and what is known of the queue.
struct Run {
    pair: Pair,
    link: LinkConfig,
    queue: Rc<RefCell<Queue>>,
    interval: Duration,
    next: Instant,
    /// When the next packet of others comes, and the time between two.
    other: Option<(Instant, Duration)>,
    /// The greatest measured delay, and the furthest from the queue.
    longest: Duration,
    furthest: Duration,
}

/// The parameters of a run.
#[derive(Clone, Copy)]
struct Case {
    mbps: u64,
    /// The link's rate as a share of the stream's.
    room: f64,
    loss: f64,
    limit: Duration,
    is_reported: bool,
}

impl Case {
    fn new(mbps: u64, loss: f64) -> Self {
        Self { mbps, room: 1.25, loss, limit: SECS(10), is_reported: true }
    }
}

impl Run {
    fn new(case: Case, change: impl Fn(LinkConfig) -> LinkConfig) -> Self {
        let Case { mbps, room, loss, limit, is_reported } = case;
        let rate = Bitrate::from_bits_per_sec((mbps as f64 * room * 1e6) as u64);
        let back = LinkConfig::default().with_delay(DELAY);
        let link = back.clone().with_rate(Some(rate)).with_overhead(HEADERS);
        let link = change(link);
        let mut pair = Pair::new(mbps, link.clone(), back);
        let queue = Queue { rate, limit, free: pair.now, waits: VecDeque::new() };
        let queue = Rc::new(RefCell::new(queue));
        let mut random = Random(mbps);
        let shared = Rc::clone(&queue);
        pair.tap(move |now, side, datagram| {
            let datagram = if is_reported { datagram } else { without_reports(datagram) };
            let is_lost = random.share(1.0) < loss;
            let enters = || side != Side::Caller || shared.borrow_mut().enter(now, datagram.len());
            if is_lost || !enters() { Vec::new() } else { vec![datagram] }
        });
        pair.connect(latency(500), latency(500));
        let interval = Bitrate::from_mbps(mbps).time_for(MESSAGE);
        let next = pair.now;
        let zero = Duration::ZERO;
        Self { pair, link, queue, interval, next, other: None, longest: zero, furthest: zero }
    }

    /// Streams for this time, which may change the link.
    fn stream(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            let other = self.other.map_or(end, |(at, _)| at);
            let at = self.next.min(other).min(end);
            self.pair.run_for(at - self.pair.now);
            if at == self.next {
                assert!(self.pair.send_next(Side::Caller));
                self.next += self.interval;
            }
            if let Some((next, interval)) = self.other.filter(|&(next, _)| next == at) {
                if self.queue.borrow_mut().enter(at, PACKET) {
                    self.pair.caller.outgoing.send(at, vec![0; PACKET]);
                }
                self.other = Some((next + interval, interval));
            }
        }
    }

    /// Others send this share of the stream's rate from now on.
    fn others(&mut self, share: f64) {
        let interval = self.interval.as_secs_f64() / share;
        self.other = (share > 0.0).then(|| (self.pair.now, Duration::from_secs_f64(interval)));
    }

    /// Gives the link this delay.
    fn set_delay(&mut self, delay: Duration) {
        self.link = self.link.clone().with_delay(delay);
        self.pair.set_link(Side::Caller, self.link.clone());
    }

    /// Streams for this time, and compares the measured delay with the queue each 50 ms.
    fn compare(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            self.stream(MS(50));
            let measured = self.pair.statistics(Side::Caller).queueing_delay;
            let newest = self.pair.now - self.link.delay - DELAY;
            let [least, most] = self.queue.borrow_mut().waits(newest - self.age(), newest);
            let off = least.saturating_sub(measured).max(measured.saturating_sub(most));
            self.longest = self.longest.max(measured);
            if off > self.furthest {
                self.furthest = off;
                println!("{:?}: {measured:?} of {least:?} to {most:?}", self.pair.elapsed());
            }
        }
    }

    /// The age of the oldest wait that the sender may know of, beyond a round trip. A report comes
    /// each 10 ms, or with each packet, which comes more rarely while a queue grows. It tells a
    /// packet that is as old, and one packet or report may be lost.
    fn age(&self) -> Duration {
        PRESENT + 3 * (self.interval * 3 / 2).max(MS(10))
    }

    /// Streams for this time, in which others fill the queue for half a second each five seconds.
    fn compare_beside_others(&mut self, time: Duration) {
        let end = self.pair.now + time;
        while self.pair.now < end {
            self.compare(MS(4_500));
            self.others(0.5);
            self.compare(MS(500));
            self.others(0.0);
        }
    }
}

/// The datagram, without the flag of a peer that reports arrivals if it is a handshake.
fn without_reports(datagram: Vec<u8>) -> Vec<u8> {
    edit_handshake(datagram, |handshake| {
        for extension in &mut handshake.extensions {
            if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                hs.flags = hs.flags.without(HsFlags::COUNTED_ARRIVALS);
            }
        }
    })
}

#[test]
fn a_live_stream_knows_the_queue_of_its_link_to_two_milliseconds() {
    let late = |link: LinkConfig| {
        link.with_reorder(Reorder::Late { share: 0.01, by: MS(9) }).expect("a share")
    };
    for (mbps, loss) in [1, 5, 20, 50].into_iter().flat_map(|mbps| [(mbps, 0.0), (mbps, 0.02)]) {
        for reorders in [false, true] {
            let case = Case::new(mbps, loss);
            let mut run = Run::new(case, |link| if reorders { late(link) } else { link });
            run.stream(SECS(2));
            run.compare_beside_others(SECS(40));
            println!(
                "{mbps} Mb/s, {loss} lost, {reorders}: up to {:?}, {:?} off",
                run.longest, run.furthest
            );
            assert!(run.longest > MS(50), "{:?}", run.longest);
            assert!(run.furthest <= CLOSE, "{:?}", run.furthest);
        }
    }
}

#[test]
fn a_path_that_becomes_longer_or_wanders_has_no_queue() {
    for (mbps, loss) in [1, 5, 20, 50].into_iter().flat_map(|mbps| [(mbps, 0.0), (mbps, 0.02)]) {
        let mut run = Run::new(Case { room: 4.0, ..Case::new(mbps, loss) }, |link| link);
        run.compare(SECS(15));
        // Another route, 15 ms longer: after 14 seconds that is known.
        run.set_delay(MS(35));
        run.stream(SECS(14));
        run.compare(SECS(10));
        // A shorter one.
        run.set_delay(MS(25));
        run.stream(MS(200));
        run.compare(SECS(10));
        // It wanders up and down by 8 ms, in a minute.
        for step in 0..1_200_u64 {
            run.set_delay(
                MS(25) + Duration::from_micros((300 - 300_u64.abs_diff(step % 600)) * 8_000 / 300),
            );
            if step < 150 {
                run.stream(MS(100));
            } else {
                run.compare(MS(100));
            }
        }
        println!("{mbps} Mb/s, {loss} lost: {:?} off", run.furthest);
        assert!(run.furthest <= CLOSE, "{:?}", run.furthest);
    }
}

/// A stream of two percent more than the link carries: the queue stays full.
#[test]
fn a_queue_that_stays_full_is_no_longer_path() {
    for mbps in [1, 5, 20, 50] {
        let mut run = Run::new(Case { limit: MS(100), ..Case::new(mbps, 0.0) }, |link| link);
        run.stream(SECS(5));
        run.others(0.3);
        run.compare(SECS(60));
        println!("{mbps} Mb/s: up to {:?}, {:?} off", run.longest, run.furthest);
        let measured = run.pair.statistics(Side::Caller).queueing_delay;
        assert!(measured > MS(70) && run.furthest <= CLOSE, "{measured:?}, {:?}", run.furthest);
    }
}

#[test]
fn toward_a_peer_without_reports_the_queue_is_inferred() {
    for (mbps, loss) in [1, 5, 20, 50].into_iter().flat_map(|mbps| [(mbps, 0.0), (mbps, 0.02)]) {
        let mut run = Run::new(Case { is_reported: false, ..Case::new(mbps, loss) }, |link| link);
        run.stream(SECS(2));
        run.compare_beside_others(SECS(40));
        println!("{mbps} Mb/s, {loss} lost: up to {:?}, {:?} off", run.longest, run.furthest);
        // An ACK waits for a missing packet, and a NAK tells of a round trip only at a new loss.
        let close = if loss > 0.0 { MS(25) } else { CLOSE };
        assert!(run.longest > MS(50) && run.furthest <= close, "{:?}", run.furthest);
    }
}
