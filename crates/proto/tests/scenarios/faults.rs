//! Faults of links: the session survives, and when the link has healed, the stream is as before.

use std::time::Duration;

use punctual_netem::LinkConfig;
use punctual_proto::{BufferSize, Config};
use punctual_wire::Control;

use crate::datagram::{Kind, control, is_data, kind};
use crate::node::number_of;
use crate::pair::{Pair, Side};
use crate::random::Random;
use crate::{MS, SECS, latency, link, lossy};

const BOTH: [Side; 2] = [Side::Caller, Side::Listener];

/// A pair that has streamed for a second over `link`, without the drift tracer.
fn streaming(seed: u64, link: LinkConfig, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, link);
    let config = config.clone().with_drift_tracer(false);
    pair.connect(config.clone(), config);
    pair.stream(Side::Caller, 500, MS(2));
    pair
}

/// Streams a message every 2 ms while the links from `sides` drop everything for `time`.
fn stream_through_blackout(pair: &mut Pair, sides: &[Side], time: Duration) {
    let heals = pair.now + time;
    let mut dark = Vec::new();
    for &side in sides {
        let link = pair.node(side).outgoing.config().clone();
        pair.set_link(side, lossy(1.0));
        dark.push((side, link));
    }
    while pair.now < heals {
        assert!(pair.send_next(Side::Caller));
        pair.run_for(MS(2));
    }
    for (side, link) in dark {
        pair.set_link(side, link);
    }
}

/// After the fault the stream continues, and no later message is missing or late.
#[track_caller]
fn expect_health(pair: &mut Pair, delay: Duration) {
    pair.stream(Side::Caller, 200, MS(2));
    let first = pair.caller.sent.len();
    pair.stream(Side::Caller, 500, MS(2));
    pair.run_for(MS(1_000));
    let delivered = pair.delivered(Side::Caller);
    let expected: Vec<u32> = (first as u32..first as u32 + 500).collect();
    assert!(delivered.ends_with(&expected), "{delivered:?}");
    let delays = pair.delays(Side::Caller);
    assert!(delays.iter().rev().take(500).all(|&at| at == delay), "{delays:?}");
    let sent = pair.caller.sent.len() as u64;
    let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
    assert_eq!(delivered.len() as u64 + dropped, sent, "delivered and dropped of sent");
    let lost_before: u64 =
        pair.listener.received.iter().map(|d| u64::from(d.message.lost_before)).sum();
    assert_eq!(lost_before, dropped, "each message says how many were lost before it");
}

/// In about every 50th packet, one bit of the control packet or of the data packet's header is
/// flipped. SRT has no checksum, so that a sequence number which was changed to another valid one
/// is accepted. But neither end may close, and intact messages must stay in order and unique.
#[test]
fn corrupted_headers_and_control_packets_do_no_lasting_harm() {
    for seed in 0..8u64 {
        let mut pair = Pair::symmetric(seed, lossy(0.02));
        pair.connect(latency(300), latency(300));
        let mut chance = Random(seed);
        pair.tap(move |_, _, datagram| {
            if !chance.one_in(50) {
                return vec![datagram];
            }
            let data = is_data(&datagram);
            let bytes = if data { 16 } else { datagram.len() };
            let mut corrupt = datagram.clone();
            corrupt[chance.below(bytes as u32) as usize] ^= 1 << chance.below(8);
            if data {
                // Marks it as not intact.
                corrupt[16..].fill(0xEE);
            }
            // One bit makes a keepalive a shutdown, against which there is no protection.
            let shutdown = matches!(control(&corrupt), Some(Control::Shutdown));
            vec![if shutdown { datagram } else { corrupt }]
        });
        pair.stream(Side::Caller, 5_000, MS(2));
        pair.untap();
        pair.run_for(SECS(10));
        let first = pair.caller.sent.len() as u32;
        pair.stream(Side::Caller, 500, MS(2));
        pair.run_for(SECS(1));
        let intact: Vec<u32> = pair
            .listener
            .received
            .iter()
            .filter(|delivery| delivery.message.payload[..] != [0xEE; 1_316])
            .map(|delivery| number_of(&delivery.message.payload))
            .collect();
        assert!(intact.is_sorted_by(|a, b| a < b), "duplicate or out of order: {intact:?}");
        assert!(intact.len() > 4_500, "{} came through", intact.len());
        assert!(intact.ends_with(&(first..first + 500).collect::<Vec<_>>()), "{intact:?}");
        assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    }
}

#[test]
fn steps_of_the_delay_do_not_change_the_delivery_time() {
    for seed in 0..3 {
        let mut pair = streaming(seed, link(), &latency(120));
        for ms in [40, 5, 100, 10] {
            for side in BOTH {
                pair.set_link(side, LinkConfig::default().with_delay(MS(ms)));
            }
            pair.stream(Side::Caller, 1_000, MS(2));
        }
        pair.run_for(MS(300));
        pair.assert_complete(Side::Caller);
        assert!(pair.delays(Side::Caller).iter().all(|&delay| delay == MS(130)));
    }
}

#[test]
fn the_drift_tracer_does_not_mistake_a_step_of_the_delay_for_drift() {
    for (there, back) in [(40, 40), (40, 10), (10, 40), (5, 5), (100, 100)] {
        let mut pair = Pair::symmetric(1, link());
        pair.connect(latency(120), latency(120));
        pair.stream(Side::Caller, 5_000, MS(2));
        pair.set_link(Side::Caller, LinkConfig::default().with_delay(MS(there)));
        pair.set_link(Side::Listener, LinkConfig::default().with_delay(MS(back)));
        pair.stream(Side::Caller, 10_000, MS(2));
        pair.run_for(MS(300));
        assert_eq!(pair.delivered(Side::Caller).len(), 15_000);
        for delay in pair.delays(Side::Caller) {
            assert!(delay.abs_diff(MS(130)) < MS(2), "{there} and {back} ms: {delay:?}");
        }
    }
}

#[test]
fn a_delay_beyond_the_latency_makes_messages_late_but_loses_none() {
    let mut pair = streaming(1, link(), &latency(120));
    pair.set_link(Side::Caller, LinkConfig::default().with_delay(MS(200)));
    pair.stream(Side::Caller, 1_000, MS(2));
    pair.run_for(MS(300));
    assert_eq!(pair.delivered(Side::Caller).len(), 1_500);
    let delays = pair.delays(Side::Caller);
    assert!(delays[..500].iter().all(|&delay| delay == MS(130)));
    assert!(delays[500..].iter().all(|&delay| delay == MS(200)), "at once on arrival");
    pair.set_link(Side::Caller, link());
    expect_health(&mut pair, MS(130));
}

#[test]
fn a_blackout_shorter_than_the_latency_costs_nothing() {
    for seed in 0..5 {
        let mut pair = streaming(seed, link(), &latency(300));
        stream_through_blackout(&mut pair, &BOTH, MS(180));
        expect_health(&mut pair, MS(310));
        pair.assert_complete(Side::Caller);
    }
}

/// Missing packets are given up when the next message is due, so that messages which the sender
/// still has come late, but are not lost.
#[test]
fn a_blackout_longer_than_the_latency_makes_messages_late() {
    for seed in 0..5 {
        for dark in [&BOTH[..], &[Side::Caller]] {
            let mut pair = streaming(seed, link(), &latency(300));
            stream_through_blackout(&mut pair, dark, MS(800));
            expect_health(&mut pair, MS(310));
            let statistics = pair.statistics(Side::Listener);
            assert_eq!((statistics.packets_receive_dropped, statistics.receive_jumps), (0, 0));
            let late = pair.delays(Side::Caller).iter().filter(|&&at| at > MS(310)).count();
            assert!((245..280).contains(&late), "{late} late: 250 were due before the link healed");
        }
    }
}

#[test]
fn a_blackout_longer_than_the_sender_keeps_messages_loses_the_rest() {
    for seed in 0..5 {
        for dark in [&BOTH[..], &[Side::Caller]] {
            let mut pair = streaming(seed, link(), &latency(300));
            stream_through_blackout(&mut pair, dark, SECS(2));
            expect_health(&mut pair, MS(310));
            // The sender keeps messages for 1020 ms.
            let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
            assert!((490..520).contains(&dropped), "{dropped} dropped: 490 by the time it heals");
            assert!(pair.statistics(Side::Caller).packets_send_dropped >= dropped);
            assert_eq!(pair.statistics(Side::Listener).receive_jumps, 0);
        }
    }
}

#[test]
fn without_answers_data_is_still_delivered_on_time() {
    for seed in 0..5 {
        let mut pair = streaming(seed, link(), &latency(300));
        stream_through_blackout(&mut pair, &[Side::Listener], SECS(3));
        expect_health(&mut pair, MS(310));
        pair.assert_complete(Side::Caller);
    }
}

#[test]
fn an_outage_longer_than_the_receive_buffer_is_skipped() {
    for seed in 0..5 {
        let config = latency(120).with_receive_buffer(BufferSize::Packets(128));
        let mut pair = streaming(seed, link(), &config);
        stream_through_blackout(&mut pair, &BOTH, SECS(4));
        pair.stream(Side::Caller, 1_000, MS(2));
        expect_health(&mut pair, MS(130));
        let statistics = pair.statistics(Side::Listener);
        assert_eq!(statistics.receive_jumps, 1);
        assert!(statistics.packets_receive_dropped > 1_400);
        assert_eq!(pair.listener.closed(), None);
    }
}

/// The lost packets that were given up fill the buffer, except for a few places. If nothing is
/// retransmitted, the packets after the outage must not be lost for lack of a place.
#[test]
fn an_outage_as_long_as_the_receive_buffer_loses_nothing_else() {
    for filter in ["fec,cols:4,arq:never", ""] {
        for lost in 118..128 {
            let config = latency(120).with_receive_buffer(BufferSize::Packets(128));
            let config = config.with_packet_filter(filter).expect("a legal filter");
            let mut pair = streaming(1, link(), &config);
            pair.run_for(SECS(1));
            pair.drop_where(|side, _| side == Side::Caller);
            (0..lost).for_each(|_| assert!(pair.send_next(Side::Caller)));
            pair.run_for(SECS(3));
            pair.untap();
            pair.stream(Side::Caller, 200, MS(2));
            pair.run_for(SECS(1));
            assert_eq!(pair.delivered(Side::Caller).len(), 700, "{lost} lost, filter {filter:?}");
            let receiver = pair.statistics(Side::Listener);
            assert_eq!(receiver.packets_receive_dropped, lost);
            assert_eq!((receiver.receive_jumps, receiver.packets_ignored), (0, 0));
        }
    }
}

#[test]
fn a_stream_survives_the_loss_of_all_acks_for_a_while() {
    for seed in 0..5 {
        let mut pair = streaming(seed, lossy(0.02), &latency(300));
        pair.drop_where(|_, datagram| matches!(kind(datagram), Kind::Ack | Kind::LightAck));
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.untap();
        pair.stream(Side::Caller, 500, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(Side::Caller);
        assert_eq!(pair.statistics(Side::Caller).flight_size, 0);
    }
}

#[test]
fn a_stream_survives_the_loss_of_all_naks_for_a_while() {
    for seed in 0..5 {
        let mut pair = streaming(seed, lossy(0.02), &latency(400));
        pair.drop_where(|_, datagram| kind(datagram) == Kind::Nak);
        pair.stream(Side::Caller, 50, MS(2));
        pair.untap();
        pair.stream(Side::Caller, 500, MS(2));
        pair.run_for(SECS(1));
        pair.assert_complete(Side::Caller);
    }
}

/// Packets that take the new way overtake those on the old one. They are earlier than is plausible,
/// and are delivered by their arrival, before the packets that they overtook are due.
#[test]
fn no_message_comes_again_after_the_path_became_much_shorter() {
    for seed in 0..5 {
        let long = link().with_delay(MS(200)).with_keep_order(false);
        let mut pair = Pair::new(seed, long.clone(), link());
        pair.connect(latency(20), latency(20));
        pair.stream(Side::Caller, 500, MS(2));
        pair.set_link(Side::Caller, long.with_delay(MS(120)));
        pair.stream(Side::Caller, 5, MS(2));
        stream_through_blackout(&mut pair, &[Side::Caller], MS(60));
        pair.stream(Side::Caller, 500, MS(2));
        pair.run_for(SECS(1));
        let delivered = pair.delivered(Side::Caller);
        assert!(delivered.is_sorted_by(|a, b| a < b), "seed {seed}: {delivered:?}");
        let statistics = pair.statistics(Side::Listener);
        assert!(statistics.packets_belated > 10, "{} overtaken", statistics.packets_belated);
        assert_eq!(statistics.receive_jumps, 0);
    }
}
