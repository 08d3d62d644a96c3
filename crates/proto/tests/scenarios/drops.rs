//! Messages that are given up: too late at the receiver, too old at the sender, or past their time
//! to live. Each is skipped in time and counted once.

use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{Config, MaxBandwidth, SendError, SendOptions, SeqNo};
use punctual_units::Bitrate;
use punctual_wire::{Control, MsgNo};

use crate::datagram::{Kind, control, data_header, kind};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

/// A connected pair on perfect links.
fn connected(config: &Config) -> Pair {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config.clone());
    pair
}

/// Drops all packets of the messages with these numbers, counted from 0.
fn lose_messages(pair: &mut Pair, numbers: std::ops::Range<u32>) {
    pair.drop_where(move |_, datagram| {
        // Message numbers count from 1.
        data_header(datagram).is_some_and(|header| numbers.contains(&(header.msgno.value() - 1)))
    });
}

fn all_but(count: u32, lost: std::ops::Range<u32>) -> Vec<u32> {
    (0..count).filter(|number| !lost.contains(number)).collect()
}

fn with_ttl(ms: u64) -> SendOptions {
    SendOptions { ttl: Some(MS(ms)), ..SendOptions::default() }
}

#[test]
fn the_receiver_skips_missing_messages_when_the_next_one_is_due() {
    let mut pair = connected(&latency(120));
    lose_messages(&mut pair, 50..53);
    pair.stream(Side::Caller, 200, MS(2));
    pair.run_for(MS(500));
    assert_eq!(pair.delivered(Side::Caller), all_but(200, 50..53));
    assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(130)));
    for delivery in &pair.listener.received {
        let expected = if delivery.message.msgno.value() == 54 { 3 } else { 0 };
        assert_eq!(delivery.message.lost_before, expected);
    }
    let receiver = pair.statistics(Side::Listener);
    assert_eq!(receiver.packets_receive_lost, 3);
    assert_eq!(receiver.packets_receive_dropped, 3);
    assert_eq!(receiver.bytes_receive_dropped, 3 * 1_360);
    assert_eq!(receiver.packets_received_unique, 197);
    let sender = pair.statistics(Side::Caller);
    assert_eq!(sender.packets_send_dropped, 0, "the receiver acknowledged what it gave up");
    assert_eq!((sender.flight_size, sender.send_buffer_packets), (0, 0));
}

#[test]
fn a_packet_that_comes_after_it_was_skipped_is_belated() {
    let mut pair = connected(&latency(120));
    let held = std::rc::Rc::new(std::cell::RefCell::new(None));
    let hold = std::rc::Rc::clone(&held);
    pair.drop_where(move |_, datagram| {
        let lost = data_header(datagram).is_some_and(|header| header.msgno.value() == 51);
        if lost {
            *hold.borrow_mut() = Some(datagram.to_vec());
        }
        lost
    });
    pair.stream(Side::Caller, 200, MS(2));
    let remote = pair.caller.address;
    let datagram = held.borrow_mut().take().expect("it was sent");
    pair.inject(Side::Listener, remote, datagram);
    pair.run_for(MS(500));
    assert_eq!(pair.delivered(Side::Caller), all_but(200, 50..51));
    let receiver = pair.statistics(Side::Listener);
    assert_eq!((receiver.packets_belated, receiver.packets_duplicate), (1, 0));
    // It was due 10 + 120 ms after its origin time of 100 ms, and came at 400 ms; the weight of a
    // sample is a fifth.
    assert_eq!(receiver.belated_time, MS(170) / 5);
}

#[test]
fn the_sender_drops_messages_that_are_older_than_its_limit() {
    // The limit is the larger of latency + delay and one second, plus 20 ms.
    for (ms, delay, age) in [
        (120, Some(Duration::ZERO), 1_020),
        (120, Some(MS(500)), 1_020),
        (2_000, Some(Duration::ZERO), 2_020),
        (900, Some(MS(500)), 1_420),
    ] {
        let mut pair = connected(&latency(ms).with_send_drop_delay(delay));
        pair.set_link(Side::Listener, lossy(1.0));
        pair.stream(Side::Caller, 10, MS(100));
        let first = pair.caller.sent[0];
        pair.run_for(first + MS(age) - pair.now);
        assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0, "at {age} ms");
        pair.run_for(Duration::from_nanos(1));
        let after = pair.statistics(Side::Caller);
        assert_eq!(after.packets_send_dropped, 1, "just after {age} ms");
        assert_eq!(after.bytes_send_dropped, 1_360);
        pair.run_for(MS(900));
        let last = pair.statistics(Side::Caller);
        assert_eq!(last.packets_send_dropped, 10);
        assert_eq!((last.flight_size, last.send_buffer_packets), (0, 0));
    }
}

#[test]
fn the_sender_drops_nothing_if_either_end_does_not_drop() {
    let never = latency(120).with_send_drop_delay(None);
    let unskipping = latency(120).with_too_late_drop(false);
    let untimed = latency(120).with_tsbpd(false);
    for (caller, listener, lossless) in [
        (untimed.clone(), latency(120), true),
        (latency(120), untimed, true),
        (never.clone(), latency(120), false),
        (latency(120), unskipping.clone(), true),
        (unskipping.clone(), unskipping, true),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(caller, listener);
        pair.set_link(Side::Caller, lossy(1.0));
        pair.stream(Side::Caller, 200, MS(20));
        let dark = pair.statistics(Side::Caller);
        assert_eq!((dark.packets_send_dropped, dark.send_buffer_packets), (0, 200));
        pair.set_link(Side::Caller, link());
        pair.stream(Side::Caller, 200, MS(20));
        pair.run_for(SECS(1));
        let receiver = pair.statistics(Side::Listener);
        let delivered = pair.delivered(Side::Caller);
        assert_eq!(delivered.len() as u64 + receiver.packets_receive_dropped, 400);
        assert!(delivered.ends_with(&(200..400).collect::<Vec<_>>()));
        assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0);
        if lossless {
            assert_eq!(delivered.len(), 400, "late, but all of them");
        }
    }
}

#[test]
fn without_too_late_drop_the_receiver_never_skips() {
    let config = latency(120).with_too_late_drop(false);
    let mut pair = connected(&config);
    let heals = pair.now + SECS(3);
    pair.tap(move |now, _, datagram| {
        let lost = data_header(&datagram).is_some_and(|header| header.msgno.value() == 51);
        if lost && now < heals { Vec::new() } else { vec![datagram] }
    });
    pair.stream(Side::Caller, 2_000, MS(2));
    pair.run_for(SECS(1));
    assert_eq!(pair.delivered(Side::Caller).len(), 2_000);
    let delays = pair.delays(Side::Caller);
    assert!(delays[..50].iter().all(|&delay| delay == MS(130)));
    assert!(delays[50] > MS(2_800) && delays[51] > MS(2_800), "all wait for the missing one");
    assert_eq!(delays.last(), Some(&MS(130)));
    assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 0);
}

#[test]
fn an_expired_message_is_announced_and_skipped() {
    for too_late_drop in [true, false] {
        let mut pair = connected(&latency(500).with_too_late_drop(too_late_drop));
        let seen = std::rc::Rc::new(std::cell::RefCell::new(Vec::new()));
        let writer = std::rc::Rc::clone(&seen);
        pair.drop_where(move |_, datagram| {
            if let Some(Control::DropRequest(request)) = control(datagram) {
                writer.borrow_mut().push(request);
            }
            data_header(datagram).is_some_and(|header| header.msgno.value() == 51)
        });
        for number in 0..200 {
            let options = if number == 50 { with_ttl(60) } else { with_ttl(10_000) };
            pair.send_next_with(Side::Caller, options).expect("room");
            pair.run_for(MS(2));
        }
        let announced = seen.borrow().clone();
        pair.run_for(SECS(1));
        assert_eq!(pair.delivered(Side::Caller), all_but(200, 50..51));
        assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(510)));
        let seq = pair.listener.received[49].message.seq.next();
        assert!(!announced.is_empty());
        assert_eq!(announced[0].msgno, MsgNo::new(51));
        assert!(announced.iter().all(|request| (request.first, request.last) == (seq, seq)));
        let sender = pair.statistics(Side::Caller);
        assert_eq!((sender.packets_send_dropped, sender.bytes_send_dropped), (1, 1_360));
        assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 1);
    }
}

#[test]
fn a_lost_drop_request_is_repeated_at_the_receivers_nak() {
    for too_late_drop in [true, false] {
        let mut pair = connected(&latency(500).with_too_late_drop(too_late_drop));
        let mut announcements = 0;
        pair.drop_where(move |_, datagram| {
            if kind(datagram) == Kind::DropRequest {
                announcements += 1;
                return announcements <= 2;
            }
            data_header(datagram).is_some_and(|header| header.msgno.value() == 51)
        });
        for number in 0..200 {
            let options = if number == 50 { with_ttl(60) } else { SendOptions::default() };
            pair.send_next_with(Side::Caller, options).expect("room");
            pair.run_for(MS(2));
        }
        pair.run_for(SECS(1));
        assert_eq!(pair.delivered(Side::Caller), all_but(200, 50..51));
        assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(510)));
        assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 1);
        assert_eq!(pair.statistics(Side::Caller).flight_size, 0);
    }
}

#[test]
fn messages_that_expire_before_they_are_sent_are_never_sent() {
    // 20 packets per second: each waits 50 ms for the one before it.
    let limit = MaxBandwidth::Absolute(Bitrate::from_bytes_per_sec(20 * 1_360));
    let mut pair = connected(&latency(120).with_max_bandwidth(limit));
    for _ in 0..100 {
        pair.send_next_with(Side::Caller, with_ttl(100)).expect("room");
        pair.run_for(MS(10));
    }
    pair.run_for(MS(200));
    let sender = pair.statistics(Side::Caller);
    assert!((18..26).contains(&sender.packets_sent_unique), "{}", sender.packets_sent_unique);
    // Some expire between their transmission and the ACK.
    assert!((74..=100).contains(&sender.packets_send_dropped), "{}", sender.packets_send_dropped);
    assert_eq!(sender.packets_retransmitted, 0);
    assert_eq!(sender.send_buffer_packets, 0);
    // Later messages show the receiver that the last ones are missing.
    pair.run_for(SECS(1));
    for _ in 0..5 {
        assert!(pair.send_next(Side::Caller));
        pair.run_for(MS(60));
    }
    pair.run_for(SECS(1));
    let delivered = pair.delivered(Side::Caller).len() as u64;
    assert_eq!(delivered, sender.packets_sent_unique + 5);
    assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 105 - delivered);
}

#[test]
fn a_message_that_arrives_before_its_time_to_live_ends_is_not_dropped() {
    for seed in 0..4 {
        let mut pair = Pair::symmetric(seed, lossy(0.05));
        pair.connect(latency(400), latency(400));
        for _ in 0..1_000 {
            pair.send_next_with(Side::Caller, with_ttl(350)).expect("room");
            pair.run_for(MS(2));
        }
        pair.run_for(SECS(1));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0);
    }
}

/// Under losses, outages, a short time to live and a slow link together.
#[test]
fn each_message_is_delivered_or_counted_as_dropped() {
    for seed in 0..6 {
        let link =
            LinkConfig { loss: lossy(0.1).loss, ..link() }.with_rate(Some(Bitrate::from_mbps(6)));
        let mut pair = Pair::symmetric(seed, link.clone());
        pair.connect(latency(80), latency(80));
        for round in 0..8 {
            for number in 0..250 {
                let ttl = if number % 3 == 0 { with_ttl(40) } else { SendOptions::default() };
                pair.send_next_with(Side::Caller, ttl).expect("room");
                pair.run_for(MS(2));
            }
            let dark = MS(150 * round);
            pair.black_out(&[Side::Caller, Side::Listener], dark);
        }
        pair.set_link(Side::Caller, crate::link());
        pair.set_link(Side::Listener, crate::link());
        pair.run_for(SECS(2));
        pair.stream(Side::Caller, 100, MS(2));
        pair.run_for(SECS(1));
        let delivered = pair.delivered(Side::Caller);
        let receiver = pair.statistics(Side::Listener);
        assert!(delivered.ends_with(&(2_000..2_100).collect::<Vec<_>>()));
        assert_eq!(delivered.len() as u64 + receiver.packets_receive_dropped, 2_100);
        assert_eq!(receiver.packets_received_unique, delivered.len() as u64);
        let lost_before: u64 =
            pair.listener.received.iter().map(|d| u64::from(d.message.lost_before)).sum();
        assert_eq!(lost_before, receiver.packets_receive_dropped);
        let first = pair.listener.received[0].message.seq;
        let number = |seq: SeqNo| seq.distance_from(first) as u32;
        assert!(
            delivered
                .iter()
                .zip(&pair.listener.received)
                .all(|(&n, d)| { n - delivered[0] == number(d.message.seq) })
        );
    }
}

#[test]
fn a_full_send_buffer_refuses_messages_and_reports_room() {
    let config = latency(120).with_send_buffer(punctual_proto::BufferSize::Packets(50));
    let mut pair = connected(&config);
    pair.set_link(Side::Listener, lossy(1.0));
    for _ in 0..50 {
        assert!(pair.send_next(Side::Caller));
    }
    let refused = pair.send_next_with(Side::Caller, SendOptions::default());
    assert_eq!(refused, Err(SendError::Full));
    assert_eq!(pair.caller.writable, 0);
    pair.set_link(Side::Listener, link());
    pair.run_for(MS(100));
    assert_eq!(pair.caller.writable, 1);
    assert!(pair.send_next(Side::Caller));
    pair.run_for(MS(500));
    assert_eq!(pair.delivered(Side::Caller).len(), 51);
    assert_eq!(pair.caller.writable, 1, "one event");
}

/// With a round trip nearly as long as half of the latency, the sender drops packets that arrived
/// behind a missing one, and sees no loss that the receiver acknowledges.
#[test]
fn a_sender_knows_what_a_receiver_of_this_implementation_never_delivers() {
    let mut differs = 0;
    for (round_trip, loss, ms) in [(600, 0.02, 1_500), (500, 0.05, 1_250), (20, 0.2, 50)] {
        for seed in 0..3 {
            let lossy = lossy(loss).with_delay(MS(round_trip / 2));
            let mut pair = Pair::symmetric(seed, lossy);
            pair.connect(latency(ms), latency(ms));
            pair.stream(Side::Caller, 3_000, MS(3));
            pair.run_for(MS(ms) + SECS(5));
            let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
            let sender = pair.statistics(Side::Caller);
            assert_eq!(sender.unrecovered_at_peer(), Some(dropped), "seed {seed}, {ms} ms");
            differs += u64::from(sender.packets_send_dropped != dropped);
        }
    }
    assert!(differs > 0, "too easy");
    let mut pair = Pair::symmetric(1, lossy(0.1));
    pair.connect(latency(60), latency(60).with_timed_requests(false));
    pair.stream(Side::Caller, 500, MS(2));
    assert_eq!(pair.statistics(Side::Caller).unrecovered_at_peer(), None, "it does not report");
}
