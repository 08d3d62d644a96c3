//! One forged packet with the peer's address and the right socket ID. In a session without
//! encryption it may affect the stream for a moment, but not for longer.

use punctual_proto::{CloseReason, SeqNo, SocketId};
use punctual_units::Instant;
use punctual_wire::{
    Ack, AckLink, AckNo, AckRates, Control, DropRequest, LossListBuilder, MsgNo, Timestamp,
};

use crate::datagram::{forged, forged_data};
use crate::node::number_of;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

/// Small, half the window, the window, and 2^30; and values that have done harm.
const FAR: [u32; 7] = [10, 900, 8_000, 65_536, 100_000, 131_072, 1 << 30];
/// Microseconds: a little, more than the latency, more than any error of a clock, and far.
const TIMES: [u32; 5] = [10_000, 300_000, 1_900_000, 60_000_000, 1 << 30];
const LATENCY: u64 = 120;
/// Messages within the latency: one per millisecond, 10 Mb/s.
const A_LATENCY: usize = 120;

/// The attacker's knowledge of a session.
#[derive(Clone, Copy)]
struct Known {
    /// The sender's next sequence number.
    next: SeqNo,
    /// The number of the newest ACK.
    ack: u32,
    at_sender: SocketId,
    at_receiver: SocketId,
    /// The sender's timestamp, microseconds, and the receiver's.
    sender_time: u32,
    receiver_time: u32,
}

impl Known {
    fn data(&self, seq: SeqNo, later: u32) -> Vec<u8> {
        let stamp = Timestamp::from_micros(self.sender_time.wrapping_add(later));
        forged_data(seq, stamp, self.at_receiver, &[9; 99])
    }

    fn for_receiver(&self, control: Control<'_>) -> Vec<u8> {
        forged(self.at_receiver, Timestamp::from_micros(self.sender_time), control)
    }

    fn for_sender(&self, control: Control<'_>) -> Vec<u8> {
        forged(self.at_sender, Timestamp::from_micros(self.receiver_time), control)
    }

    /// An ACK that reports no room.
    fn ack(&self, number: u32, next: SeqNo, micros: u32, rate: u32) -> Vec<u8> {
        let link = AckLink { rtt_us: micros, rtt_var_us: micros, free_buffer: 0 };
        let rates =
            AckRates { packets_per_sec: rate, capacity_pps: rate, bytes_per_sec: Some(rate) };
        let number = AckNo::new(number & 0x7FFF_FFFF);
        self.for_sender(Control::Ack(Ack::Full { number, next, link, rates, arrivals: None }))
    }
}

type MakeControl = fn(&Known) -> Control<'static>;
type Forge = Box<dyn Fn(&Known) -> Vec<Vec<u8>>>;

/// The name of a case, its destination, and its datagrams.
struct Case {
    name: String,
    to: Side,
    forge: Forge,
}

fn case(name: String, to: Side, forge: impl Fn(&Known) -> Vec<Vec<u8>> + 'static) -> Case {
    Case { name, to, forge: Box::new(forge) }
}

fn request(known: &Known, first: SeqNo, last: SeqNo) -> Vec<Vec<u8>> {
    let request = DropRequest { msgno: MsgNo::CONTROL, first, last };
    vec![known.for_receiver(Control::DropRequest(request))]
}

fn report(known: &Known, first: SeqNo, last: SeqNo) -> Vec<Vec<u8>> {
    let mut list = LossListBuilder::new(2);
    assert!(list.push(first, last));
    vec![known.for_sender(Control::Nak(list.as_list()))]
}

/// Each packet type for the receiver of the stream, and each number in it that has a meaning.
fn to_the_receiver() -> Vec<Case> {
    let to = Side::Listener;
    let mut cases = Vec::new();
    for far in FAR {
        cases.extend([
            case(format!("data {far} ahead"), to, move |it| vec![it.data(it.next.plus(far), 0)]),
            case(format!("data {far} behind"), to, move |it| vec![it.data(it.next.minus(far), 0)]),
            case(format!("two data packets {far} ahead"), to, move |it| {
                let first = it.next.plus(far);
                vec![it.data(first, 0), it.data(first.next(), 1_000)]
            }),
            case(format!("two old data packets {far} ahead"), to, move |it| {
                let first = it.next.plus(far);
                let old = 0u32.wrapping_sub(1_000_000);
                vec![it.data(first, old), it.data(first.next(), old)]
            }),
            case(format!("DROPREQ for one, {far} ahead"), to, move |it| {
                request(it, it.next.plus(far), it.next.plus(far))
            }),
            case(format!("DROPREQ for {far} to come"), to, move |it| {
                request(it, it.next, it.next.plus(far))
            }),
            case(format!("DROPREQ for {far} before and behind"), to, move |it| {
                request(it, it.next.minus(far), it.next.plus(far / 2))
            }),
            case(format!("ACKACK {far} ahead"), to, move |it| {
                vec![it.for_receiver(Control::AckAck(AckNo::new(it.ack.wrapping_add(far))))]
            }),
            case(format!("ACKACK {far} behind"), to, move |it| {
                let number = it.ack.wrapping_sub(far) & 0x7FFF_FFFF;
                vec![it.for_receiver(Control::AckAck(AckNo::new(number)))]
            }),
        ]);
    }
    for time in TIMES {
        for (sign, shift) in [("+", time), ("-", 0u32.wrapping_sub(time))] {
            cases.extend([
                case(format!("the next data packet, {sign}{time} µs"), to, move |it| {
                    vec![it.data(it.next, shift)]
                }),
                case(format!("data 50 ahead, {sign}{time} µs"), to, move |it| {
                    vec![it.data(it.next.plus(50), shift)]
                }),
                case(format!("a keepalive, {sign}{time} µs"), to, move |it| {
                    let stamp = Timestamp::from_micros(it.sender_time.wrapping_add(shift));
                    vec![forged(it.at_receiver, stamp, Control::KeepAlive)]
                }),
            ]);
        }
    }
    cases
}

/// Each packet type for the sender of the stream, and each number in it that has a meaning.
fn to_the_sender() -> Vec<Case> {
    let to = Side::Caller;
    let mut cases = Vec::new();
    for far in FAR {
        cases.extend([
            case(format!("ACK of {far} never sent"), to, move |it| {
                vec![it.ack(it.ack + 1, it.next.plus(far), 1 << 30, u32::MAX)]
            }),
            case(format!("ACK of {far} ago"), to, move |it| {
                vec![it.ack(it.ack + 1, it.next.minus(far), 1, 1)]
            }),
            case(format!("ACK of all, its number {far} ahead"), to, move |it| {
                vec![it.ack(it.ack.wrapping_add(far), it.next, 20_000, 1_000)]
            }),
            case(format!("ACK of little, its number {far} ahead"), to, move |it| {
                vec![it.ack(it.ack.wrapping_add(far), it.next.minus(15), 20_000, 1_000)]
            }),
            case(format!("ACK with {far} µs of round trip"), to, move |it| {
                vec![it.ack(it.ack + 1, it.next, far, 1_000)]
            }),
            case(format!("ACK with {far} packets a second"), to, move |it| {
                vec![it.ack(it.ack + 1, it.next, 20_000, far)]
            }),
            case(format!("light ACK of {far} never sent"), to, move |it| {
                vec![it.for_sender(Control::Ack(Ack::Light { next: it.next.plus(far) }))]
            }),
            case(format!("NAK for {far} never sent"), to, move |it| {
                report(it, it.next, it.next.plus(far))
            }),
            case(format!("NAK for {far} ago until now"), to, move |it| {
                report(it, it.next.minus(far), it.next.minus(1))
            }),
        ]);
    }
    cases.push(case("light ACK of all".to_owned(), to, |it| {
        vec![it.for_sender(Control::Ack(Ack::Light { next: it.next }))]
    }));
    cases
}

/// Packets without sequence numbers, to both ends.
fn to_both() -> Vec<Case> {
    let mut cases = Vec::new();
    for to in [Side::Caller, Side::Listener] {
        let controls: [(&str, MakeControl); 6] = [
            ("an idle keepalive", |_| Control::KeepAliveIdle),
            ("a congestion warning", |_| Control::CongestionWarning),
            ("PEERERROR", |_| Control::PeerError(4_000)),
            ("KMREQ", |_| Control::Extension { command: 3, body: &[0x12; 64] }),
            ("KMRSP", |_| Control::Extension { command: 4, body: &[0, 0, 0, 4] }),
            ("an unknown extension", |_| Control::Extension { command: 99, body: &[7; 16] }),
        ];
        for (name, control) in controls {
            cases.push(case(format!("{name}, to the {to:?}"), to, move |it| {
                vec![match to {
                    Side::Caller => it.for_sender(control(it)),
                    Side::Listener => it.for_receiver(control(it)),
                }]
            }));
        }
    }
    cases
}

/// A stream of 10 Mb/s, 300 ms old, and the attacker's knowledge of it.
fn streaming() -> (Pair, Known) {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(LATENCY), latency(LATENCY));
    let start = pair.now;
    pair.stream(Side::Caller, 300, MS(1));
    let micros = |at: Instant| (at - start).as_micros() as u32;
    let first = pair.listener.received[0].message.seq;
    let acks = pair.statistics(Side::Listener).acks_sent as u32;
    let known = Known {
        next: first.plus(pair.statistics(Side::Caller).packets_sent_unique as u32),
        ack: acks,
        at_sender: pair.info(Side::Caller).socket_id,
        at_receiver: pair.info(Side::Listener).socket_id,
        // The connection began a round trip or two before.
        sender_time: micros(pair.now) + 30_000,
        receiver_time: micros(pair.now),
    };
    (pair, known)
}

/// Sends a case into a stream. Returns the damage to the stream, if any.
fn harm(case: &Case) -> Option<String> {
    let (mut pair, known) = streaming();
    let sent_before = pair.caller.sent.len();
    let remote = pair.node(case.to.other()).address;
    for datagram in (case.forge)(&known) {
        pair.inject(case.to, remote, datagram);
    }
    pair.stream(Side::Caller, 900, MS(1));
    pair.run_for(SECS(1));
    if let Some(reason) = pair.caller.closed().or(pair.listener.closed()) {
        return Some(format!("closed: {reason:?}"));
    }
    let mut came = vec![None; pair.caller.sent.len()];
    let deliveries = pair.listener.received.iter();
    for delivery in deliveries.filter(|delivery| delivery.message.payload.len() > 99) {
        let number = number_of(&delivery.message.payload) as usize;
        if came[number].replace(delivery.at - pair.caller.sent[number]).is_some() {
            return Some(format!("message {number} came twice"));
        }
    }
    let missing: Vec<usize> = (0..came.len()).filter(|&i| came[i].is_none()).collect();
    let again = sent_before + A_LATENCY;
    let late = (again..came.len())
        .find(|&i| !came[i].is_some_and(|delay| (MS(127)..=MS(133)).contains(&delay)));
    if let Some(late) = late {
        return Some(format!(
            "{} ms later a message took {:?}; missing {}: {:?}",
            late - sent_before,
            came[late],
            missing.len(),
            missing.iter().take(3).collect::<Vec<_>>()
        ));
    }
    (missing.len() > A_LATENCY).then(|| format!("{} messages are missing", missing.len()))
}

#[track_caller]
fn assert_harmless(cases: &[Case]) {
    let harms: Vec<String> =
        cases.iter().filter_map(|case| Some(format!("{}: {}", case.name, harm(case)?))).collect();
    assert!(harms.is_empty(), "{} of {}:\n{}", harms.len(), cases.len(), harms.join("\n"));
}

#[test]
fn a_packet_forged_to_the_receiver_costs_one_latency_of_messages() {
    assert_harmless(&to_the_receiver());
}

#[test]
fn a_packet_forged_to_the_sender_costs_one_latency_of_messages() {
    assert_harmless(&to_the_sender());
}

#[test]
fn a_forged_packet_without_sequence_numbers_costs_nothing() {
    assert_harmless(&to_both());
}

/// A forged shutdown looks like the peer's own one, which the draft does not protect: messages that
/// were received before are delivered, and the application learns that the peer has left.
#[test]
fn a_forged_shutdown_ends_the_session_like_the_peers_own() {
    let (mut pair, known) = streaming();
    let received = pair.statistics(Side::Listener).packets_received_unique as usize;
    let remote = pair.caller.address;
    pair.inject(Side::Listener, remote, known.for_receiver(Control::Shutdown));
    pair.run_for(SECS(1));
    assert_eq!(pair.listener.closed(), Some(&CloseReason::Peer));
    assert_eq!(pair.delivered(Side::Caller), (0..received as u32).collect::<Vec<_>>());
}

/// A stream that really continues far ahead, after an outage longer than the buffer.
#[test]
fn a_stream_that_continues_far_ahead_after_an_outage_is_followed() {
    let (mut pair, _) = streaming();
    pair.black_out(&[Side::Caller, Side::Listener], MS(400));
    for _ in 0..900 {
        assert!(pair.send_next(Side::Caller));
        pair.run_for(MS(1));
    }
    pair.run_for(SECS(1));
    let delivered = pair.delivered(Side::Caller);
    let last = *delivered.last().expect("a message");
    assert_eq!(last as usize + 1, pair.caller.sent.len());
    assert!(delivered.len() > 800, "{}", delivered.len());
}
