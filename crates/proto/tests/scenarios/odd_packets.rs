//! Forged packets that no honest peer sends: each is ignored, and none leads the stream astray.

use punctual_wire::{Ack, AckLink, AckNo, Control, DropRequest, LossListBuilder, MsgNo, Timestamp};

use crate::datagram::{data_header, forged, forged_data};
use crate::hostile::{expect_no_harm, state, streaming, untraced};
use crate::pair::{Pair, Side};
use crate::{MS, SECS, link};

#[test]
fn naks_and_acks_of_unsent_packets_are_ignored() {
    let mut pair = streaming(1);
    pair.run_for(MS(100));
    let (next, at_caller, _) = state(&mut pair);
    let remote = pair.listener.address;
    let before = pair.statistics(Side::Caller);
    let stamp = Timestamp::from_micros(700_000);
    let link = AckLink { rtt_us: 1, rtt_var_us: 1, free_buffer: 0 };
    for ahead in [1, 2, 1_000, 100_000, 0x3FFF_FFFF, 0x4000_0000, 0x4000_0001] {
        let far = next.plus(ahead);
        let mut list = LossListBuilder::new(364);
        let first = if ahead > 1 << 30 { next.plus(ahead - 8) } else { next };
        assert!(list.push(first, far));
        assert!(list.push(far.plus(2), far.plus(2)));
        for number in [0, 1, 50, 70, 0x7FFF_FFFF] {
            let ack = Ack::Small { number: AckNo::new(number), next: far, link };
            pair.inject(Side::Caller, remote, forged(at_caller, stamp, Control::Ack(ack)));
        }
        let light = Control::Ack(Ack::Light { next: far });
        pair.inject(Side::Caller, remote, forged(at_caller, stamp, light));
        pair.inject(Side::Caller, remote, forged(at_caller, stamp, Control::Nak(list.as_list())));
        pair.inject(
            Side::Caller,
            remote,
            forged(at_caller, stamp, Control::AckAck(AckNo::new(ahead))),
        );
    }
    let after = pair.statistics(Side::Caller);
    assert_eq!(after.packets_ignored - before.packets_ignored, 7 * 8);
    assert_eq!(after.packets_retransmitted, before.packets_retransmitted);
    assert_eq!(after.flow_window, before.flow_window);
    assert_eq!(after.rtt, before.rtt);
    expect_no_harm(&mut pair);
}

#[test]
fn a_flood_of_naks_does_not_multiply_packets() {
    let mut pair = streaming(1);
    // Without ACKs, the packets of the NAKs stay in flight.
    pair.drop_where(|side, _| side == Side::Listener);
    pair.stream(Side::Caller, 200, MS(2));
    let (next, at_caller, _) = state(&mut pair);
    let remote = pair.listener.address;
    let before = pair.statistics(Side::Caller);
    let mut list = LossListBuilder::new(364);
    for i in (2..=200).rev().step_by(2) {
        assert!(list.push(next.minus(i), next.minus(i)));
    }
    let stamp = Timestamp::from_micros(900_000);
    let nak = forged(at_caller, stamp, Control::Nak(list.as_list()));
    for _ in 0..1_000 {
        pair.inject(Side::Caller, remote, nak.clone());
    }
    pair.run_for(MS(1));
    let after = pair.statistics(Side::Caller);
    assert_eq!(after.naks_received - before.naks_received, 1_000);
    let again = after.packets_retransmitted - before.packets_retransmitted;
    assert!((1..=100).contains(&again), "none twice in a round trip: {again}");
    pair.untap();
    expect_no_harm(&mut pair);
}

#[test]
fn invalid_drop_requests_are_ignored() {
    let mut pair = streaming(1);
    let (next, _, at_listener) = state(&mut pair);
    let remote = pair.caller.address;
    let stamp = Timestamp::from_micros(600_000);
    let request = |first, last| {
        let request = DropRequest { msgno: MsgNo::CONTROL, first, last };
        forged(at_listener, stamp, Control::DropRequest(request))
    };
    for (first, last) in [
        // Reversed, far ahead, larger than the window, far back.
        (next.minus(1), next.minus(50)),
        (next.plus(1_000_000), next.plus(1_000_001)),
        (next.minus(100), next.plus(200_000)),
        (next.plus(300), next.plus(400)),
        (next.minus(0x3000_0000), next.minus(0x2000_0000)),
        (next.minus(0x3000_0000), next.minus(20)),
    ] {
        pair.inject(Side::Listener, remote, request(first, last));
    }
    // The reversed one cannot be parsed; requests that drop nothing do not count as invalid.
    assert_eq!(pair.statistics(Side::Listener).packets_ignored, 2);
    expect_no_harm(&mut pair);
}

#[test]
fn drop_requests_count_only_packets_that_existed() {
    let mut pair = streaming(1);
    let (next, _, at_listener) = state(&mut pair);
    let remote = pair.caller.address;
    let stamp = Timestamp::from_micros(600_000);
    for i in 0..2_000 {
        let first = next.plus(i * 60_000);
        let request = DropRequest { msgno: MsgNo::CONTROL, first, last: first.plus(59_999) };
        let request = forged(at_listener, stamp, Control::DropRequest(request));
        pair.inject(Side::Listener, remote, request);
    }
    let statistics = pair.statistics(Side::Listener);
    assert_eq!((statistics.packets_receive_dropped, statistics.packets_receive_lost), (0, 0));
    expect_no_harm(&mut pair);
}

#[test]
fn a_single_packet_far_ahead_is_not_followed() {
    for ahead in [64, 100, 1_000, 100_000, 200_000, 0x2000_0000, 0x3FFF_FFFF, 0x4000_0000] {
        let mut pair = streaming(1);
        let remote = pair.caller.address;
        for _ in 0..5 {
            let (next, _, at_listener) = state(&mut pair);
            let odd = forged_data(next.plus(ahead), Timestamp::default(), at_listener, &[9; 99]);
            for _ in 0..3 {
                pair.inject(Side::Listener, remote, odd.clone());
            }
            pair.stream(Side::Caller, 10, MS(2));
        }
        assert_eq!(pair.statistics(Side::Listener).receive_jumps, 0);
        expect_no_harm(&mut pair);
    }
}

#[test]
fn invalid_timestamps_affect_no_other_message() {
    for shift in [3_000_000, 60_000_000, 0x7000_0000, 0x8000_0000, 0xFF00_0000u32] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(untraced(), untraced());
        pair.tap(move |_, _, mut datagram| {
            if data_header(&datagram).is_some_and(|header| header.msgno.value() % 100 == 50) {
                let stamp = u32::from_be_bytes(datagram[8..12].try_into().expect("four bytes"));
                datagram[8..12].copy_from_slice(&stamp.wrapping_add(shift).to_be_bytes());
            }
            vec![datagram]
        });
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.run_for(SECS(1));
        assert_eq!(pair.delivered(Side::Caller).len(), 1_000);
        for (i, delay) in pair.delays(Side::Caller).into_iter().enumerate() {
            // The message with the invalid timestamp counts as sent on arrival, or as late: then
            // the due time of the one before it applies.
            let odd = i % 100 == 49;
            assert!(delay == MS(130) || odd && delay < MS(130), "message {i}: {delay:?}");
        }
    }
}
