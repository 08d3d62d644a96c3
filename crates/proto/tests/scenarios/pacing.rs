//! The rate of the sender: each limit holds over every second; and the packet pairs of the pacer.

use std::time::Duration;

use punctual_netem::{Loss, QueueLimit};
use punctual_proto::{BufferSize, Config, MaxBandwidth, SendOptions, SeqNo};
use punctual_units::Bitrate;
use punctual_wire::Control;

use crate::datagram::{Kind, control, data_header, is_data};
use crate::pair::{Pair, Side};
use crate::record::Record;
use crate::{MS, SECS, latency, link, lossy};

const MBPS: fn(u64) -> Bitrate = Bitrate::from_mbps;
/// Bytes that libsrt's rates count for a packet in addition to its payload; the link carries 16 of
/// them.
const OVERHEAD: usize = 44;

/// The departure of each data packet, and the bytes that it counts.
fn departures(record: &Record) -> Vec<(Duration, u64)> {
    let all = record.from(Side::Caller).into_iter();
    all.filter(|(_, datagram)| is_data(datagram))
        .map(|(at, datagram)| (at, (datagram.len() - 16 + OVERHEAD) as u64))
        .collect()
}

/// The largest and the smallest rate over any second of `departures` between `from` and `to`.
fn rates(departures: &[(Duration, u64)], from: Duration, to: Duration) -> (Bitrate, Bitrate) {
    let (mut most, mut least) = (0, u64::MAX);
    for (start, _) in departures.iter().filter(|(at, _)| *at >= from && *at + SECS(1) <= to) {
        let within = departures.iter().filter(|(at, _)| (*start..*start + SECS(1)).contains(at));
        let bytes: u64 = within.map(|(_, bytes)| bytes).sum();
        most = bytes.max(most);
        least = bytes.min(least);
    }
    (Bitrate::from_bytes_per_sec(most), Bitrate::from_bytes_per_sec(least))
}

/// The default options with a send buffer that keeps everything.
fn keeping_everything() -> Config {
    latency(120).with_send_drop_delay(None).with_send_buffer(BufferSize::Packets(100_000))
}

/// Streams messages of `size` bytes at `input` for eight seconds.
fn stream_at(pair: &mut Pair, input: Bitrate, size: usize) {
    let interval = input.time_for((size + OVERHEAD) as u64);
    let end = pair.now + SECS(8);
    while pair.now < end {
        pair.send(Side::Caller, vec![7; size], SendOptions::default()).expect("room");
        pair.run_for(interval);
    }
}

/// Sends `input` over a connection, and expects that `limit` is kept and used within 2 % over every
/// second: the credit for late wake-ups is 10 ms.
#[track_caller]
fn expect_rate(config: &Config, input: Bitrate, size: usize, limit: Bitrate) {
    for loss in [0.0, 0.05] {
        let mut pair = Pair::new(1, lossy(loss), link());
        pair.connect(config.clone(), config.clone());
        let record = pair.record();
        stream_at(&mut pair, input, size);
        let (most, least) = rates(&departures(&record), SECS(3), SECS(8));
        let percent = |rate: Bitrate| rate.as_bits_per_sec() * 100 / limit.as_bits_per_sec();
        assert!((98..=102).contains(&percent(most)), "{most} at most instead of {limit}");
        assert!((98..=102).contains(&percent(least)), "{least} at least instead of {limit}");
        let shown = pair.statistics(Side::Caller).max_bandwidth;
        assert!((99..=101).contains(&percent(shown)), "{shown} shown instead of {limit}");
    }
}

#[test]
fn an_absolute_limit_holds_for_originals_and_retransmissions_together() {
    for (limit, size) in [(MBPS(2), 1_316), (MBPS(2), 188), (MBPS(8), 1_316)] {
        let config = keeping_everything().with_max_bandwidth(MaxBandwidth::Absolute(limit));
        expect_rate(&config, MBPS(12), size, limit);
    }
}

#[test]
fn a_relative_limit_adds_the_overhead_to_the_configured_input() {
    for (overhead, limit) in [(5, 4_200_000), (25, 5_000_000), (100, 8_000_000)] {
        let config = keeping_everything()
            .with_max_bandwidth(MaxBandwidth::Relative)
            .with_input_bandwidth(MBPS(4))
            .with_overhead_bandwidth(overhead)
            .expect("in range");
        expect_rate(&config, MBPS(12), 1_316, Bitrate::from_bits_per_sec(limit));
    }
}

#[test]
fn a_relative_limit_follows_the_measured_input() {
    let config = keeping_everything().with_max_bandwidth(MaxBandwidth::Relative);
    for (least, input, limit) in [(0, 4, 5_000_000), (0, 8, 10_000_000), (8, 4, 10_000_000)] {
        let config = config.clone().with_min_input_bandwidth(MBPS(least));
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config.clone(), config);
        stream_at(&mut pair, MBPS(input), 1_316);
        let shown = pair.statistics(Side::Caller).max_bandwidth.as_bits_per_sec();
        assert!(shown.abs_diff(limit) < limit / 100, "{shown} instead of {limit}");

        // A burst in addition is kept to the limit.
        let record = pair.record();
        for _ in 0..2_000 {
            pair.send(Side::Caller, vec![7; 1_316], SendOptions::default()).expect("room");
        }
        let from = pair.elapsed();
        pair.run_for(MS(900));
        let bytes: u64 = departures(&record).iter().map(|(_, bytes)| bytes).sum();
        let rate = Bitrate::of(bytes, pair.elapsed() - from).as_bits_per_sec();
        assert!(rate < limit * 104 / 100, "{rate} instead of {limit}");
    }
}

#[test]
fn the_measured_input_is_that_of_the_last_second() {
    let config = keeping_everything().with_max_bandwidth(MaxBandwidth::Relative);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config);
    for (input, limit) in [(2, 2_500_000), (9, 11_250_000), (3, 3_750_000)] {
        stream_at(&mut pair, MBPS(input), 1_316);
        let shown = pair.statistics(Side::Caller).max_bandwidth.as_bits_per_sec();
        assert!(shown.abs_diff(limit) < limit / 100, "{shown} instead of {limit}");
    }
}

/// Found by random exploration: the limit followed the input, and the input was the rate at which a
/// full buffer accepted messages, down to nothing.
#[test]
fn a_full_buffer_does_not_lower_a_relative_limit() {
    let config = latency(400)
        .with_too_late_drop(false)
        .with_max_bandwidth(MaxBandwidth::Relative)
        .with_send_buffer(BufferSize::Packets(64));
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config);
    let stream = |pair: &mut Pair, seconds: u32| {
        for _ in 0..200 * seconds {
            // A live source does not wait.
            let _ = pair.send_next(Side::Caller);
            pair.run_for(MS(5));
        }
    };
    stream(&mut pair, 3);
    let before = pair.statistics(Side::Caller).max_bandwidth;
    for _ in 0..5 {
        let healthy = link();
        for side in [Side::Caller, Side::Listener] {
            pair.set_link(side, healthy.clone().with_loss(Loss::Random(0.9)).expect("a share"));
        }
        stream(&mut pair, 2);
        for side in [Side::Caller, Side::Listener] {
            pair.set_link(side, healthy.clone());
        }
        stream(&mut pair, 1);
    }
    stream(&mut pair, 3);
    let after = pair.statistics(Side::Caller);
    assert!(after.max_bandwidth >= before, "{before} before, {} after", after.max_bandwidth);
    assert!(after.send_buffer_packets < 10, "{} packets wait", after.send_buffer_packets);
}

/// Streams `count` messages of `size` bytes, one every `interval`, and expects that none waits.
#[track_caller]
fn expect_no_wait(pair: &mut Pair, size: usize, interval: Duration, count: usize) {
    for n in 0..count {
        pair.send(Side::Caller, vec![7; size], SendOptions::default()).expect("room");
        pair.run_for(interval);
        let waits = pair.statistics(Side::Caller).send_buffer_span;
        assert!(waits < MS(60), "message {n} of {size} bytes: {waits:?} wait");
    }
}

/// Found by random exploration: with the pace of a packet of mean size, small messages waited for
/// minutes until the mean had followed, since it follows the packets that are sent.
#[test]
fn messages_that_become_small_do_not_wait_under_a_relative_limit() {
    let config = latency(120).with_max_bandwidth(MaxBandwidth::Relative);
    for sizes in [&[24][..], &[1_316, 24]] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config.clone(), config.clone());
        for &size in sizes {
            expect_no_wait(&mut pair, size, MS(10), 1_000);
        }
        assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0);
    }
}

#[test]
fn a_stream_continues_after_a_pause_under_a_relative_limit() {
    let config = latency(120).with_max_bandwidth(MaxBandwidth::Relative);
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config);
    for pause in [MS(990), SECS(3), SECS(600)] {
        expect_no_wait(&mut pair, 1_316, MS(2), 2_000);
        pair.run_for(pause);
    }
    expect_no_wait(&mut pair, 1_316, MS(2), 2_000);
    assert_eq!(pair.statistics(Side::Caller).packets_send_dropped, 0);
}

#[test]
fn without_a_limit_a_burst_is_sent_at_ten_gigabits_per_second() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(keeping_everything(), keeping_everything());
    let record = pair.record();
    for _ in 0..1_000 {
        assert!(pair.send_next(Side::Caller));
    }
    pair.run_for(MS(500));
    pair.assert_complete(Side::Caller);
    let departures = departures(&record);
    let took = departures[999].0 - departures[0].0;
    // 1000 packets of 1360 bytes at 10 Gb/s are 1.09 ms, of which the last 0.5 ms are sent at once.
    assert!((Duration::from_micros(580)..MS(2)).contains(&took), "{took:?}");
}

#[test]
fn every_sixteenth_packet_starts_a_probe_pair() {
    let config = keeping_everything().with_max_bandwidth(MaxBandwidth::Absolute(MBPS(8)));
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config);
    let record = pair.record();
    for _ in 0..500 {
        assert!(pair.send_next(Side::Caller));
    }
    pair.run_for(SECS(1));
    let sent: Vec<(Duration, SeqNo)> = record
        .from(Side::Caller)
        .iter()
        .filter_map(|(at, datagram)| Some((*at, data_header(datagram)?.seq)))
        .collect();
    assert_eq!(sent.len(), 500);
    let period = MBPS(8).time_for(1_360);
    // The second packet after a pause may be sent ahead of its time.
    for pair in sent.windows(2).skip(2) {
        let gap = pair[1].0 - pair[0].0;
        match pair[0].1.value() % 16 {
            0 => assert_eq!(gap, Duration::ZERO, "{} and the next are a pair", pair[0].1),
            1 => assert_eq!(gap, period * 2, "the interval of the pair follows"),
            _ => assert_eq!(gap, period),
        }
    }
}

#[test]
fn probe_pairs_show_the_capacity_of_the_link() {
    for mbps in [6, 20, 100] {
        // The link counts 16 bytes of headers per packet, the estimate a full MSS.
        let narrow = link().with_rate(Some(MBPS(mbps))).with_queue(QueueLimit::Unlimited);
        let config = latency(120).with_max_bandwidth(MaxBandwidth::Relative);
        let mut pair = Pair::symmetric(1, narrow);
        pair.connect(config.clone(), config);
        for _ in 0..40 {
            // A probe pair needs a second packet that waits.
            for _ in 0..32 {
                assert!(pair.send_next(Side::Caller));
            }
            pair.run_for(MS(100));
        }
        for side in [Side::Caller, Side::Listener] {
            let shown = pair.statistics(side).link_capacity.as_bits_per_sec();
            let expected = mbps * 1_000_000 * 1_500 / 1_332;
            let off = shown.abs_diff(expected) * 100 / expected;
            assert!(off < 5, "{side:?}: {shown} instead of {expected}");
        }
    }
}

#[test]
fn the_receiver_reports_the_rate_at_which_packets_arrive() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    let record = pair.record();
    pair.stream(Side::Caller, 1_000, MS(2));
    let (_, datagram) = record.of_kind(Side::Listener, Kind::Ack).pop().expect("ACKs");
    let Some(Control::Ack(ack)) = control(&datagram) else { panic!("no ACK") };
    let rates = ack.rates().expect("a full ACK");
    assert_eq!(rates.packets_per_sec, 500);
    assert_eq!(rates.bytes_per_sec, Some(500 * 1_360));
}
