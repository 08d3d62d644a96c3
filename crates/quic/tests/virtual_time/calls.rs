//! Calls: protocols, several SRT connections in one QUIC connection, and their ends.

use punctual_netem::LinkConfig;
use punctual_proto::{CloseReason, Config, MaxBandwidth};
use punctual_quic::tls::TlsFailure;
use punctual_quic::{Event, Protocol, TransportConfig};
use punctual_units::Bitrate;

use crate::bed::{Bed, CALLER, LISTENER, MS};

fn link() -> LinkConfig {
    LinkConfig { delay: MS(20), ..LinkConfig::default() }
}

#[test]
fn a_stream_arrives_whole_and_on_time() {
    let config = Config::default().with_latency(MS(200)).expect("a latency");
    let mut bed = Bed::connected(1, &link(), &config);
    bed.stream(500, 1_316, MS(4));
    bed.run_for(MS(3_000));
    assert_eq!(bed.numbers(), (0..500).collect::<Vec<_>>());
    for (at, message) in &bed.ends[LISTENER].messages {
        assert_eq!(*at, message.due);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |seed| {
        let lossy = LinkConfig { loss: punctual_netem::Loss::Random(0.02), ..link() };
        let mut bed = Bed::connected(seed, &lossy, &Config::default());
        bed.stream(200, 1_316, MS(4));
        bed.run_for(MS(2_000));
        bed.sent
    };
    let first = run(3);
    assert!(first == run(3), "the datagrams differ");
    assert!(first != run(4), "the seed has no effect");
}

#[test]
fn losses_are_recovered_by_srt() {
    let lossy = LinkConfig { loss: punctual_netem::Loss::Random(0.05), ..link() };
    let config = Config::default().with_latency(MS(400)).expect("a latency");
    let mut bed = Bed::connected(5, &lossy, &config);
    bed.stream(2_000, 1_316, MS(2));
    bed.run_for(MS(6_000));
    assert_eq!(bed.numbers(), (0..2_000).collect::<Vec<_>>());
    assert!(bed.statistics(CALLER).packets_retransmitted > 50);
}

#[test]
fn a_burst_that_is_larger_than_the_queue_is_sent_whole() {
    let fast = MaxBandwidth::Absolute(Bitrate::from_mbps(100_000));
    let mut bed = Bed::connected(8, &link(), &Config::default().with_max_bandwidth(fast));
    bed.stream(400, 1_316, MS(0));
    bed.run_for(MS(1_000));
    assert_eq!(bed.numbers(), (0..400).collect::<Vec<_>>());
    assert_eq!(bed.statistics(CALLER).packets_retransmitted, 0);
    let end = &mut bed.ends[CALLER];
    let info = end.machine.quic().info(end.quic[0]).expect("it is connected");
    assert_eq!(info.datagrams_dropped, 0, "{info:?}");
    assert!(400 * 1_332 > TransportConfig::default().send_queue, "the burst is not larger");
}

#[test]
fn several_srt_connections_share_a_quic_connection() {
    let mut bed = Bed::connected(6, &link(), &Config::default());
    let remote = bed.ends[LISTENER].address;
    let end = &mut bed.ends[CALLER];
    let path = end.machine.path_to(remote).expect("the QUIC connection is there");
    for _ in 0..3 {
        let call = end.machine.srt().connect(bed.now, path, Config::default());
        end.srt.push(call.expect("the path can be called"));
    }
    bed.run_for(MS(1_000));
    assert_eq!(bed.ends[LISTENER].srt.len(), 4);
    assert_eq!(bed.ends[LISTENER].machine.quic().connection_count(), 1);
}

/// A program is killed and started again at once, while the listener has a place for one caller.
#[test]
fn a_restarted_caller_gets_in_within_two_seconds() {
    for seed in 0..100 {
        let config = Config::default().with_stream_id("news").expect("short");
        let mut bed = Bed::connected(seed, &link(), &config);
        bed.ends[LISTENER].machine.srt().limit_callers(Some(1));
        bed.stream(1 + seed % 40, 1_316, MS(5));
        bed.run_for(MS(200 + 53 * (seed % 21)));
        bed.restart_caller(10_000 + seed);
        let start = bed.now;
        bed.call(config, &[Protocol::SrtWithStreams, Protocol::Srt], &TransportConfig::default());
        while !bed.ends[CALLER].is_connected {
            bed.run_for(MS(10));
            assert!(bed.now - start <= MS(2_000), "seed {seed}: {:?}", bed.ends[CALLER].closed);
        }
        assert_eq!(bed.ends[LISTENER].closed, [CloseReason::Replaced], "seed {seed}");
    }
}

/// The end of a short stream arrives although a tenth of the packets is lost.
#[test]
fn the_end_of_a_short_stream_arrives() {
    for seed in 0..100 {
        let lossy = LinkConfig { loss: punctual_netem::Loss::Random(0.1), ..link() };
        let config = Config::default().with_latency(MS(1_000)).expect("a latency");
        let mut bed = Bed::connected(seed, &lossy, &config.with_linger(MS(3_000)));
        let count = 1 + seed * 7 % 120;
        bed.stream(count, 1_316, MS(3));
        bed.run_for(MS(3 * count));
        let (now, end) = (bed.now, &mut bed.ends[CALLER]);
        let id = end.srt[0];
        end.machine.srt().connection(now, id).expect("not released").close();
        bed.run_for(MS(5_000));
        assert_eq!(bed.numbers(), (0..count).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn ends_without_a_common_protocol_say_so() {
    let transport = TransportConfig::default();
    let mut bed = Bed::new(7, &link(), &transport);
    bed.listen(Config::default(), &[Protocol::Datagrams]);
    bed.call(Config::default(), &[Protocol::SrtWithStreams, Protocol::Srt], &transport);
    bed.run_for(MS(2_000));
    let expected = punctual_quic::QuicCloseReason::Tls(TlsFailure::NoCommonProtocol);
    let [Event::Closed(_, reason)] = &bed.ends[CALLER].quic_events[..] else {
        panic!("{:?}", bed.ends[CALLER].quic_events)
    };
    assert_eq!(*reason, expected);
    let [CloseReason::PathLost(text)] = &bed.ends[CALLER].closed[..] else {
        panic!("{:?}", bed.ends[CALLER].closed)
    };
    assert_eq!(**text, *expected.to_string());
}

#[test]
fn the_first_protocol_of_the_caller_that_the_listener_speaks_is_taken() {
    let transport = TransportConfig::default();
    let mut bed = Bed::new(8, &link(), &transport);
    bed.listen(Config::default(), &[Protocol::Srt]);
    bed.call(Config::default(), &[Protocol::SrtWithStreams, Protocol::Srt], &transport);
    bed.run_for(MS(1_000));
    assert_eq!(bed.ends[LISTENER].srt.len(), 1);
    let id = bed.ends[CALLER].quic[0];
    let info = bed.ends[CALLER].machine.quic().info(id).expect("it is there");
    assert_eq!(info.protocol, Some(Protocol::Srt));
}

#[test]
fn a_quic_connection_without_srt_is_closed_after_five_seconds() {
    let mut bed = Bed::connected(9, &link(), &Config::default());
    let (now, id) = (bed.now, bed.ends[CALLER].srt[0]);
    bed.ends[CALLER].machine.srt().connection(now, id).expect("not released").close();
    bed.run_for(MS(1_000));
    assert_eq!(bed.ends[LISTENER].machine.quic().connection_count(), 1);
    bed.run_for(MS(12_000));
    for end in &mut bed.ends {
        assert_eq!(end.machine.quic().connection_count(), 0);
    }
}

#[test]
fn a_peer_that_vanishes_ends_the_srt_connection() {
    let mut bed = Bed::connected(10, &link(), &Config::default());
    bed.links[LISTENER] = punctual_netem::Link::new(
        LinkConfig { loss: punctual_netem::Loss::Random(1.0), ..link() },
        1,
    );
    bed.run_for(MS(20_000));
    assert!(matches!(bed.ends[CALLER].closed[..], [CloseReason::Idle(_)]));
}
