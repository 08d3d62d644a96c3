//! The delay-based congestion control of streams of bytes: alone on a link, beside others, and
//! while the link changes.

use std::time::Duration;

use punctual_netem::{LinkConfig, Loss, QueueLimit};
use punctual_proto::{Config, RatePolicy};
use punctual_sim::{
    LinkSnapshot, StreamConfig, StreamId, TcpConfig, TcpControl, Traffic, TrafficConfig,
};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, srt};

const MBPS: fn(u64) -> Bitrate = Bitrate::from_mbps;
/// The rate of the links, Mb/s.
const LINK: u64 = 50;
/// A packet on the wire, bytes.
const PACKET: f64 = 1_500.0;

/// A link with this round trip that loses this share of the packets, and whose queue holds a round
/// trip.
fn link(rtt: Duration, loss: f64) -> LinkConfig {
    let queue = (LINK as f64 * 1e6 / 8.0 * rtt.as_secs_f64()) as usize;
    LinkConfig::default()
        .with_rate(Some(MBPS(LINK)))
        .with_delay(rtt / 2)
        .with_loss(Loss::Random(loss))
        .expect("a share")
        .with_queue(QueueLimit::Bytes(queue))
}

/// Two hosts with such a link each way, of which the first is recorded.
fn pair(seed: u64, rtt: Duration, loss: f64) -> Pair {
    let mut pair = Pair::new(seed, link(rtt, loss));
    pair.world.record_link(pair.there, MS(10)).expect("a period");
    pair
}

/// Adds a stream that always has something to send, from `start` on.
fn add(pair: &mut Pair, config: &Config, start: Duration) -> StreamId {
    let stream = pair.stream(srt(config), 1_000, 600);
    pair.add(StreamConfig { payload: 14_560, start, series: Some(MS(500)), ..stream })
}

/// The rate of packets that have arrived, without duplicates and with their headers, Mb/s, between
/// two times since the start of the stream.
fn rate(pair: &Pair, stream: StreamId, from: Duration, to: Duration) -> f64 {
    let outcome = pair.world.outcome(stream);
    let within = outcome.series.iter().filter(|sample| (from..=to).contains(&sample.at));
    let samples: Vec<_> = within.collect();
    let [first, .., last] = samples[..] else { panic!("no samples from {from:?} to {to:?}") };
    let packets = last.receiver.packets_received_unique - first.receiver.packets_received_unique;
    packets as f64 * PACKET * 8e-6 / (last.at - first.at).as_secs_f64()
}

/// The time that a packet waits in the queue of the link in its first direction, at each sample
/// between two times.
fn queues(pair: &Pair, from: Duration, to: Duration) -> Vec<Duration> {
    let config = pair.world.link_config(pair.there);
    let packet = PACKET * 8.0 / config.rate.expect("a rate").as_bits_per_sec() as f64;
    let queue = |sample: &LinkSnapshot| {
        let in_link = Duration::from_secs_f64(sample.in_flight as f64 * packet);
        in_link.saturating_sub(config.delay)
    };
    let samples = pair.world.link_series(pair.there).iter();
    samples.filter(|sample| (from..=to).contains(&sample.at)).map(queue).collect()
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / times.len() as u32
}

#[test]
fn alone_it_fills_the_link_whatever_is_lost_and_keeps_its_queue_short() {
    for rtt in [20, 60, 200, 300] {
        for (seed, loss) in [(rtt, 0.0), (rtt, 0.05), (1, 0.1), (2, 0.1)] {
            let mut pair = pair(seed, MS(rtt), loss);
            let stream = add(&mut pair, &Config::file(), Duration::ZERO);
            pair.world.run_for(SECS(32));
            let rate = rate(&pair, stream, SECS(10), SECS(30));
            let share = rate / (LINK as f64 * (1.0 - loss));
            let mut queues = queues(&pair, SECS(10), SECS(30));
            queues.sort();
            let (mean, high) = (mean(&queues), queues[queues.len() * 95 / 100]);
            let target = (MS(rtt) / 8).clamp(MS(5), MS(25));
            println!("RTT {rtt} ms, loss {loss}: {share:.3}, queue {mean:.1?}, 95 % {high:.1?}");
            assert!(share >= 0.97, "RTT {rtt} ms, loss {loss}: {share} of the link");
            assert!(mean <= target, "RTT {rtt} ms, loss {loss}: mean queue {mean:?}");
            assert!(high <= target + MS(5), "RTT {rtt} ms, loss {loss}: queue {high:?}");
        }
    }
}

#[test]
fn a_stream_finds_the_rate_of_a_long_link_within_three_seconds() {
    let mut pair = pair(1, MS(200), 0.0);
    let stream = add(&mut pair, &Config::file(), Duration::ZERO);
    pair.world.run_for(SECS(5));
    let rate = rate(&pair, stream, SECS(3), SECS(4));
    assert!(rate > 0.9 * LINK as f64, "{rate} Mb/s in the fourth second");
}

#[test]
fn two_fair_streams_share_a_link_within_a_tenth() {
    for rtt in [20, 100, 200] {
        for loss in [0.0, 0.02] {
            let mut pair = pair(rtt, MS(rtt), loss);
            let first = add(&mut pair, &Config::file(), Duration::ZERO);
            let second = add(&mut pair, &Config::file(), SECS(10));
            pair.world.run_for(SECS(95));
            let (first, second) =
                (rate(&pair, first, SECS(50), SECS(90)), rate(&pair, second, SECS(40), SECS(80)));
            let fair = LINK as f64 * (1.0 - loss) / 2.0;
            let is_fair = |rate: f64| (0.9 * fair..=1.1 * fair).contains(&rate);
            assert!(
                is_fair(first) && is_fair(second),
                "RTT {rtt} ms, loss {loss}: {first}, {second} Mb/s"
            );
            let sum = (first + second) / (LINK as f64 * (1.0 - loss));
            assert!(sum > 0.97, "RTT {rtt} ms, loss {loss}: {sum} of the link in all");
        }
    }
}

#[test]
fn a_stream_of_high_policy_takes_about_two_shares() {
    let mut pair = pair(1, MS(60), 0.0);
    let fair = add(&mut pair, &Config::file(), Duration::ZERO);
    let high = Config::file().with_rate_policy(RatePolicy::High);
    let high = add(&mut pair, &high, SECS(5));
    pair.world.run_for(SECS(90));
    let fair = rate(&pair, fair, SECS(45), SECS(85));
    let high = rate(&pair, high, SECS(40), SECS(80));
    assert!((1.5..=2.6).contains(&(high / fair)), "high {high} Mb/s, fair {fair} Mb/s");
}

#[test]
fn a_link_whose_rate_halves_is_followed_within_two_seconds() {
    for rtt in [20, 60, 100, 200] {
        let mut pair = pair(rtt, MS(rtt), 0.0);
        let stream = add(&mut pair, &Config::file(), Duration::ZERO);
        pair.world.run_for(SECS(12));
        let before = pair.world.link_statistics(pair.there).dropped_by_queue;
        let halved = pair.world.link_config(pair.there).clone().with_rate(Some(MBPS(LINK / 2)));
        pair.world.set_link(pair.there, halved);
        pair.world.run_for(SECS(10));
        let lost = pair.world.link_statistics(pair.there).dropped_by_queue - before;
        let held = LINK as f64 * 1e6 / 8.0 * rtt as f64 * 1e-3 / PACKET;
        let late = mean(&queues(&pair, SECS(14), SECS(15)));
        let rate = rate(&pair, stream, SECS(14), SECS(20));
        assert!((lost as f64) <= held, "RTT {rtt} ms: {lost} lost, the queue holds {held}");
        assert!(late < MS(35), "RTT {rtt} ms: a queue of {late:?} two seconds later");
        assert!(rate > 0.95 * (LINK / 2) as f64, "RTT {rtt} ms: {rate} Mb/s");
    }
}

/// The rate of a stream over a link whose delay wanders between two values, milliseconds one way,
/// within a period, and jumps by up to 2.4 ms ten times a second, as over radio. Mb/s, from the
/// tenth second to the end of the second minute.
fn wandering(policy: RatePolicy, loss: f64, least: f64, most: f64, period: Duration) -> f64 {
    let mut pair = pair(7, MS(50), loss);
    let config = Config::file().with_rate_policy(policy);
    let stream = add(&mut pair, &config, Duration::ZERO);
    for step in 0..1_200_u64 {
        let phase = step as f64 * 0.1 / period.as_secs_f64() * std::f64::consts::TAU;
        let jump = (step * 7_919 % 13) as f64 * 0.2;
        let delay = least + (most - least) * (1.0 - libm::cos(phase)) / 2.0 + jump;
        let link = pair.world.link_config(pair.there).clone();
        let link = link.with_delay(Duration::from_secs_f64(delay * 1e-3));
        pair.world.set_link(pair.there, link);
        pair.world.run_for(MS(100));
    }
    rate(&pair, stream, SECS(10), SECS(119))
}

#[test]
fn a_round_trip_that_wanders_as_over_radio_does_not_slow_a_stream() {
    let paths = [(20.0, 80.0, 60), (30.0, 50.0, 30), (25.0, 150.0, 60)];
    let fair = paths.map(|path| (RatePolicy::Fair, path));
    for (policy, (least, most, period)) in fair.into_iter().chain([(RatePolicy::Low, paths[0])]) {
        let rate = wandering(policy, 0.01, least, most, SECS(period));
        let share = rate / (LINK as f64 * 0.99);
        println!("{policy:?}, {least} to {most} ms in {period} s: {rate:.1} Mb/s");
        assert!(
            share > 0.65,
            "{policy:?}, {least} to {most} ms in {period} s: {share} of the link"
        );
    }
}

#[test]
fn a_target_rate_is_kept_and_a_least_rate_is_never_undercut() {
    let mut pair = pair(1, MS(60), 0.01);
    let config = Config::file().with_target_rate(MBPS(20));
    let stream = add(&mut pair, &config, Duration::ZERO);
    pair.world.run_for(SECS(20));
    let sent = pair.world.outcome(stream).sender;
    let rate = sent.packets_sent as f64 * PACKET * 8e-6 / 20.0;
    assert!((19.0..=20.2).contains(&rate), "{rate} Mb/s, retransmissions included");

    let mut pair = self::pair(1, MS(60), 0.0);
    let low = Config::file().with_rate_policy(RatePolicy::Low).with_min_rate(MBPS(10));
    let stream = add(&mut pair, &low, Duration::ZERO);
    add_traffic(&mut pair, Traffic::TcpLike { max_window: 1 << 30 });
    pair.world.run_for(SECS(40));
    let before = pair.world.outcome(stream).sender.packets_sent;
    pair.world.run_for(SECS(20));
    let sent = pair.world.outcome(stream).sender.packets_sent - before;
    let rate = sent as f64 * PACKET * 8e-6 / 20.0;
    assert!((9.9..=12.0).contains(&rate), "{rate} Mb/s beside a flow of TCP");
}

#[test]
fn a_fixed_rate_is_sent_whatever_others_need() {
    let mut pair = pair(1, MS(60), 0.0);
    let fixed = Config::file().with_rate_policy(RatePolicy::Fixed).with_target_rate(MBPS(20));
    let stream = add(&mut pair, &fixed, Duration::ZERO);
    add_traffic(&mut pair, Traffic::Constant { rate: MBPS(60) });
    pair.world.run_for(SECS(20));
    let sent = pair.world.outcome(stream).sender.packets_sent;
    let rate = sent as f64 * PACKET * 8e-6 / 20.0;
    assert!((19.5..=20.2).contains(&rate), "{rate} Mb/s");
}

/// Megabits per second of a stream with this policy, and of a TCP connection beside it from the
/// fifth second on, in two minutes after the 20th second.
fn beside(control: TcpControl, rtt: Duration, policy: RatePolicy) -> (f64, f64) {
    let mut pair = pair(1, rtt, 0.0);
    let stream = add(&mut pair, &Config::file().with_rate_policy(policy), Duration::ZERO);
    let tcp = add_traffic(&mut pair, Traffic::Tcp(TcpConfig::new(control)));
    pair.world.run_for(SECS(20));
    let before = pair.world.traffic_statistics(tcp).goodput_bytes;
    pair.world.run_for(SECS(121));
    let bytes = pair.world.traffic_statistics(tcp).goodput_bytes - before;
    (rate(&pair, stream, SECS(20), SECS(140)), bytes as f64 * 8e-6 / 121.0)
}

#[test]
fn a_fair_stream_beside_cubic_has_between_a_third_and_two_thirds() {
    for rtt in [20, 60, 100, 200] {
        let (stream, tcp) = beside(TcpControl::Cubic, MS(rtt), RatePolicy::Fair);
        let share = stream / (stream + tcp);
        println!("RTT {rtt} ms: {stream:.1} / {tcp:.1} Mb/s");
        assert!((0.333..=0.667).contains(&share), "RTT {rtt} ms: {share}");
    }
}

/// CUBIC has most of a long path beside NewReno, and so has a stream, which competes as one flow of
/// it.
#[test]
fn a_fair_stream_beside_newreno_has_at_most_as_much_as_cubic() {
    // CUBIC's shares of the same link, beside one flow of NewReno.
    for (rtt, cubic) in [(20, 0.56), (60, 0.70), (100, 0.83), (200, 0.91)] {
        let (stream, tcp) = beside(TcpControl::NewReno, MS(rtt), RatePolicy::Fair);
        let share = stream / (stream + tcp);
        println!("RTT {rtt} ms: {stream:.1} / {tcp:.1} Mb/s, CUBIC {cubic}");
        assert!((0.25..cubic + 0.05).contains(&share), "RTT {rtt} ms: {share}");
    }
}

/// BBR gives way neither to a queue nor, in version 1, to losses: a stream has what CUBIC has
/// there.
#[test]
fn a_fair_stream_beside_bbr_has_at_least_a_fifteenth() {
    for control in [TcpControl::Bbr, TcpControl::Bbr3] {
        for rtt in [20, 60, 200] {
            let (stream, tcp) = beside(control, MS(rtt), RatePolicy::Fair);
            let share = stream / (stream + tcp);
            println!("{control:?}, RTT {rtt} ms: {stream:.1} / {tcp:.1} Mb/s");
            assert!(share >= 1.0 / 15.0, "{control:?}, RTT {rtt} ms: {share}");
        }
    }
}

/// A queue that others keep full does not grow, so that only losses end the slow start.
#[test]
fn a_stream_that_joins_tcp_at_a_full_queue_does_not_flood_it() {
    for rtt in [20, 60] {
        for control in [TcpControl::Cubic, TcpControl::NewReno] {
            for start in [SECS(12), MS(12_500), SECS(13)] {
                let mut pair = pair(1, MS(rtt), 0.0);
                add(&mut pair, &Config::file(), start);
                let tcp = Traffic::Tcp(TcpConfig::new(control));
                add_traffic_for(&mut pair, tcp, (Duration::ZERO, SECS(600)));
                pair.world.run_for(start + SECS(6));
                let dropped = |at: Duration| {
                    let mut samples = pair.world.link_series(pair.there).iter();
                    let sample = samples.find(|sample| sample.at >= at).expect("a sample");
                    sample.statistics.dropped_by_queue
                };
                let dropped = dropped(start + SECS(5)) - dropped(start - SECS(1));
                println!("RTT {rtt} ms, {control:?}, after {start:?}: {dropped} dropped");
                // A second of the link has 4,167 packets.
                assert!(dropped < 1_500, "RTT {rtt} ms, {control:?}, {start:?}: {dropped}");
            }
        }
    }
}

/// A test of the path tells nothing to a stream with a small share of it.
#[test]
fn beside_four_flows_of_cubic_a_stream_has_two_thirds_of_its_share() {
    let mut pair = pair(1, MS(100), 0.0);
    let stream = add(&mut pair, &Config::file(), Duration::ZERO);
    for _ in 0..4 {
        add_traffic(&mut pair, Traffic::Tcp(TcpConfig::new(TcpControl::Cubic)));
    }
    pair.world.run_for(SECS(121));
    let rate = rate(&pair, stream, SECS(20), SECS(120));
    assert!(rate > LINK as f64 / 5.0 * 2.0 / 3.0, "{rate} Mb/s");
}

#[test]
fn four_fair_streams_that_follow_each_other_soon_share_a_link() {
    for loss in [0.0, 0.02] {
        let mut pair = pair(1, MS(200), loss);
        let starts = [0, 5, 10, 15].map(SECS);
        let streams = starts.map(|start| (add(&mut pair, &Config::file(), start), start));
        pair.world.run_for(SECS(101));
        let rates =
            streams.map(|(stream, start)| rate(&pair, stream, SECS(60) - start, SECS(100) - start));
        let fair = LINK as f64 * (1.0 - loss) / 4.0;
        let are_fair = rates.iter().all(|rate| (0.9 * fair..=1.15 * fair).contains(rate));
        assert!(are_fair, "loss {loss}: {rates:?} Mb/s");
    }
}

#[test]
fn a_stream_has_the_link_again_after_bbr() {
    let mut pair = pair(1, MS(100), 0.0);
    let stream = add(&mut pair, &Config::file(), Duration::ZERO);
    let bbr = Traffic::Tcp(TcpConfig::new(TcpControl::Bbr));
    add_traffic_for(&mut pair, bbr, (SECS(5), SECS(55)));
    pair.world.run_for(SECS(121));
    let rate = rate(&pair, stream, SECS(95), SECS(120));
    let late = mean(&queues(&pair, SECS(95), SECS(120)));
    assert!(rate > 0.95 * LINK as f64, "{rate} Mb/s");
    assert!(late < MS(13), "a queue of {late:?}");
}

#[test]
fn a_stream_of_low_policy_leaves_others_nine_tenths() {
    for control in [TcpControl::NewReno, TcpControl::Cubic, TcpControl::Bbr] {
        for rtt in [20, 60, 200] {
            let (_, tcp) = beside(control, MS(rtt), RatePolicy::Low);
            let least = 0.9 * LINK as f64;
            assert!(tcp >= least, "{control:?}, RTT {rtt} ms: TCP has {tcp} Mb/s");
        }
    }
}

/// Adds traffic over the link from the fifth second on.
fn add_traffic(pair: &mut Pair, traffic: Traffic) -> punctual_sim::TrafficId {
    add_traffic_for(pair, traffic, (SECS(5), SECS(600)))
}

/// Adds traffic over the link, for `duration` from `start` on.
fn add_traffic_for(
    pair: &mut Pair,
    traffic: Traffic,
    (start, duration): (Duration, Duration),
) -> punctual_sim::TrafficId {
    let config = TrafficConfig {
        traffic,
        packet: 1_500,
        links: vec![pair.there],
        back: vec![pair.back],
        start,
        duration,
    };
    pair.world.add_traffic(config).expect("traffic")
}
