//! Streams over QUIC: SRT in datagrams, and messages without SRT.

use punctual_netem::{LinkConfig, Loss, Reorder};
use punctual_quic::{CongestionControl, TransportConfig};
use punctual_sim::{End, HostCarriage, HostConfig, StreamId, StreamOutcome, Transport, WorldError};

use crate::common::{MS, Pair, SECS, delay, latency, lossy, srt};

fn transport(congestion: CongestionControl) -> TransportConfig {
    TransportConfig { congestion, ..TransportConfig::default() }
}

fn pair(seed: u64, link: LinkConfig, carriage: HostCarriage) -> Pair {
    let host = HostConfig::default().with_carriage(carriage);
    Pair::of(seed, link, host, host)
}

fn srt_over_quic() -> HostCarriage {
    HostCarriage::SrtOverQuic(transport(CongestionControl::None))
}

fn bare() -> HostCarriage {
    HostCarriage::Quic(transport(CongestionControl::None))
}

fn run(pair: &mut Pair, transport: Transport) -> StreamOutcome {
    let stream = run_stream(pair, transport);
    pair.world.outcome(stream)
}

/// Runs a stream of ten seconds, and the time in which its last messages arrive.
fn run_stream(pair: &mut Pair, transport: Transport) -> StreamId {
    let stream = pair.add(pair.stream(transport, 5, 10));
    pair.world.run_for(SECS(13));
    stream
}

#[test]
fn srt_over_quic_recovers_every_loss_and_delivers_in_time() {
    let mut pair = pair(1, lossy(20, 0.02), srt_over_quic());
    let outcome = run(&mut pair, srt(&latency(200)));
    assert_eq!((outcome.messages_sent, outcome.messages_received), (5_000, 5_000));
    assert!(outcome.sender.packets_retransmitted > 50);
    // The latency and half a round trip, as over UDP.
    let latency_us = outcome.latency_us;
    assert!(
        latency_us.min() >= Some(219_000) && latency_us.max() <= Some(241_000),
        "{latency_us:?}"
    );
}

#[test]
fn the_called_end_may_send() {
    let mut pair = pair(2, lossy(20, 0.02), srt_over_quic());
    let config = latency(200);
    let caller = End::Receiver;
    let transport = Transport::Srt { sender: config.clone(), receiver: config, caller };
    let outcome = run(&mut pair, transport);
    assert_eq!((outcome.messages_sent, outcome.messages_received), (5_000, 5_000));
}

#[test]
fn bare_datagrams_arrive_once_or_not_at_all() {
    let link = lossy(20, 0.01).with_reorder(Reorder::Late { share: 0.01, by: MS(5) });
    let mut pair = pair(3, link.expect("a share"), bare());
    let stream = run_stream(&mut pair, Transport::Quic);
    let outcome = pair.world.outcome(stream);
    let lost = outcome.messages_sent - outcome.messages_received;
    assert_eq!(outcome.messages_sent, 5_000);
    assert!((20..90).contains(&lost), "{lost}");
    assert_eq!(outcome.metrics.lost, lost);
    assert!(outcome.metrics.reordered > 10);
    assert_eq!((outcome.integrity.damaged, outcome.integrity.doubled), (0, 0));
    let info = pair.world.quic_info(stream, End::Sender).expect("it is there");
    assert_eq!((info.datagrams_sent, info.datagrams_dropped), (5_000, 0));
}

#[test]
fn a_client_behind_a_nat_that_forgets_its_port_stays_connected() {
    let mut pair = pair(5, lossy(20, 0.001), srt_over_quic());
    let stream = pair.add(pair.stream(srt(&latency(250)), 5, 10));
    pair.world.run_for(SECS(4));
    pair.world.rebind(pair.from, 33_000);
    pair.world.run_for(SECS(9));
    let outcome = pair.world.outcome(stream);
    assert_eq!((outcome.messages_sent, outcome.messages_received), (5_000, 5_000));
    assert_eq!(outcome.closed, None);
}

#[test]
fn two_streams_between_two_hosts_share_a_quic_connection() {
    let mut pair = pair(6, lossy(20, 0.01), srt_over_quic());
    let streams = [(); 2].map(|()| pair.add(pair.stream(srt(&latency(200)), 2, 5)));
    pair.world.run_for(SECS(8));
    for stream in streams {
        let outcome = pair.world.outcome(stream);
        assert_eq!((outcome.messages_sent, outcome.messages_received), (1_000, 1_000));
    }
    let [first, second] = streams.map(|it| pair.world.quic_info(it, End::Sender).unwrap());
    assert_eq!(first.packets_sent, second.packets_sent);
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let packets = |seed| {
        let link = delay(20).with_loss(Loss::Random(0.02)).expect("a share");
        let mut pair = pair(seed, link, srt_over_quic());
        pair.world.capture(pair.there);
        pair.world.capture(pair.back);
        run(&mut pair, srt(&latency(120)));
        pair.world.capture_of_all()
    };
    assert!(packets(7) == packets(7));
    assert!(packets(7) != packets(8));
}

#[test]
fn hosts_carry_what_the_stream_needs() {
    let mut world = pair(9, delay(1), bare());
    let refused = world.world.add_stream(world.stream(srt(&latency(120)), 1, 1));
    assert_eq!(refused, Err(WorldError::Carriage(world.from, world.to)));
    let datagrams = Transport::Quic;
    world.add(world.stream(datagrams.clone(), 1, 1));
    let refused = world.world.add_stream(world.stream(datagrams.clone(), 1, 1));
    assert_eq!(refused, Err(WorldError::SharedQuic(world.from, world.to)));
    let refused = {
        let mut pair = Pair::new(9, delay(1));
        pair.world.add_stream(pair.stream(datagrams, 1, 1)).map_err(|it| it.to_string())
    };
    assert!(refused.unwrap_err().contains("both need the same carriage"));
}
