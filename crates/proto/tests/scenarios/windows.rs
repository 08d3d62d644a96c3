//! A receiver that stops reading: the sender is held back, memory stays limited, and the stream
//! continues when it reads again.

use punctual_netem::Reorder;
use punctual_proto::{BufferSize, Config};
use punctual_wire::Control;

use crate::datagram::control;
use crate::pair::{Pair, Side};
use crate::{MS, SECS, latency, link, lossy};

const WINDOW: u32 = 64;

fn small_window(too_late_drop: bool) -> Config {
    latency(120)
        .with_receive_buffer(BufferSize::Packets(WINDOW as usize))
        .with_too_late_drop(too_late_drop)
}

/// Sends 300 messages to a listener that does not read.
fn stalled(seed: u64, config: &Config) -> Pair {
    let mut pair = Pair::symmetric(seed, link());
    pair.connect(config.clone(), config.clone());
    pair.listener.reads = false;
    pair.stream(Side::Caller, 300, MS(2));
    assert_eq!(pair.statistics(Side::Listener).receive_buffer_packets, WINDOW);
    assert_eq!(pair.statistics(Side::Caller).flow_window, 0);
    pair
}

#[test]
fn a_full_buffer_stops_the_sender_until_the_receiver_reads() {
    for seed in 0..4 {
        let mut pair = stalled(seed, &small_window(false));
        let sent = pair.statistics(Side::Caller).packets_sent;
        assert!(sent <= u64::from(WINDOW) + 16, "{sent} packets sent into a full buffer");
        pair.run_for(SECS(30));
        let probes = pair.statistics(Side::Caller).packets_sent - sent;
        assert!(probes < 60, "{probes} packets sent into a full buffer in 30 s");
        pair.read(Side::Listener);
        pair.run_for(SECS(1));
        assert_eq!(pair.delivered(Side::Caller).len(), 300);
        assert_eq!(pair.statistics(Side::Listener).packets_receive_dropped, 0);
    }
}

#[test]
fn the_ack_that_reports_room_may_be_lost() {
    for lost in 1..4 {
        let mut pair = stalled(1, &small_window(false));
        let mut acks = 0;
        pair.drop_where(move |_, datagram| {
            let reports_room = matches!(
                control(datagram),
                Some(Control::Ack(ack)) if ack.link().is_some_and(|link| link.free_buffer > 0)
            );
            acks += u32::from(reports_room);
            reports_room && acks <= lost
        });
        pair.run_for(SECS(1));
        pair.read(Side::Listener);
        pair.run_for(SECS(2));
        assert_eq!(pair.delivered(Side::Caller).len(), 300, "{lost} lost");
    }
}

#[test]
fn reordered_acks_do_not_stop_the_sender() {
    for seed in 0..10 {
        let mut pair = stalled(seed, &small_window(false));
        let reorder = Reorder::Late { share: 0.5, by: MS(15) };
        pair.set_link(Side::Listener, lossy(0.2).with_reorder(reorder).expect("a share"));
        for _ in 0..20 {
            pair.run_for(MS(200));
            pair.read(Side::Listener);
            pair.listener.reads = false;
        }
        pair.read(Side::Listener);
        pair.run_for(SECS(2));
        assert_eq!(pair.delivered(Side::Caller).len(), 300);
    }
}

/// The sender drops old messages while the window is closed. The ACK that opens it then
/// acknowledges packets before the sender's first one.
#[test]
fn a_sender_that_dropped_messages_continues_when_there_is_room() {
    for seed in 0..4 {
        let mut pair = stalled(seed, &small_window(true));
        pair.stream(Side::Caller, 1_000, MS(2));
        assert!(pair.statistics(Side::Caller).packets_send_dropped > 500);
        assert_eq!(pair.statistics(Side::Listener).receive_buffer_packets, WINDOW);
        pair.read(Side::Listener);
        pair.stream(Side::Caller, 1_000, MS(2));
        pair.run_for(SECS(1));
        let delivered = pair.delivered(Side::Caller);
        assert!(delivered.ends_with(&(1_800..2_300).collect::<Vec<_>>()), "{delivered:?}");
        let dropped = pair.statistics(Side::Listener).packets_receive_dropped;
        assert_eq!(delivered.len() as u64 + dropped, 2_300);
        assert_eq!((pair.caller.closed(), pair.listener.closed()), (None, None));
    }
}

#[test]
fn a_small_window_delays_a_stream_and_loses_nothing() {
    for seed in 0..4 {
        // 32 packets for a round trip of 20 ms plus an ACK period of 10 ms are a third of the
        // stream.
        let config = Config::default().with_tsbpd(false).with_flow_window(32).expect("in range");
        let mut pair = Pair::symmetric(seed, lossy(0.02));
        pair.connect(config.clone(), config);
        for _ in 0..1_000 {
            assert!(pair.send_next(Side::Caller));
            pair.run_for(MS(1) / 3);
        }
        pair.run_for(SECS(5));
        pair.assert_complete(Side::Caller);
    }
}
