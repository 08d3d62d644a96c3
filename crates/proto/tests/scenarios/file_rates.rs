//! The rates of files over links that lose packets, and the packets that they take.

use std::ops::Range;
use std::time::Duration;

use punctual_netem::{LinkConfig, Loss, QueueLimit};
use punctual_proto::{Config, MaxBandwidth, Statistics};
use punctual_units::Bitrate;
use punctual_wire::{Extension, HsFlags};

use crate::MS;
use crate::datagram::{Kind, edit_handshake, kind};
use crate::files::{connected, contents, read, run_until_read, write_all};
use crate::pair::{Pair, Side};

/// A link of 100 Mb/s with a queue of 1,000 packets, this round-trip time in ms, and this share of
/// lost packets.
fn line(round_trip: u64, loss: f64) -> LinkConfig {
    LinkConfig::default()
        .with_delay(MS(round_trip) / 2)
        .with_rate(Some(Bitrate::from_mbps(100)))
        .with_queue(QueueLimit::Packets(1_000))
        .with_overhead(28)
        .with_loss(Loss::Random(loss))
        .expect("a share")
}

/// The rate at which a file of `len` bytes is transferred, payload only.
fn goodput(mut pair: Pair, seed: u64, len: usize) -> Bitrate {
    transfer(&mut pair, seed, len).0
}

/// Transfers a file of `len` bytes. Returns the rate, payload only, and the sender's statistics.
fn transfer(pair: &mut Pair, seed: u64, len: usize) -> (Bitrate, Statistics) {
    let data = contents(len, seed);
    let start = pair.elapsed();
    write_all(pair, &data, || usize::MAX);
    run_until_read(pair, len);
    let time = pair.elapsed() - start;
    assert!(read(pair) == data, "not the same bytes");
    let statistics = pair.statistics(Side::Caller);
    let rate = Bitrate::of(len as u64, time);
    println!(
        "seed {seed}: {rate}, {} retransmissions in {} packets",
        statistics.packets_retransmitted, statistics.packets_sent
    );
    (rate, statistics)
}

/// 200 ms and 0.1 %: an intercontinental link.
#[test]
fn a_long_lossy_link_carries_as_much_as_with_libsrts_algorithm() {
    for seed in 0..2 {
        let pair = connected(seed, line(200, 0.001), &Config::file());
        let rate = goodput(pair, seed, 200_000_000);
        assert!(rate > Bitrate::from_mbps(50), "{rate}");
    }
}

/// libsrt's receiver of files sends one NAK for a loss. If that or the retransmission is lost, only
/// the ACK tells, and only for the oldest packet.
#[test]
fn a_peer_that_reports_each_loss_once_costs_few_retransmissions() {
    for seed in 0..2 {
        let mut pair = Pair::symmetric(seed, line(200, 0.02));
        let own = Config::file().with_option("ratecontrol", "file").expect("an option");
        pair.connect(own, Config::file().with_timed_requests(false));
        let (rate, statistics) = transfer(&mut pair, seed, 30_000_000);
        assert!(rate > Bitrate::from_mbps(25), "{rate}");
        let share = statistics.packets_retransmitted as f64 / statistics.packets_sent as f64;
        assert!(share < 0.04, "{share}");
    }
}

/// A pair over this link. The listener neither counts its arrivals nor repeats its NAKs, as libsrt.
fn to_a_peer_that_does_not_count(seed: u64, link: LinkConfig) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    pair.tap(|_, _, datagram| {
        vec![edit_handshake(datagram, |handshake| {
            for extension in &mut handshake.extensions {
                if let Extension::HsReq(hs) | Extension::HsRsp(hs) = extension {
                    let flags = hs.flags.bits() & !HsFlags::COUNTED_ARRIVALS.bits();
                    hs.flags = HsFlags::from_bits(flags);
                }
            }
        })]
    });
    pair.connect(Config::file(), Config::file().with_timed_requests(false));
    pair
}

/// The sender infers from NAKs and ACKs what has arrived.
#[test]
fn a_peer_that_does_not_count_arrivals_gets_a_file_by_delay() {
    for (round_trip, loss, least) in [(30, 0.01, 75), (200, 0.001, 70), (200, 0.02, 60)] {
        for seed in 0..3 {
            let mut pair = to_a_peer_that_does_not_count(seed, line(round_trip, loss));
            let (rate, statistics) = transfer(&mut pair, seed, 50_000_000);
            assert!(rate > Bitrate::from_mbps(least), "{round_trip} ms, {loss}: {rate}");
            let share = statistics.packets_retransmitted as f64 / statistics.packets_sent as f64;
            assert!(share < 0.01 + 2.0 * loss, "{share}");
        }
    }
}

/// The longest queueing delay at the start of a file over a link with a queue without an end, if
/// the listener reports this multiple of the link's capacity.
fn overshoot(round_trip: u64, multiple: u32) -> Duration {
    let link = line(round_trip, 0.0).with_queue(QueueLimit::Packets(100_000));
    let mut pair = Pair::symmetric(1, link);
    pair.tap(move |_, side, mut datagram| {
        if side == Side::Listener && kind(&datagram) == Kind::Ack && datagram.len() >= CAPACITY.end
        {
            let word: [u8; 4] = datagram[CAPACITY].try_into().expect("four bytes");
            let capacity = u32::from_be_bytes(word) * multiple;
            datagram[CAPACITY].copy_from_slice(&capacity.to_be_bytes());
        }
        vec![datagram]
    });
    pair.connect(Config::file(), Config::file());
    let mut data = contents(60_000_000, 1);
    let delays = (0..400).map(|_| {
        let _ = pair.write(Side::Caller, &mut data);
        pair.run_for(MS(10));
        pair.statistics(Side::Caller).queueing_delay
    });
    delays.max().unwrap_or_default()
}

/// The reported capacity in a full ACK: the sixth word behind the header (draft section 3.2.4).
const CAPACITY: Range<usize> = 36..40;

/// A token bucket lets packet pairs through together, though it carries much less.
#[test]
fn a_capacity_ten_times_too_high_at_most_doubles_the_overshoot() {
    for round_trip in [30, 100, 200] {
        let [unknown, right, false_one] = [0, 1, 10].map(|times| overshoot(round_trip, times));
        println!("{round_trip} ms: {unknown:?} without a report, {right:?}, {false_one:?}");
        assert!(false_one <= 2 * unknown, "{round_trip} ms: {false_one:?}, not {unknown:?}");
        assert!(round_trip < 100 || right < MS(50), "{round_trip} ms: {right:?}");
    }
}

/// Hosts that poll the network every 200 µs get packets in batches.
#[test]
fn a_link_that_loses_1_percent_carries_a_file_at_75_percent_of_its_rate() {
    for (grain, seed) in [(None, 0), (None, 1), (Some(MS(1) / 5), 2), (Some(MS(1) / 5), 3)] {
        let mut pair = connected(seed, line(30, 0.01), &Config::file());
        pair.grain = grain;
        let rate = goodput(pair, seed, 50_000_000);
        assert!(rate > Bitrate::from_mbps(75), "{rate}, polled every {grain:?}");
    }
}

/// Packets of one window arrive at one time there, and so do both packets of a probe pair.
#[test]
fn a_lossy_link_without_a_rate_limit_carries_a_small_file_fast() {
    for seed in 0..4 {
        let pair = connected(seed, line(30, 0.01).with_rate(None), &Config::file());
        let rate = goodput(pair, seed, 8_000_000);
        assert!(rate > Bitrate::from_mbps(40), "{rate}");
    }
}

#[test]
fn losses_before_the_peer_reports_a_rate_do_not_slow_a_file_down() {
    for lost in [1, 2, 9, 20] {
        let mut pair = connected(lost, line(30, 0.0), &Config::file());
        let mut packets = 0;
        pair.drop_where(move |side, datagram| {
            let is_data = side == Side::Caller && kind(datagram) == Kind::Data;
            packets += u64::from(is_data);
            is_data && packets == lost
        });
        let rate = goodput(pair, lost, 50_000_000);
        assert!(rate > Bitrate::from_mbps(75), "{rate} when packet {lost} is lost");
    }
}

#[test]
fn the_reported_capacity_is_the_links_at_every_polling_interval() {
    for (grain, share) in [(None, 1), (Some(MS(1) / 10), 5), (Some(MS(1) / 2), 3)] {
        let mut pair = connected(7, line(30, 0.005), &Config::file());
        pair.grain = grain;
        let data = contents(20_000_000, 7);
        write_all(&mut pair, &data, || usize::MAX);
        run_until_read(&mut pair, data.len());
        for side in [Side::Caller, Side::Listener] {
            let capacity = pair.statistics(side).link_capacity;
            let within = Bitrate::from_mbps(100 * share / (share + 2))
                ..Bitrate::from_mbps(100 * (share + 2) / share);
            assert!(within.contains(&capacity), "{capacity} at {side:?}, polled every {grain:?}");
        }
    }
}

/// Without a repeated NAK, the receiver would wait for the sender's retransmission timeout, and
/// everything in flight would come twice.
#[test]
fn a_lost_retransmission_is_reported_again_and_repeated_alone() {
    // Half of the link's capacity, so that nothing else is lost.
    let limit = MaxBandwidth::Absolute(Bitrate::from_mbps(50));
    let mut pair = connected(1, line(30, 0.0), &Config::file().with_max_bandwidth(limit));
    let (mut packets, mut retransmissions) = (0, 0);
    pair.drop_where(move |side, datagram| {
        let kind = if side == Side::Caller { kind(datagram) } else { Kind::Other };
        packets += u32::from(kind == Kind::Data);
        retransmissions += u32::from(kind == Kind::Retransmission);
        kind == Kind::Data && packets == 2_000
            || kind == Kind::Retransmission && retransmissions <= 2
    });
    let data = contents(10_000_000, 1);
    write_all(&mut pair, &data, || usize::MAX);
    run_until_read(&mut pair, data.len());
    assert!(pair.statistics(Side::Listener).packets_requested_again >= 1);
    let again = pair.statistics(Side::Caller).packets_retransmitted;
    assert!((3..12).contains(&again), "{again} retransmissions");
}
