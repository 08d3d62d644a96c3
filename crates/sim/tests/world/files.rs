//! Files: streams of bytes and messages of several packets, whose application waits for room.

use std::time::Duration;

use punctual_proto::{BufferSize, Config, Transmission};
use punctual_sim::{StreamConfig, StreamOutcome, WorldError};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, delay, latency, lossy, srt};

fn messages() -> Config {
    Config::file().with_transmission(Transmission::Messages)
}

#[track_caller]
fn assert_whole(outcome: &StreamOutcome, messages: u64, payload: u64) {
    assert_eq!((outcome.messages_sent, outcome.messages_received), (messages, messages));
    assert_eq!(outcome.bytes_received, messages * payload);
    assert_eq!((outcome.metrics.lost, outcome.messages_refused), (0, 0));
    assert_eq!(outcome.integrity, Default::default());
    assert_eq!(outcome.behind, Duration::ZERO);
}

#[test]
fn bytes_and_messages_arrive_whole_and_in_order_over_a_link_that_loses() {
    for config in [Config::file(), messages()] {
        for payload in [100, 1_456, 25_000] {
            let mut pair = Pair::new(1, lossy(20, 0.02));
            let stream = StreamConfig { payload, ..pair.stream(srt(&config), 5, 2) };
            let stream = pair.add(stream);
            pair.world.run_for(SECS(60));
            let outcome = pair.world.outcome(stream);
            assert!(outcome.sender.packets_retransmitted > 0, "{payload}");
            let messages = 10_000_000_u64.div_ceil(8 * payload as u64);
            assert_whole(&outcome, messages, payload as u64);
        }
    }
}

#[test]
fn the_source_of_a_file_waits_for_room_and_leaves_nothing_out() {
    let narrow = delay(20).with_rate(Some(Bitrate::from_mbps(5)));
    let config = Config::file().with_send_buffer(BufferSize::Packets(64));
    let mut pair = Pair::new(1, narrow);
    let stream = pair.add(StreamConfig { payload: 10_000, ..pair.stream(srt(&config), 20, 1) });
    pair.world.run_for(SECS(2));
    let outcome = pair.world.outcome(stream);
    assert!(outcome.behind > MS(500), "{:?}", outcome.behind);
    pair.world.run_for(SECS(20));
    assert_whole(&pair.world.outcome(stream), 250, 10_000);
}

#[test]
fn ends_and_ports_are_of_one_kind() {
    let mut pair = Pair::new(1, delay(20));
    let transport = punctual_sim::Transport::Srt {
        sender: Config::file(),
        receiver: messages(),
        caller: punctual_sim::End::Sender,
    };
    let mixed = pair.stream(transport, 1, 1);
    assert_eq!(pair.world.add_stream(mixed), Err(WorldError::Ends));
    pair.add(pair.stream(srt(&latency(120)), 1, 1));
    let file = pair.stream(srt(&Config::file()), 1, 1);
    assert_eq!(pair.world.add_stream(file), Err(WorldError::Transmission(pair.to)));
    let small = messages().with_send_buffer(BufferSize::Packets(32));
    let large = StreamConfig { payload: 50_000, ..pair.stream(srt(&small), 1, 1) };
    let refused = pair.world.add_stream(large);
    assert_eq!(refused, Err(WorldError::Payload { payload: 50_000, min: 24, max: 32 * 1_440 }));
}
