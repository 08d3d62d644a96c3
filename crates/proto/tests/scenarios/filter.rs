//! The packet filter: the negotiation, the losses that forward error correction repairs without
//! NAKs, and the NAKs for other losses.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use punctual_netem::{Jitter, LinkConfig, Loss, Reorder};
use punctual_proto::{
    CloseReason, Config, MsgNo, RejectReason, RetransmitAlgorithm, SendError, SendOptions, SeqNo,
};
use punctual_wire::{Extension, HandshakeRequest};

use crate::datagram::{Kind, data_header, edit_handshake, forged_data, is_data, kind, noise};
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

fn filtered(ms: u64, filter: &str) -> Config {
    latency(ms).with_packet_filter(filter).expect("a legal filter")
}

/// A pair whose caller offers `filter`, and whose listener adopts it.
fn connected(seed: u64, link: LinkConfig, filter: &str) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    pair.connect(filtered(400, filter), latency(400));
    pair
}

/// Loses the originals at these places in the stream, and nothing else.
fn lose(pair: &mut Pair, lost: impl Fn(u32) -> bool + 'static) {
    let first = Rc::new(RefCell::new(None));
    pair.drop_where(move |side, datagram| {
        let header = data_header(datagram).filter(|_| side == Side::Caller);
        let Some(header) = header.filter(|h| h.msgno != MsgNo::CONTROL && !h.retransmitted) else {
            return false;
        };
        let first = *first.borrow_mut().get_or_insert(header.seq);
        lost(header.seq.distance_from(first).unsigned_abs())
    });
}

/// Streams `count` messages, 2 ms apart, and waits until all of them are delivered or given up.
fn stream(pair: &mut Pair, count: u32) {
    pair.stream(Side::Caller, count, MS(2));
    pair.run_for(SECS(2));
}

/// The filters of both conclusions.
fn agreed(caller: &str, listener: &str) -> Vec<String> {
    let mut pair = Pair::symmetric(1, link());
    let record = pair.record();
    pair.connect(filtered(120, caller), filtered(120, listener));
    [Side::Caller, Side::Listener]
        .into_iter()
        .flat_map(|side| record.handshakes(side))
        .filter(|(_, handshake, _)| handshake.request == HandshakeRequest::Conclusion)
        .flat_map(|(_, handshake, _)| handshake.extensions)
        .filter_map(|extension| match extension {
            Extension::Filter(text) => Some(text),
            _ => None,
        })
        .collect()
}

#[test]
fn the_listener_adopts_or_merges_the_callers_filter() {
    assert_eq!(agreed("fec,cols:10,rows:5", ""), ["fec,cols:10,rows:5"; 2]);
    assert_eq!(
        agreed("fec,cols:10", "fec,arq:never,rows:-4"),
        ["fec,cols:10", "fec,arq:never,cols:10,layout:staircase,rows:-4"]
    );
    assert_eq!(
        agreed("fec", "fec,cols:6,layout:even"),
        ["fec", "fec,arq:onreq,cols:6,layout:even,rows:1"]
    );
    assert_eq!(agreed("", "fec,cols:6"), ["fec,cols:6"], "a caller without one gets it");
    assert_eq!(agreed("", "fec"), [""; 0], "an incomplete one is none");
}

#[test]
fn incompatible_filters_are_refused_with_their_code() {
    for (caller, listener) in [
        ("fec,cols:10", "fec,cols:11"),
        ("fec,cols:10,rows:2", "fec,rows:3"),
        ("fec,cols:10,arq:always", "fec,arq:never"),
        ("fec,layout:even,cols:3", "fec,layout:staircase"),
        ("fec,rows:4", "fec"),
    ] {
        let mut pair = Pair::symmetric(1, link());
        pair.call(filtered(120, caller), filtered(120, listener));
        pair.run_for(SECS(5));
        let refused = CloseReason::Rejected(RejectReason::FILTER);
        assert_eq!(pair.caller.closed(), Some(&refused), "{caller} and {listener}");
    }
}

/// An old peer answers without the filter: the stream would not be protected.
#[test]
fn a_caller_that_gets_no_answer_to_its_filter_gives_up() {
    for answer in [None, Some("fec"), Some("xor,cols:4"), Some("")] {
        let mut pair = Pair::symmetric(1, link());
        pair.tap(move |_, side, datagram| {
            vec![edit_handshake(datagram, |handshake| {
                if side == Side::Listener && handshake.request == HandshakeRequest::Conclusion {
                    handshake.extensions.retain(|e| !matches!(e, Extension::Filter(_)));
                    let answer = answer.map(|text| Extension::Filter(text.to_owned()));
                    handshake.extensions.extend(answer);
                }
            })]
        });
        let own = if answer == Some("fec") { "fec,rows:4" } else { "fec,cols:4" };
        pair.call(filtered(120, own), filtered(120, "fec,cols:4"));
        pair.run_for(SECS(5));
        let refused = CloseReason::Incompatible(RejectReason::FILTER);
        assert_eq!(pair.caller.closed(), Some(&refused), "{answer:?}");
    }
}

#[test]
fn the_filter_takes_four_bytes_of_the_largest_payload() {
    let config = filtered(120, "fec,cols:4").with_payload_size(1_456).expect("in range");
    let mut pair = Pair::symmetric(1, link());
    pair.connect(config.clone(), config);
    assert_eq!(pair.info(Side::Caller).max_payload, 1_452);
    let refused = pair.send(Side::Caller, vec![7; 1_453], SendOptions::default());
    assert_eq!(refused, Err(SendError::Size { size: 1_453, max: 1_452 }));
    let record = pair.record();
    for _ in 0..8 {
        pair.send(Side::Caller, vec![7; 1_452], SendOptions::default()).expect("it fits");
    }
    pair.run_for(SECS(1));
    let longest = record.from(Side::Caller).iter().map(|(_, datagram)| datagram.len()).max();
    assert_eq!(longest, Some(1_472), "a UDP datagram of 1500 bytes with its headers");
}

/// One packet of each row is lost: there is neither a NAK nor a retransmission, and all messages
/// are delivered on time.
#[test]
fn one_loss_in_each_row_is_rebuilt_without_naks() {
    for arq in ["never", "onreq"] {
        let mut pair = connected(1, link(), &format!("fec,cols:10,arq:{arq}"));
        lose(&mut pair, |at| at % 10 == at / 10 % 10);
        stream(&mut pair, 500);
        pair.assert_complete(Side::Caller);
        assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(410)));
        let sender = pair.statistics(Side::Caller);
        assert_eq!((sender.packets_send_filter_extra, sender.naks_received), (50, 0));
        assert_eq!(sender.packets_retransmitted, 0);
        assert_eq!(sender.packets_sent, 550);
        let receiver = pair.statistics(Side::Listener);
        assert_eq!(receiver.packets_receive_filter_extra, 50);
        assert_eq!((receiver.packets_filter_supplied, receiver.packets_filter_lost), (50, 0));
        assert_eq!((receiver.packets_received_unique, receiver.packets_receive_dropped), (500, 0));
        assert_eq!(receiver.packets_received, 500, "450 originals and 50 parity packets");
        assert_eq!((receiver.packets_ignored, receiver.naks_sent), (0, 0));
    }
}

/// Bursts of as many packets as there are columns, in every layout with columns.
#[test]
fn bursts_are_rebuilt_by_columns() {
    for filter in ["rows:5,layout:staircase", "rows:5,layout:even", "rows:-5,layout:even"] {
        let mut pair = connected(1, link(), &format!("fec,cols:10,{filter},arq:never"));
        lose(&mut pair, |at| at >= 50 && (at - 50) % 150 < 10 && at < 900);
        stream(&mut pair, 1_200);
        pair.assert_complete(Side::Caller);
        let receiver = pair.statistics(Side::Listener);
        assert_eq!((receiver.packets_filter_supplied, receiver.packets_filter_lost), (60, 0));
        assert_eq!((receiver.naks_sent, receiver.packets_received_retransmitted), (0, 0));
    }
}

/// The same random losses with each `arq`. Packets that the filter cannot rebuild are lost with
/// `never`, reported once with `onreq`, and reported at once with `always`.
#[test]
fn arq_decides_about_packets_that_cannot_be_rebuilt() {
    let run = |arq: &str| {
        let mut pair = connected(3, link(), &format!("fec,cols:8,rows:4,arq:{arq}"));
        let mut chance = Random(7);
        let lost: BTreeSet<u32> = (0..2_000).filter(|_| chance.below(100) < 12).collect();
        lose(&mut pair, move |at| lost.contains(&at));
        stream(&mut pair, 2_100);
        (
            pair.delivered(Side::Caller).len(),
            pair.statistics(Side::Caller),
            pair.statistics(Side::Listener),
        )
    };
    let (delivered, sender, never) = run("never");
    assert!(never.packets_filter_supplied > 100, "{}", never.packets_filter_supplied);
    assert!(never.packets_receive_dropped > 0, "too easy");
    assert_eq!(delivered as u64, 2_100 - never.packets_receive_dropped);
    assert_eq!((sender.packets_retransmitted, never.naks_sent), (0, 0));
    assert!(never.packets_filter_lost >= never.packets_receive_dropped);

    let (delivered, sender, onreq) = run("onreq");
    assert_eq!((delivered, onreq.packets_receive_dropped), (2_100, 0));
    assert!(sender.packets_retransmitted <= onreq.packets_filter_lost);
    assert!(onreq.packets_filter_supplied >= never.packets_filter_supplied);

    let (delivered, sender, always) = run("always");
    assert_eq!((delivered, always.packets_receive_dropped), (2_100, 0));
    assert!(sender.packets_retransmitted > 2 * onreq.packets_filter_lost);
}

/// Without retransmissions and too-late drop, the receiver waits for a missing packet only as long
/// as the filter may rebuild it.
#[test]
fn without_drops_and_naks_a_stream_continues_after_a_lost_packet() {
    for rows in [1, 4, -4] {
        let config = filtered(400, &format!("fec,cols:8,rows:{rows},arq:never"));
        let config = config.with_too_late_drop(false).with_send_drop_delay(None);
        let mut pair = Pair::symmetric(3, link());
        pair.connect(config.clone(), config);
        let mut chance = Random(7);
        let lost: BTreeSet<u32> = (0..2_000).filter(|_| chance.below(100) < 12).collect();
        lose(&mut pair, move |at| lost.contains(&at));
        stream(&mut pair, 2_100);
        let delivered = pair.delivered(Side::Caller).len();
        let (sender, receiver) = (pair.statistics(Side::Caller), pair.statistics(Side::Listener));
        assert!(receiver.packets_receive_dropped > 0, "too easy");
        assert_eq!(delivered as u64, 2_100 - receiver.packets_receive_dropped);
        assert_eq!((sender.packets_retransmitted, receiver.naks_sent), (0, 0));
        assert_eq!(sender.flight_size, 0, "all of it is acknowledged");
        pair.assert_punctual(Side::Caller);
    }
}

/// Two packets of a row are lost: with `onreq` they are reported when the row has ended, and only
/// once by a receiver without NAK timers.
#[test]
fn with_onreq_one_nak_is_sent_when_the_row_has_ended() {
    let mut pair = Pair::symmetric(1, link());
    let sender = filtered(400, "fec,cols:10,arq:onreq");
    pair.connect(sender.with_retransmit_algorithm(RetransmitAlgorithm::Efficient), latency(400));
    let events = Rc::new(RefCell::new(Vec::new()));
    let seen = Rc::clone(&events);
    let first = Rc::new(RefCell::new(None));
    pair.tap(move |at, side, datagram| {
        if side == Side::Listener && kind(&datagram) == Kind::Nak {
            seen.borrow_mut().push(at);
            return Vec::new();
        }
        let Some(header) = data_header(&datagram).filter(|_| side == Side::Caller) else {
            return vec![datagram];
        };
        let first: SeqNo = *first.borrow_mut().get_or_insert(header.seq);
        let place = header.seq.distance_from(first);
        let lost = (place == 12 || place == 15) && header.msgno != MsgNo::CONTROL;
        if lost { Vec::new() } else { vec![datagram] }
    });
    let start = pair.now;
    stream(&mut pair, 100);
    // Packet 24 is the first one beyond a third of the next row; it is submitted after 48 ms and
    // arrives 10 ms later. Its NAK is lost, and no other one is sent.
    assert_eq!(*events.borrow(), [start + MS(58)]);
    assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 2);
}

#[test]
fn jitter_and_reordering_lose_nothing_and_cause_few_naks() {
    for filter in ["fec,cols:10,rows:5,arq:onreq", "fec,cols:12,rows:1,arq:onreq"] {
        for seed in 0..4 {
            let reorder = Reorder::Late { share: 0.05, by: MS(5) };
            let jitter = Jitter::Uniform { spread: MS(1) };
            let link = lossy(0.01).with_reorder(reorder).expect("a share").with_jitter(jitter);
            let mut pair = connected(seed, link, filter);
            stream(&mut pair, 2_000);
            pair.assert_complete(Side::Caller);
            assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 0);
            let again = pair.statistics(Side::Caller).packets_retransmitted;
            assert!(again <= 10, "{filter}, seed {seed}: {again} retransmissions of 2000");
        }
    }
}

/// Both directions have a filter, and losses.
#[test]
fn both_directions_are_protected() {
    let mut pair = connected(6, lossy(0.02), "fec,cols:8,rows:8,arq:onreq");
    for _ in 0..1_000 {
        assert!(pair.send_next(Side::Caller) && pair.send_next(Side::Listener));
        pair.run_for(MS(2));
    }
    pair.run_for(SECS(2));
    for side in [Side::Caller, Side::Listener] {
        pair.assert_complete(side);
        let receiver = pair.statistics(side.other());
        assert!(receiver.packets_filter_supplied > 5, "{}", receiver.packets_filter_supplied);
    }
}

/// The outage is longer than two matrices: lost packets are reported if both ends agreed so, and
/// the filter works again after it.
#[test]
fn an_outage_longer_than_the_matrices_is_survived() {
    for (arq, missing) in [("onreq", 0), ("never", 100)] {
        let mut pair = Pair::symmetric(2, link());
        let filter = format!("fec,cols:4,rows:3,arq:{arq}");
        pair.connect(filtered(1_500, &filter), latency(1_500));
        let first = Rc::new(RefCell::new(None));
        pair.drop_where(move |side, datagram| {
            let Some(header) = data_header(datagram).filter(|_| side == Side::Caller) else {
                return false;
            };
            let first: SeqNo = *first.borrow_mut().get_or_insert(header.seq);
            let place = header.seq.distance_from(first);
            let outage = (200..300).contains(&place) && !header.retransmitted;
            outage || place == 600 && header.msgno != MsgNo::CONTROL && !header.retransmitted
        });
        stream(&mut pair, 1_000);
        let delivered = pair.delivered(Side::Caller).len();
        let receiver = pair.statistics(Side::Listener);
        assert_eq!(delivered, 1_000 - missing, "{arq}");
        assert!(receiver.packets_filter_supplied >= 1, "the loss after the outage was rebuilt");
        assert_eq!(receiver.packets_ignored, 0);
    }
}

/// A stream pauses in the middle of a row: with `never`, its last packet is not retransmitted, but
/// rebuilt when the row continues.
#[test]
fn a_pause_in_the_middle_of_a_group_does_no_harm() {
    for arq in ["never", "onreq", "always"] {
        let mut pair = connected(1, link(), &format!("fec,cols:10,rows:4,arq:{arq}"));
        lose(&mut pair, |at| at == 104);
        stream(&mut pair, 105);
        pair.run_for(SECS(3));
        stream(&mut pair, 200);
        assert_eq!(pair.delivered(Side::Caller).len(), 305, "{arq}");
        let sender = pair.statistics(Side::Caller);
        assert_eq!(sender.packets_retransmitted > 0, arq != "never");
    }
}

/// Forged parity packets are counted and change nothing.
#[test]
fn forged_parity_packets_are_ignored() {
    let mut pair = connected(1, link(), "fec,cols:5,rows:4,arq:never");
    stream(&mut pair, 200);
    let dest = pair.info(Side::Listener).socket_id;
    let newest = pair.listener.received.last().expect("messages").message.seq;
    let remote = pair.caller.address;
    let mut chance = Random(9);
    for i in 0..2_000 {
        let length = chance.below(40) as usize;
        let mut payload = noise(&mut chance, length);
        if let Some(first) = payload.first_mut() {
            *first = [0xFF, 0, 1, 4, 5, 200][i % 6];
        }
        let seq = newest.plus(chance.below(300)).minus(50);
        let timestamp = punctual_wire::Timestamp::from_micros(chance.next_u32());
        let mut datagram = forged_data(seq, timestamp, dest, &payload);
        datagram[4..8].copy_from_slice(&0xC000_0000_u32.to_be_bytes());
        assert_eq!(data_header(&datagram).map(|header| header.msgno), Some(MsgNo::CONTROL));
        pair.inject(Side::Listener, remote, datagram);
    }
    assert!(pair.statistics(Side::Listener).packets_ignored > 200);
    pair.stream(Side::Caller, 300, MS(2));
    pair.run_for(SECS(1));
    pair.assert_complete(Side::Caller);
    assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
}

/// Across the wrap of sequence numbers, with losses in bursts.
#[test]
fn packets_are_rebuilt_across_the_wrap_of_sequence_numbers() {
    for seed in crate::wraps::SEEDS {
        let bursts = link().with_loss(Loss::bursts(0.04, 2.0)).expect("shares");
        let mut pair = connected(seed, bursts, "fec,cols:10,rows:6,arq:always");
        stream(&mut pair, 1_000);
        pair.assert_complete(Side::Caller);
        let first = pair.listener.received[0].message.seq;
        let last = pair.listener.received[999].message.seq;
        assert!(last.value() < first.value(), "the numbers did not wrap");
        assert!(pair.statistics(Side::Listener).packets_filter_supplied > 5);
        assert_eq!(pair.statistics(Side::Listener).packets_ignored, 0);
    }
}

/// A parity packet is sent directly after the packet that ends its group. A stream without a filter
/// has none.
#[test]
fn parity_is_sent_after_the_packet_that_ends_its_group() {
    let sent = |config: Config| {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(config, latency(400));
        let record = pair.record();
        stream(&mut pair, 20);
        let data = record.from(Side::Caller).into_iter().filter(|(_, d)| is_data(d));
        data.filter_map(|(at, d)| Some((at, data_header(&d)?.msgno))).collect::<Vec<_>>()
    };
    let plain = sent(latency(400));
    assert!(plain.iter().all(|(_, msgno)| *msgno != MsgNo::CONTROL));
    let sent = sent(filtered(400, "fec,cols:5,rows:2,layout:even"));
    let ends: Vec<(usize, Duration)> = (0..sent.len())
        .filter(|&i| sent[i].1 == MsgNo::CONTROL)
        .map(|i| (i, sent[i].0 - sent[i - 1].0))
        .collect();
    // The first row; five columns, and with the fifth the second row; and so on.
    let places = [5, 7, 9, 11, 13, 15, 16, 22, 24, 26, 28, 30, 32, 33];
    assert_eq!(ends.iter().map(|(i, _)| *i).collect::<Vec<_>>(), places);
    assert!(ends.iter().all(|(_, wait)| *wait < MS(1)), "{ends:?}");
}

#[test]
fn both_ends_of_a_rendezvous_must_give_the_same_filter() {
    for seed in 0..4 {
        let config = filtered(400, "fec,cols:5,arq:never");
        let mut pair = Pair::symmetric(seed, link());
        pair.meet(Side::Caller, MS(0), [config.clone(), config.clone()]);
        lose(&mut pair, |at| at % 5 == 3);
        stream(&mut pair, 100);
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.statistics(Side::Listener).packets_filter_supplied, 20);

        let mut pair = Pair::symmetric(seed, link());
        pair.wave(Side::Caller, config);
        pair.wave(Side::Listener, filtered(400, "fec,arq:never,cols:5"));
        pair.run_for(SECS(5));
        let closed = [pair.caller.closed().cloned(), pair.listener.closed().cloned()];
        let refused = |reason: &Option<CloseReason>| {
            matches!(
                reason,
                Some(
                    CloseReason::Rejected(RejectReason::FILTER)
                        | CloseReason::Incompatible(RejectReason::FILTER)
                )
            )
        };
        assert!(closed.iter().all(refused), "{closed:?}");
    }
}
