//! Files over fast paths with a round trip of up to a millisecond, between hosts that wake up late.

use std::time::Duration;

use punctual_netem::{LinkConfig, QueueLimit};
use punctual_proto::Config;
use punctual_sim::{HostConfig, Lateness, StreamConfig};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, US, srt};

/// A host with a free core, and one whose core has other work.
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

/// The rate at which a file arrives over a link of `mbps` with this round trip in the two seconds
/// after the first one, Mb/s. Both hosts are late.
fn rate(config: &Config, mbps: u64, rtt: Duration, late: Lateness) -> f64 {
    let link = LinkConfig::default()
        .with_delay(rtt / 2)
        .with_rate(Some(Bitrate::from_mbps(mbps)))
        .with_queue(QueueLimit::Time(MS(10)));
    let host = HostConfig::default().with_lateness(late);
    let mut pair = Pair::of(1, link, host, host);
    let stream = pair.stream(srt(config), mbps * 3 / 2, 4);
    let stream = StreamConfig { payload: 14_560, series: Some(MS(100)), ..stream };
    let stream = pair.add(stream);
    pair.world.run_for(SECS(3));
    let outcome = pair.world.outcome(stream);
    let first = outcome.series.iter().find(|sample| sample.at >= SECS(1)).expect("a sample");
    let last = outcome.series.last().expect("a sample");
    let packets = last.receiver.packets_received_unique - first.receiver.packets_received_unique;
    packets as f64 * 1_500.0 * 8e-6 / (last.at - first.at).as_secs_f64()
}

/// The time that hosts take is most of such a round trip, and changes with their load.
#[test]
fn by_delay_a_file_is_as_fast_as_by_losses_between_late_hosts() {
    let by_losses = Config::file().with_option("ratecontrol", "file").expect("an option");
    for (mbps, rtt, late) in [
        (100, US(60), BUSY),
        (500, US(60), Lateness::default()),
        (500, US(60), FREE),
        (500, US(60), BUSY),
        (500, MS(1), FREE),
        (1_000, US(60), FREE),
        (1_000, US(60), BUSY),
        (1_000, MS(1), BUSY),
    ] {
        let [delay, losses] = [&Config::file(), &by_losses].map(|it| rate(it, mbps, rtt, late));
        let case = format!("{mbps} Mb/s, {rtt:?}, {late:?}: {delay:.0} and {losses:.0} Mb/s");
        println!("{case}");
        assert!(delay >= 0.95 * losses, "{case}");
    }
}
