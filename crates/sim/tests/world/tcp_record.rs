//! NewReno's results, recorded, so that no change of the code alters them.

use punctual_netem::{LinkConfig, Loss, QueueLimit, Reorder};
use punctual_sim::{Traffic, TrafficConfig, TrafficStatistics};
use punctual_units::Bitrate;

use crate::common::{MS, Pair, SECS, delay};

/// The figures of a flow and of its link, in the order of [`RECORD`].
fn figures(flow: &TrafficStatistics, pair: &Pair) -> [u64; 11] {
    let link = pair.world.link_statistics(pair.there);
    let nanos = |time: std::time::Duration| time.as_nanos() as u64;
    [
        flow.sent,
        flow.delivered,
        flow.delivered_bytes,
        flow.goodput_bytes,
        flow.lost,
        flow.reductions,
        flow.timeouts,
        flow.window,
        nanos(flow.rtt),
        link.sent_bytes,
        nanos(link.queue_delay_max),
    ]
}

/// A flow of NewReno over this link, whose packets all get lost from second 12 to 15.
fn run(seed: u64, link: LinkConfig, max_window: u64) -> [u64; 11] {
    let mut pair = Pair::new(seed, link.clone());
    let traffic = TrafficConfig {
        traffic: Traffic::TcpLike { max_window },
        packet: 1_400,
        links: vec![pair.there],
        back: vec![pair.back],
        start: MS(300),
        duration: SECS(28),
    };
    let flow = pair.world.add_traffic(traffic).expect("traffic");
    pair.world.run_for(SECS(12));
    let outage = link.clone().with_loss(Loss::All).expect("no share in it");
    pair.world.set_link(pair.there, outage);
    pair.world.run_for(SECS(3));
    pair.world.set_link(pair.there, link);
    pair.world.run_for(SECS(15));
    figures(&pair.world.traffic_statistics(flow), &pair)
}

fn links() -> [(LinkConfig, u64); 5] {
    let share = "a share";
    let rate = |mbps| Some(Bitrate::from_mbps(mbps));
    let random = |link: LinkConfig, share| link.with_loss(Loss::Random(share)).expect("a share");
    let late = Reorder::Late { share: 0.02, by: MS(30) };
    let odd = delay(20).with_rate(rate(15)).with_duplicate(0.02).expect(share);
    [
        (delay(20).with_rate(rate(20)).with_queue(QueueLimit::Bytes(150_000)), 1 << 20),
        (random(delay(100).with_rate(rate(50)), 0.02), 6 << 20),
        (random(delay(5).with_rate(rate(10)).with_queue(QueueLimit::Time(MS(40))), 0.002), 6 << 20),
        (odd.with_reorder(late).expect(share).with_corrupt(0.01).expect(share), 6 << 20),
        (delay(40), 1_000),
    ]
}

#[test]
fn results_of_newreno_are_those_on_record() {
    for (seed, ((link, max_window), expected)) in (1..).zip(links().into_iter().zip(RECORD)) {
        assert_eq!(run(seed, link, max_window), expected, "seed {seed}");
    }
}

/// The figures of each link as they were before congestion control became exchangeable.
#[rustfmt::skip]
const RECORD: [[u64; 11]; 5] = [
    [41_996, 41_663, 58_328_200, 58_328_200, 333, 4, 4, 171_349, 67_759_720, 58_794_400, 59_664_000],
    [1_264, 1_231, 1_723_400, 1_723_400, 33, 18, 4, 16_086, 200_388_334, 1_769_600, 8_512_000],
    [22_395, 22_267, 31_173_800, 31_173_800, 128, 44, 4, 35_376, 26_480_832, 31_353_000, 39_248_000],
    [6_309, 6_427, 8_997_800, 8_695_400, 98, 74, 4, 6_782, 40_865_277, 8_832_600, 77_951_999],
    [317, 313, 438_200, 438_200, 4, 0, 4, 1_400, 80_000_000, 443_800, 0],
];
