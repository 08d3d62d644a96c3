//! The worst known packets of each type.

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::{Config, Transmission};
use punctual_wire::{
    Ack, AckLink, AckNo, AckRates, Control, DropRequest, LossListBuilder, MsgNo, SeqNo,
};

use crate::bed::{Bed, here};

/// The number of packets of each kind that are measured.
pub const PACKETS: u64 = 128;
const COUNT: u32 = 128;

/// A kind of packet, its upper bound (the mean number of instructions), and its measurement.
pub struct Kind {
    pub name: &'static str,
    pub most: u64,
    pub run: fn(),
}

/// Lists the kinds. Each is fed to the victim by a separate function, by whose name callgrind
/// reports the cost.
macro_rules! kinds {
    ($($name:ident, $most:expr, $make:expr;)*) => {
        pub const KINDS: &[Kind] = &[$(Kind {
            name: stringify!($name),
            most: $most,
            run: || {
                let (mut bed, datagrams): (Bed, Vec<Bytes>) = $make();
                assert_eq!(datagrams.len(), COUNT as usize);
                measured::$name(&mut bed, datagrams);
            },
        }),*];

        mod measured {
            use super::{Bed, Bytes};
            $(
                #[inline(never)]
                pub(super) fn $name(bed: &mut Bed, datagrams: Vec<Bytes>) {
                    std::hint::black_box(stringify!($name));
                    datagrams.into_iter().for_each(|datagram| bed.take(datagram));
                }
            )*
        }
    };
}

kinds! {
    ordinary, DATA, || data(|i| i);
    every_second_is_missing, GAPS, || data(|i| 2 * i);
    gaps_of_63, GAPS, || data(|i| 64 * i);
    leaps_of_half_the_window, WINDOW, || data(|i| HALF * (i / 4) + i);
    leaps_of_the_window, WINDOW, || data(|i| 2 * HALF * (i / 4) + i);
    leaps_of_2_to_the_30, WINDOW, || data(|i| 0x3FFF_0000 * (i / 4 % 2) + i);
    data_after_alternating_gaps, WINDOW, alternating_gaps;
    data_after_leaps_with_a_filter, WINDOW, filtered;
    consecutive_drop_requests, WINDOW, || drops(|i| (i * HALF, (i + 1) * HALF - 1));
    drop_requests_for_the_window, WINDOW, || drops(|_| (0, 2 * HALF - 2));
    drop_requests_far_ahead, CONTROL, || drops(|i| (2 * HALF * i, 2 * HALF * i + 0x3000_0000));
    drop_requests_far_back, CONTROL, || drops(|i| (0x6000_0000 + i, 0x7FFF_0000));
    naks_for_everything, LISTS, || naks(|bed, list| push(list, bed.theirs.minus(FLIGHT), bed.theirs.minus(1)));
    naks_that_repeat_everything, LISTS, overlapping;
    naks_for_unsent_packets, CONTROL, || naks(|bed, list| push(list, bed.theirs, bed.theirs.plus(1 << 29)));
    naks_for_old_packets, CONTROL, || naks(|bed, list| push(list, bed.theirs.minus(1 << 29), bed.theirs.minus(FLIGHT + 9)));
    acks, CONTROL, || acks(|bed, i| (i, bed.theirs.minus(FLIGHT).plus(i)));
    acks_of_unsent_packets, CONTROL, || acks(|bed, i| (i, bed.theirs.plus(9 + i * 100_000)));
    acks_with_leaping_numbers, CONTROL, || acks(|bed, i| (i.wrapping_mul(0x0765_4321), bed.theirs.minus(FLIGHT)));
    acks_beside_expired_messages, TIMERS, expired;
    ackacks_of_unsent_acks, CONTROL, || controls(|i| Control::AckAck(AckNo::new(i << 20)));
    keepalives, CONTROL, || controls(|_| Control::KeepAlive);
    errors, CONTROL, || controls(|_| Control::PeerError(4_000));
    key_messages, CONTROL, || controls(|_| Control::Extension { command: 3, body: &[0xA5; 1_456] });
    unknown_messages, CONTROL, || controls(|i| Control::Extension { command: (i % 200) as u16, body: &[0xA5; 16] });
    shutdowns, CONTROL, || controls(|_| Control::Shutdown);
    conclusions, CONTROL, conclusions;
    conclusions_full_of_extensions, FULL, long_conclusions;
}

/// For a data packet that follows the one before it.
const DATA: u64 = 3_000;
/// For a data packet after a gap: each causes a NAK and copies of it.
const GAPS: u64 = 40_000;
/// For a packet that changes a whole window: runs cost a step for each 64 numbers.
const WINDOW: u64 = 80_000;
/// For a control packet without a list.
const CONTROL: u64 = 12_000;
/// For a packet that arrives when several timers are due.
const TIMERS: u64 = 40_000;
/// For a NAK of all packets in flight; some of them are retransmitted.
const LISTS: u64 = 160_000;
/// For a datagram full of small blocks.
const FULL: u64 = 80_000;
/// Half of the receive buffer, packets.
const HALF: u32 = 65_536;
/// Messages of the victim that expire.
const EXPIRED: u32 = 50_000;
/// Packets of the victim in flight.
const FLIGHT: u32 = 4_000;

fn data(offset: impl Fn(u32) -> u32) -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), 0);
    let datagrams = (0..COUNT).map(|i| bed.data(bed.next.plus(offset(i)), i)).collect();
    (bed, datagrams)
}

/// Data after sequence numbers that are alternately given up and missing.
fn alternating_gaps() -> (Bed, Vec<Bytes>) {
    let mut bed = Bed::new(&Config::default(), 0);
    let next = bed.next;
    for i in 0..130 {
        let packet = bed.data(next.plus(63 * i), i);
        bed.take(packet);
    }
    for i in (1..8_000).step_by(2) {
        let request =
            DropRequest { msgno: MsgNo::CONTROL, first: next.plus(i), last: next.plus(i) };
        let request = bed.control(Control::DropRequest(request), 0);
        bed.victim.handle_datagram(bed.now(), here(), request);
    }
    let datagrams = (0..COUNT).map(|i| bed.data(next.plus(8_191 + i), i)).collect();
    (bed, datagrams)
}

fn filtered() -> (Bed, Vec<Bytes>) {
    let config = Config::default().with_packet_filter("fec,cols:128,rows:128").expect("a filter");
    let bed = Bed::new(&config, 0);
    let datagrams = (0..COUNT).map(|i| bed.data(bed.next.plus(30_000 * (i / 4) + i), i)).collect();
    (bed, datagrams)
}

fn drops(range: impl Fn(u32) -> (u32, u32)) -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), 0);
    let request = |i| {
        let (first, last) = range(i);
        let request = DropRequest {
            msgno: MsgNo::CONTROL,
            first: bed.next.plus(first),
            last: bed.next.plus(last),
        };
        bed.control(Control::DropRequest(request), i)
    };
    let datagrams = (0..COUNT).map(request).collect();
    (bed, datagrams)
}

fn push(list: &mut LossListBuilder, first: SeqNo, last: SeqNo) {
    assert!(list.push(first, last));
}

fn naks(fill: impl Fn(&Bed, &mut LossListBuilder)) -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), FLIGHT);
    let mut list = LossListBuilder::new(364);
    fill(&bed, &mut list);
    let datagrams = (0..COUNT).map(|i| bed.control(Control::Nak(list.as_list()), i)).collect();
    (bed, datagrams)
}

fn overlapping() -> (Bed, Vec<Bytes>) {
    naks(|bed, list| {
        (0..182).for_each(|_| push(list, bed.theirs.minus(FLIGHT), bed.theirs.minus(1)));
    })
}

fn acks(says: impl Fn(&Bed, u32) -> (u32, SeqNo)) -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), FLIGHT);
    let link = AckLink { rtt_us: 20_000, rtt_var_us: 5_000, free_buffer: 8_192 };
    let rates = AckRates { packets_per_sec: 1_000, capacity_pps: 1_000, bytes_per_sec: Some(9) };
    let ack = |i| {
        let (number, next) = says(&bed, i);
        let ack = Ack::Full { number: AckNo::new(number), next, link, rates, arrivals: None };
        bed.control(Control::Ack(ack), i)
    };
    let datagrams = (0..COUNT).map(ack).collect();
    (bed, datagrams)
}

/// ACKs that acknowledge nothing, at retransmission timeouts of a sender of messages of which many
/// have expired.
fn expired() -> (Bed, Vec<Bytes>) {
    let config = Config::file().with_transmission(Transmission::Messages);
    let config = config.with_timed_requests(false);
    let mut bed = Bed::new(&config, 0);
    let next = bed.theirs;
    let ack = bed.control(Control::Ack(Ack::Light { next }), 0);
    bed.take(ack);
    bed.expire(EXPIRED);
    bed.interval = Duration::from_millis(500);
    let datagrams = (0..COUNT).map(|i| bed.control(Control::Ack(Ack::Light { next }), i)).collect();
    (bed, datagrams)
}

fn controls(make: impl Fn(u32) -> Control<'static>) -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), FLIGHT);
    let datagrams = (0..COUNT).map(|i| bed.control(make(i), i)).collect();
    (bed, datagrams)
}

/// The conclusion of the handshake, repeated during the session.
fn conclusions() -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), FLIGHT);
    let datagrams = vec![Bytes::from(bed.conclusion.clone()); COUNT as usize];
    (bed, datagrams)
}

/// The same conclusion, filled up with empty extensions.
fn long_conclusions() -> (Bed, Vec<Bytes>) {
    let bed = Bed::new(&Config::default(), FLIGHT);
    let mut conclusion = bed.conclusion.clone();
    while conclusion.len() < 1_468 {
        conclusion.extend_from_slice(&[0, 9, 0, 0]);
    }
    let datagrams = vec![Bytes::from(conclusion); COUNT as usize];
    (bed, datagrams)
}
