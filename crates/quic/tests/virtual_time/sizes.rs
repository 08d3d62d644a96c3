//! Paths whose MTU is small, or becomes smaller while a stream runs.

use punctual_netem::{Link, LinkConfig};
use punctual_proto::{Config, SendError};
use punctual_quic::{Protocol, TransportConfig};

use crate::bed::{Bed, CALLER, LISTENER, MS};

/// The UDP payload of a packet with an IP MTU of `mtu` bytes.
fn link(mtu: usize) -> LinkConfig {
    LinkConfig { delay: MS(20), mtu: Some(mtu - 28), ..LinkConfig::default() }
}

fn payload(bed: &mut Bed, side: usize) -> usize {
    let id = bed.ends[side].srt[0];
    bed.ends[side].machine.srt().connections().get(id).expect("it is there").info().max_payload
}

#[test]
fn seven_transport_packets_fit_at_once_on_ethernet() {
    let mut bed = Bed::connected(1, &link(1_500), &Config::default());
    assert_eq!(payload(&mut bed, CALLER), 1_316);
    let id = bed.ends[CALLER].quic[0];
    let info = bed.ends[CALLER].machine.quic().info(id).expect("it is there");
    assert!(info.largest_datagram.is_some_and(|largest| largest >= 1_332), "{info:?}");
}

#[test]
fn a_caller_that_knows_of_a_small_path_agrees_on_a_smaller_payload() {
    let transport = TransportConfig { initial_mtu: 1_200, ..TransportConfig::default() };
    let mut bed = Bed::new(2, &link(1_280), &transport);
    bed.listen(Config::default(), &[Protocol::Srt]);
    bed.call(Config::default(), &[Protocol::Srt], &transport);
    bed.run_for(MS(200));
    let largest = payload(&mut bed, CALLER);
    assert!((1_128..1_316).contains(&largest), "{largest}");
    bed.stream(200, 1_128, MS(2));
    bed.run_for(MS(1_500));
    assert_eq!(bed.numbers().len(), 200);
}

#[test]
fn a_path_that_becomes_smaller_loses_nothing_between_two_of_our_ends() {
    let config = Config::default().with_latency(MS(1_000)).expect("a latency");
    let mut bed = Bed::connected(3, &link(1_500), &config);
    // 5 Mb/s.
    bed.stream(9_000, 1_316, std::time::Duration::from_micros(2_106));
    bed.run_for(MS(8_000));
    for direction in [CALLER, LISTENER] {
        let config = LinkConfig { overhead: 28, ..link(1_280) };
        bed.links[direction] = Link::new(config, 7);
    }
    bed.run_for(MS(14_000));
    let id = bed.ends[CALLER].quic[0];
    let info = bed.ends[CALLER].machine.quic().info(id).expect("it is there");
    assert_eq!(info.black_holes, 1, "{info:?}");
    assert!(info.messages_sent > 4_000, "{info:?}");
    assert_eq!(bed.ends[CALLER].send_error, None);
    assert_eq!(bed.numbers().len(), 9_000, "{info:?} {:?}", bed.statistics(LISTENER));
}

#[test]
fn a_path_that_becomes_smaller_limits_messages_for_other_peers() {
    let transport = TransportConfig::default();
    let mut bed = Bed::new(4, &link(1_500), &transport);
    bed.listen(Config::default(), &[Protocol::Srt]);
    bed.call(Config::default(), &[Protocol::Srt], &transport);
    bed.run_for(MS(500));
    bed.stream(3_000, 1_316, MS(2));
    bed.run_for(MS(2_000));
    for direction in [CALLER, LISTENER] {
        let config = LinkConfig { overhead: 28, ..link(1_280) };
        bed.links[direction] = Link::new(config, 7);
    }
    bed.run_for(MS(5_000));
    // The application gets an error with the smaller size.
    let error = bed.ends[CALLER].send_error.clone();
    assert!(matches!(error, Some(SendError::Size { max: 1_128..1_316, .. })), "{error:?}");
    assert!(bed.statistics(CALLER).packets_oversized > 0);
    bed.stream(100, 1_128, MS(2));
    let before = bed.ends[LISTENER].messages.len();
    bed.run_for(MS(1_000));
    assert_eq!(bed.ends[LISTENER].messages.len() - before, 100);
}
