//! The duration and the failures of calls over links with losses in both directions: our caller
//! beside one that repeats every 250 ms, to a listener that stays open, and to one that closes as
//! soon as it has accepted, as srt-live-transmit does.
//!
//! `cargo test -p punctual-proto --test scenarios lossy_calls -- --nocapture` prints the table in
//! docs/handshake.md.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use punctual_netem::{Link, LinkConfig, Loss};
use punctual_units::Instant;
use punctual_wire::{
    Control, Extension, Handshake, HandshakeRequest, HsExtension, HsFlags, PeerIp, SeqNo, SocketId,
    Timestamp,
};

use crate::datagram::{forged, handshake};
use crate::node::{EPOCH, Node};
use crate::pair::Pair;
use crate::{MS, SECS, latency};

const CALLS: u64 = 1_000;

/// The results of the calls of one kind.
struct Outcome {
    /// The durations of the successful calls, sorted.
    times: Vec<Duration>,
}

impl Outcome {
    fn of(call: impl Fn(u64) -> Option<Duration>) -> Self {
        let mut times: Vec<_> = (0..CALLS).filter_map(call).collect();
        times.sort_unstable();
        Self { times }
    }

    fn failures(&self) -> u64 {
        CALLS - self.times.len() as u64
    }

    fn quantile(&self, share: f64) -> Duration {
        self.times[(self.times.len() as f64 * share) as usize]
    }

    fn print(&self, name: &str) {
        let [median, p99] = [0.5, 0.99].map(|share| self.quantile(share).as_millis());
        println!("{name} | {median} ms | {p99} ms | {} of {CALLS}", self.failures());
    }
}

/// A link with this round-trip time and this share of lost packets.
fn line(rtt: Duration, loss: f64) -> LinkConfig {
    LinkConfig::default().with_delay(rtt / 2).with_loss(Loss::Random(loss)).expect("a share")
}

fn our_call(seed: u64, link: &LinkConfig, closes: bool) -> Option<Duration> {
    let mut pair = Pair::symmetric(seed, link.clone());
    pair.closes = closes;
    pair.call(latency(120), latency(120));
    pair.run_while(SECS(4), |pair| !pair.caller.connected && pair.caller.closed().is_none());
    pair.caller.connected.then(|| pair.elapsed())
}

/// A model of libsrt's caller: it repeats each request every 250 ms, for 3 s.
fn blind_call(seed: u64, link: &LinkConfig, closes: bool) -> Option<Duration> {
    let mut there = Link::<Vec<u8>>::new(link.clone(), seed ^ 1 << 56);
    let mut listener = Node::new(seed, 2, link.clone());
    listener.endpoint.listen(Some(latency(120)));
    let caller: SocketAddr = "192.0.2.1:9000".parse().expect("an address");
    let (mut now, mut due, mut cookie) = (EPOCH, EPOCH, None);
    while now < EPOCH + SECS(3) {
        if due <= now {
            there.send(now, request(now, cookie));
            due = now + MS(250);
        }
        while let Some(arrival) = there.recv(now) {
            if !(closes && listener.connection.is_some()) {
                listener.endpoint.handle_datagram(now, caller, Bytes::from(arrival.packet));
            }
        }
        listener.drain(now, true);
        for (_, datagram) in listener.transmit(now) {
            listener.outgoing.send(now, datagram);
        }
        while let Some(arrival) = listener.outgoing.recv(now) {
            match handshake(&arrival.packet) {
                Some(answer) if answer.request == HandshakeRequest::Conclusion => {
                    return Some(now - EPOCH);
                }
                Some(answer) if cookie.is_none() => {
                    cookie = Some(answer.cookie);
                    due = now;
                }
                _ => {}
            }
        }
        let next = [Some(due), there.poll_timeout(), listener.next(now)];
        now = now.max(next.into_iter().flatten().min().expect("a repetition"));
    }
    None
}

/// An induction, or a conclusion with this cookie.
fn request(now: Instant, cookie: Option<u32>) -> Vec<u8> {
    let terms = HsExtension {
        version: 0x01_05_01,
        flags: HsFlags::from_bits(0xBF),
        receive_latency_ms: 120,
        send_latency_ms: 120,
    };
    let handshake = Handshake {
        version: if cookie.is_some() { 5 } else { 4 },
        encryption: 0,
        extension_field: if cookie.is_some() { 1 } else { 2 },
        isn: SeqNo::new(7),
        mss: 1_500,
        flow_window: 8_192,
        request: match cookie {
            Some(_) => HandshakeRequest::Conclusion,
            None => HandshakeRequest::Induction,
        },
        socket_id: SocketId::new(77),
        cookie: cookie.unwrap_or_default(),
        peer_ip: PeerIp::from(std::net::IpAddr::from([192, 0, 2, 2])),
        extensions: cookie.map(|_| Extension::HsReq(terms)).into_iter().collect(),
    };
    let timestamp = Timestamp::from_micros((now - EPOCH).as_micros() as u32);
    forged(SocketId::LISTENER, timestamp, Control::Handshake(Box::new(handshake)))
}

/// Calls over such a link: ours, and those of the model.
fn compare(rtt: Duration, loss: f64, closes: bool) -> [Outcome; 2] {
    let link = line(rtt, loss);
    let ours = Outcome::of(|seed| our_call(seed, &link, closes));
    let blind = Outcome::of(|seed| blind_call(seed, &link, closes));
    let listener = if closes { "closes" } else { "stays" };
    let case = format!("{} ms | {:.0} % | {listener}", rtt.as_millis(), loss * 100.0);
    ours.print(&format!("{case} | Punctual"));
    blind.print(&format!("{case} | every 250 ms"));
    [ours, blind]
}

/// Of a hundred calls, 8 or 34 lose at least one of their four packets.
#[test]
fn calls_over_lossy_links_wait_for_round_trips_and_not_for_250_ms() {
    for (loss, within) in [(0.02, MS(90)), (0.1, MS(390))] {
        let [ours, blind] = compare(MS(20), loss, false);
        assert_eq!(ours.failures(), 0);
        assert_eq!(ours.quantile(0.5), MS(40));
        assert!(ours.quantile(0.99) <= within, "{:?}", ours.quantile(0.99));
        assert!(blind.quantile(0.99) >= 2 * within, "{:?}", blind.quantile(0.99));
    }
    for loss in [0.02, 0.1] {
        for rtt in [100, 300] {
            let [ours, blind] = compare(MS(rtt), loss, false);
            assert_eq!(ours.failures(), 0);
            assert!(ours.quantile(0.99) <= blind.quantile(0.99), "{rtt} ms, {loss}");
        }
    }
}

/// If the only answer is lost, every caller fails, since no repetition is answered.
#[test]
fn only_a_lost_answer_makes_a_call_to_a_closing_listener_fail() {
    for (loss, most) in [(0.02, 35), (0.1, 130)] {
        for rtt in [20, 100, 300] {
            let [ours, blind] = compare(MS(rtt), loss, true);
            for outcome in [&ours, &blind] {
                assert!((1..=most).contains(&outcome.failures()), "{}", outcome.failures());
            }
        }
    }
}
