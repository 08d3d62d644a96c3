//! Clocks that drift and hosts that wake up late.

use punctual_sim::{HostConfig, Lateness, Transport};

use crate::common::{MS, Pair, SECS, US, delay, latency, srt};

#[test]
fn a_receiver_follows_the_drift_of_the_senders_clock() {
    let fast = HostConfig::default().with_drift_ppm(200).expect("in range").with_offset(SECS(77));
    let mut pair = Pair::of(1, delay(20), fast, HostConfig::default());
    let stream = pair.add(pair.stream(srt(&latency(120)), 10, 120));
    pair.world.run_for(SECS(122));
    let outcome = pair.world.outcome(stream);
    assert_eq!(outcome.messages_received, outcome.messages_sent);
    // Without the correction the messages would be 24 ms early by the end.
    assert!(outcome.receiver.drift_micros < -15_000, "{}", outcome.receiver.drift_micros);
    let (least, most) = (outcome.latency_us.min().unwrap(), outcome.latency_us.max().unwrap());
    assert!(least > 135_000 && most < 145_000, "{least} to {most}");
}

#[test]
fn a_host_that_wakes_up_late_delivers_late_by_as_much() {
    let late = Lateness { least: US(30), mean: US(20), most: US(400) };
    let hosts = [HostConfig::default(), HostConfig::default().with_lateness(late)];
    let [from, to] = hosts;
    let mut pair = Pair::of(1, delay(20), from, to);
    let config = latency(120).with_drift_tracer(false);
    let stream = pair.add(pair.stream(srt(&config), 10, 10));
    pair.world.run_for(SECS(12));
    let outcome = pair.world.outcome(stream);
    assert_eq!(outcome.messages_received, 10_000);
    let least = outcome.latency_us.min().expect("messages");
    let average = outcome.metrics.latency_us_avg.expect("messages").unsigned_abs();
    // The handshake, too, was taken in late, and everything counts from there.
    assert!((140_030..140_900).contains(&least), "{least}");
    assert!((least + 5..least + 100).contains(&average), "{least} {average}");
    assert!(outcome.integrity.late > 9_000);
    assert!(outcome.integrity.late_max <= US(430), "{:?}", outcome.integrity.late_max);
    assert!(outcome.metrics.jitter_us > 5, "{}", outcome.metrics.jitter_us);
}

#[test]
fn a_late_sender_keeps_its_rate() {
    let late = Lateness { least: MS(3), mean: MS(2), most: MS(10) };
    let sender = HostConfig::default().with_lateness(late);
    let mut pair = Pair::of(1, delay(20), sender, HostConfig::default());
    let streams = [srt(&latency(120)), Transport::Udp]
        .map(|transport| pair.add(pair.stream(transport, 10, 10)));
    pair.world.run_for(SECS(12));
    for stream in streams {
        let outcome = pair.world.outcome(stream);
        assert_eq!((outcome.messages_sent, outcome.messages_received), (10_000, 10_000));
    }
}

#[test]
fn noise_of_the_hosts_raises_the_rtt_and_its_variance() {
    let late = Lateness { least: US(50), mean: US(100), most: MS(2) };
    let rtt = |host: HostConfig| {
        let mut pair = Pair::of(1, delay(20), host, host);
        let stream = pair.add(pair.stream(srt(&latency(120)), 10, 10));
        pair.world.run_for(SECS(12));
        let sender = pair.world.outcome(stream).sender;
        (sender.rtt, sender.rtt_variance)
    };
    let (quiet, quiet_variance) = rtt(HostConfig::default());
    let (noisy, noisy_variance) = rtt(HostConfig::default().with_lateness(late));
    assert!(quiet.abs_diff(MS(40)) < US(50), "{quiet:?}");
    assert!(noisy > MS(40) + US(150), "{noisy:?}");
    assert!(noisy_variance > quiet_variance + US(30), "{quiet_variance:?} {noisy_variance:?}");
}

#[test]
fn a_stream_goes_on_when_a_nat_gives_its_host_another_port() {
    for (path_update, moves) in [(true, true), (false, true), (true, false)] {
        let mut pair = Pair::new(1, delay(20));
        let config = latency(400).with_path_update(path_update);
        let stream = pair.add(pair.stream(srt(&config), 10, 10));
        pair.world.run_for(SECS(5));
        if moves {
            pair.world.rebind(pair.from, 12_345);
        }
        pair.world.run_for(SECS(7));
        let outcome = pair.world.outcome(stream);
        let all = outcome.messages_received == outcome.messages_sent;
        assert_eq!(all, path_update || !moves);
        assert_eq!(outcome.receiver.path_changes, u64::from(path_update && moves));
    }
}
