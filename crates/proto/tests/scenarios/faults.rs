//! Links that misbehave for a while: the session survives, and when the link heals the stream is
//! what it was.

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

/// Streams one message each 2 ms for as long as the links from `sides` let nothing through.
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

/// After the fault: the stream goes on, and of what is sent from now on nothing is missing or late.
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

/// Any one bit of every 50th control packet and of every 50th data packet's header is flipped.
/// There is no checksum in SRT, so a number that was changed to another possible one is believed;
/// what can be asked for is that nobody gives up, and that what was not touched stays in order and
/// single.
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
                // Not to be taken for an intact message.
                corrupt[16..].fill(0xEE);
            }
            // One bit makes a keepalive a farewell; nothing can be done about that.
            let farewell = matches!(control(&corrupt), Some(Control::Shutdown));
            vec![if farewell { datagram } else { corrupt }]
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
        assert!(intact.is_sorted_by(|a, b| a < b), "doubled or out of order: {intact:?}");
        assert!(intact.len() > 4_500, "{} came through", intact.len());
        assert!(intact.ends_with(&(first..first + 500).collect::<Vec<_>>()), "{intact:?}");
        assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    }
}

#[test]
fn steps_of_the_delay_do_not_move_the_tick() {
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
fn the_drift_tracer_takes_no_step_of_the_delay_for_drift() {
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

/// Missing packets are given up when the first one behind them is due, so what the sender still has
/// comes late rather than never.
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
fn a_blackout_longer_than_the_sender_keeps_messages_costs_the_difference() {
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
fn without_answers_the_data_still_comes_at_its_tick() {
    for seed in 0..5 {
        let mut pair = streaming(seed, link(), &latency(300));
        stream_through_blackout(&mut pair, &[Side::Listener], SECS(3));
        expect_health(&mut pair, MS(310));
        pair.assert_complete(Side::Caller);
    }
}

#[test]
fn an_outage_longer_than_the_receive_buffer_is_jumped_over() {
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

/// What was lost and given up fills the buffer but for the first packets behind it. Where nothing
/// is sent again, those behind them must not be lost for want of a place.
#[test]
fn an_outage_as_long_as_the_receive_buffer_costs_only_itself() {
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
fn all_acks_lost_for_a_while() {
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
fn all_reports_of_losses_lost_for_a_while() {
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
