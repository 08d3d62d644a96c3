//! ACKs: full ones at intervals, light ones by the number of packets, and none without need.

use punctual_netem::LinkConfig;
use punctual_proto::BufferSize;
use punctual_wire::{Ack, AckNo, Control};

use crate::datagram::{Kind, control, kind};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link};

fn ack(datagram: &[u8]) -> Ack {
    match control(datagram) {
        Some(Control::Ack(ack)) => ack,
        _ => panic!("no ACK"),
    }
}

#[test]
fn a_stream_is_acknowledged_every_ten_milliseconds() {
    let mut pair = Pair::symmetric(1, link());
    pair.connect(latency(120), latency(120));
    let record = pair.record();
    pair.stream(Side::Caller, 500, MS(2));
    pair.run_for(MS(100));
    let acks = record.of_kind(Side::Listener, Kind::Ack);
    assert!((99..=102).contains(&acks.len()), "{} ACKs in a second", acks.len());
    for (number, (_, datagram)) in (1..).zip(&acks) {
        let ack = ack(datagram);
        assert_eq!(ack.number(), Some(AckNo::new(number)));
        assert!(ack.rates().is_some(), "a full ACK");
        // Twelve words: the last five say what has arrived and what was given up.
        assert_eq!(datagram.len(), 16 + 48);
    }
    assert!(acks.windows(2).all(|pair| pair[1].0 - pair[0].0 >= MS(10)));
    assert_eq!(record.of_kind(Side::Caller, Kind::AckAck).len(), acks.len());
    // The buffer has so much room that light ACKs would be useless.
    assert!(record.of_kind(Side::Listener, Kind::LightAck).is_empty());

    // After the last ACKACK, no further ACK is sent.
    let before = record.len();
    pair.run_for(MS(700));
    assert_eq!(record.len(), before);
}

#[test]
fn light_acks_keep_a_small_window_open() {
    let config = latency(20).with_receive_buffer(BufferSize::Packets(300));
    let mut pair = Pair::symmetric(1, LinkConfig::default().with_delay(MS(2)));
    pair.connect(config.clone(), config);
    let record = pair.record();
    // 20 packets every millisecond are 210 Mb/s.
    for _ in 0..100 {
        for _ in 0..20 {
            assert!(pair.send_next(Side::Caller));
        }
        pair.run_for(MS(1));
    }
    pair.run_for(MS(200));
    pair.assert_complete(Side::Caller);
    let light = record.of_kind(Side::Listener, Kind::LightAck);
    assert!(!light.is_empty());
    assert!(
        light.iter().all(|(_, datagram)| datagram.len() == 20 && ack(datagram).number().is_none())
    );
    assert!(light.windows(2).all(|pair| ack(&pair[1].1).next().is_after(ack(&pair[0].1).next())));
}

/// On a link with a round-trip time of zero, an unanswered ACK must not be repeated endlessly.
#[test]
fn unanswered_acks_are_repeated_no_faster_than_the_ack_timer() {
    let mut pair = Pair::symmetric(1, LinkConfig::default());
    pair.connect(latency(120), latency(120));
    pair.stream(Side::Caller, 100, MS(2));
    pair.drop_where(|_, datagram| kind(datagram) == Kind::AckAck);
    pair.stream(Side::Caller, 1, MS(2));
    let before = pair.statistics(Side::Listener).acks_sent;
    pair.run_for(SECS(2));
    let repeated = pair.statistics(Side::Listener).acks_sent - before;
    assert!((1..=200).contains(&repeated), "{repeated} ACKs in 2 s");
    pair.untap();
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
}
