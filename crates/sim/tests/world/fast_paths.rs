//! Files over fast paths with a round trip of up to a millisecond, between hosts that wake up late.

use std::time::Duration;

use punctual_netem::{LinkConfig, QueueLimit};
use punctual_proto::Config;
use punctual_sim::{HostConfig, Lateness, StreamConfig};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, US, srt};

/// A host with a free core, one whose core has other work, and one whose core is full.
const FREE: Lateness = Lateness {
    least: Duration::from_micros(20),
    mean: Duration::from_micros(50),
    most: Duration::from_millis(1),
};
const BUSY: Lateness = Lateness {
    least: Duration::from_micros(20),
    mean: Duration::from_micros(300),
    most: Duration::from_millis(3),
};
const FULL: Lateness = Lateness {
    least: Duration::from_micros(20),
    mean: Duration::from_millis(1),
    most: Duration::from_millis(8),
};

/// The rate at which a file arrives over a link of `mbps` with this round trip in the second half
/// of this time, Mb/s. Both hosts are late.
fn rate(config: &Config, mbps: u64, rtt: Duration, late: Lateness, time: Duration) -> f64 {
    let link = LinkConfig::default()
        .with_delay(rtt / 2)
        .with_rate(Some(Bitrate::from_mbps(mbps)))
        .with_queue(QueueLimit::Time(MS(10)));
    let host = HostConfig::default().with_lateness(late);
    let mut pair = Pair::of(1, link, host, host);
    let stream = pair.stream(srt(config), mbps * 3 / 2, 4);
    let stream = StreamConfig { payload: 14_560, series: Some(MS(100)), ..stream };
    let stream = pair.add(stream);
    pair.world.run_for(time);
    let outcome = pair.world.outcome(stream);
    let first = outcome.series.iter().find(|sample| sample.at >= time / 2).expect("a sample");
    let last = outcome.series.last().expect("a sample");
    let packets = last.receiver.packets_received_unique - first.receiver.packets_received_unique;
    packets as f64 * 1_500.0 * 8e-6 / (last.at - first.at).as_secs_f64()
}

/// The time that hosts take is most of such a round trip, and changes with their load. By losses a
/// file gets the whole link at best.
#[test]
fn by_delay_a_file_takes_a_fast_path_whole_between_late_hosts() {
    for mbps in [100, 500, 1_000] {
        for rtt in [US(60), MS(1)] {
            for late in [Lateness::default(), FREE, BUSY, FULL] {
                assert_whole(mbps, rtt, late, SECS(3));
            }
        }
    }
}

#[test]
fn by_delay_a_file_takes_ten_gigabits_a_second_whole_between_late_hosts() {
    for late in [FREE, FULL] {
        assert_whole(10_000, US(60), late, SECS(1));
    }
}

fn assert_whole(mbps: u64, rtt: Duration, late: Lateness, time: Duration) {
    let rate = rate(&Config::file(), mbps, rtt, late, time);
    let case = format!("{mbps} Mb/s, {rtt:?}, {late:?}: {rate:.0} Mb/s");
    println!("{case}");
    assert!(rate >= 0.95 * mbps as f64, "{case}");
}
