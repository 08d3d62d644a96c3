//! The effect of each impairment on a stream of packets, by count and by clock.

use std::time::Duration;

use punctual_netem::{
    Arrival, Discipline, Jitter, Link, LinkConfig, Loss, QueueLimit, Reorder, presets,
};
use punctual_units::{Bitrate, Instant};

mod common;
use common::{Numbered, drain};

const MS: Duration = Duration::from_millis(1);

/// Sends `count` packets of 1250 bytes, one each `interval`, and takes out everything.
fn run(
    config: LinkConfig,
    seed: u64,
    count: u64,
    interval: Duration,
) -> (Link<Numbered>, Vec<Arrival<Numbered>>) {
    let mut link = Link::new(config, seed);
    let mut now = Instant::ORIGIN;
    for number in 0..count {
        link.send(now, Numbered::new(number, 1_250));
        now += interval;
    }
    let arrivals = drain(&mut link);
    (link, arrivals)
}

fn numbers(arrivals: &[Arrival<Numbered>]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.packet.number).collect()
}

/// Arrival instants in microseconds.
fn micros(arrivals: &[Arrival<Numbered>]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.at.as_micros()).collect()
}

fn at_10_mbps() -> LinkConfig {
    LinkConfig::default().with_rate(Some(Bitrate::from_mbps(10)))
}

#[test]
fn a_perfect_link_delivers_at_once_and_in_order() {
    let mut link = Link::new(LinkConfig::default(), 0);
    let now = Instant::from_millis(5);
    (0..3).for_each(|number| link.send(now, Numbered::new(number, 100)));
    assert_eq!(link.poll_timeout(), Some(now));
    let arrivals: Vec<_> = std::iter::from_fn(|| link.recv(now)).collect();
    assert_eq!(numbers(&arrivals), [0, 1, 2]);
    assert_eq!(link.poll_timeout(), None);
    assert_eq!((link.statistics().sent_bytes, link.statistics().delivered_bytes), (300, 300));
}

#[test]
fn rate_and_delay_add_up() {
    // 1250 bytes take 1 ms at 10 Mb/s; all three are sent at once.
    let (link, arrivals) = run(at_10_mbps().with_delay(20 * MS), 0, 3, Duration::ZERO);
    assert_eq!(micros(&arrivals), [21_000, 22_000, 23_000]);
    assert_eq!(link.statistics().queue_delay_max, 2 * MS);
}

#[test]
fn without_a_rate_nothing_waits_in_the_queue() {
    let config = LinkConfig::default()
        .with_queue(QueueLimit::Packets(0))
        .with_delay(50 * MS)
        .with_jitter(Jitter::Uniform { spread: 10 * MS })
        .with_duplicate(1.0)
        .unwrap();
    let mut link = Link::new(config, 0);
    link.send(Instant::ORIGIN, Numbered::new(0, 100));
    let due = link.poll_timeout().unwrap();
    assert_eq!(link.recv(due).map(|arrival| arrival.at), Some(due));
    assert_eq!(drain(&mut link).len(), 1);
}

#[test]
fn nothing_arrives_a_nanosecond_early() {
    let mut link = Link::new(LinkConfig::default().with_delay(MS), 0);
    link.send(Instant::ORIGIN, Numbered::new(0, 1));
    assert_eq!(link.recv(Instant::from_nanos(999_999)), None);
    assert!(link.recv(Instant::from_nanos(1_000_000)).is_some());
}

#[test]
fn a_full_queue_drops_its_tail() {
    let limits = [
        (QueueLimit::Packets(4), 5),
        (QueueLimit::Bytes(3 * 1_250 + 1_249), 4),
        (QueueLimit::Time(6 * MS), 7),
        (QueueLimit::Unlimited, 10),
    ];
    for (limit, delivered) in limits {
        let (link, arrivals) = run(at_10_mbps().with_queue(limit), 0, 10, Duration::ZERO);
        assert_eq!(numbers(&arrivals), (0..delivered).collect::<Vec<_>>(), "{limit:?}");
        assert_eq!(link.statistics().dropped_by_queue, 10 - delivered, "{limit:?}");
    }
}

#[test]
fn lost_packets_take_no_rate() {
    let mut link = Link::new(at_10_mbps().with_loss(Loss::All).unwrap(), 0);
    (0..5).for_each(|number| link.send(Instant::ORIGIN, Numbered::new(number, 1_250)));
    link.set_config(Instant::ORIGIN, at_10_mbps());
    link.send(Instant::ORIGIN, Numbered::new(5, 1_250));
    assert_eq!(micros(&drain(&mut link)), [1_000]);
    assert_eq!(link.statistics().lost, 5);
}

#[test]
fn a_blackout_spares_what_is_on_its_way() {
    let config = LinkConfig::default().with_delay(50 * MS);
    let mut link = Link::new(config.clone(), 0);
    for number in 0..100 {
        let now = Instant::from_millis(number);
        match number {
            40 => link.set_config(now, config.clone().with_loss(Loss::All).unwrap()),
            70 => link.set_config(now, config.clone()),
            _ => (),
        }
        link.send(now, Numbered::new(number, 1_250));
    }
    let arrivals = drain(&mut link);
    assert_eq!(numbers(&arrivals), (0..40).chain(70..100).collect::<Vec<_>>());
    assert!(arrivals.iter().all(|a| a.at.as_micros() == (a.packet.number + 50) * 1_000));
}

#[test]
fn after_a_delay_step_down_packets_wait_or_overtake() {
    let slow = LinkConfig::default().with_delay(10 * MS);
    for (keep_order, expected) in [(true, [0, 1, 2, 3]), (false, [2, 3, 0, 1])] {
        let slow = slow.clone().with_keep_order(keep_order);
        let fast = slow.clone().with_delay(2 * MS);
        let mut link = Link::new(slow, 0);
        (0..2).for_each(|n| link.send(Instant::from_millis(n), Numbered::new(n, 100)));
        link.set_config(Instant::from_millis(2), fast);
        (2..4).for_each(|n| link.send(Instant::from_millis(n), Numbered::new(n, 100)));
        assert_eq!(numbers(&drain(&mut link)), expected);
        assert_eq!(link.statistics().reordered, if keep_order { 0 } else { 2 });
    }
}

#[test]
fn a_stalled_link_goes_on_where_it_stopped() {
    let mut link = Link::new(at_10_mbps(), 0);
    (0..2).for_each(|number| link.send(Instant::ORIGIN, Numbered::new(number, 1_250)));
    link.set_config(Instant::from_micros(500), at_10_mbps().with_rate(Some(Bitrate::ZERO)));
    assert_eq!(link.poll_timeout(), None);
    assert_eq!(link.in_flight(), 2);
    link.set_config(Instant::from_millis(100), at_10_mbps());
    assert_eq!(micros(&drain(&mut link)), [100_500, 101_500]);
}

#[test]
fn an_instant_that_goes_backwards_counts_as_the_latest() {
    let mut link = Link::new(LinkConfig::default().with_delay(MS), 0);
    link.send(Instant::from_millis(10), Numbered::new(0, 1));
    link.send(Instant::from_millis(9), Numbered::new(1, 1));
    assert_eq!(micros(&drain(&mut link)), [11_000, 11_000]);
}

#[test]
fn duplicates_and_damage_have_their_shares() {
    let config = LinkConfig::default().with_duplicate(0.1).unwrap().with_corrupt(0.02).unwrap();
    let (link, arrivals) = run(config, 1, 100_000, MS);
    let statistics = link.statistics();
    // Five standard deviations are 474 copies and 234 damaged packets.
    assert!(statistics.duplicated.abs_diff(10_000) < 474, "{statistics:?}");
    assert!(statistics.corrupted.abs_diff(2_200) < 234, "{statistics:?}");
    assert_eq!(statistics.delivered, 100_000 + statistics.duplicated);
    let damaged = arrivals.iter().filter(|arrival| arrival.packet.damaged).count();
    assert_eq!(damaged as u64, statistics.corrupted);
}

#[test]
fn late_and_early_packets_change_places_with_their_neighbours() {
    let base = LinkConfig::default().with_delay(20 * MS);
    // Packets are 1 ms apart: two later ones come before one that is 2.5 ms late.
    let by = Duration::from_micros(2_500);
    let late = base.clone().with_reorder(Reorder::Late { share: 0.01, by }).unwrap();
    let (link, arrivals) = run(late, 2, 100_000, MS);
    let delays = |extra: u64| {
        arrivals.iter().filter(|a| a.at.as_micros() == a.packet.number * 1_000 + extra).count()
    };
    assert_eq!(delays(20_000) + delays(22_500), 100_000);
    assert!(delays(22_500).abs_diff(1_000) < 158, "{}", delays(22_500));
    let reordered = link.statistics().reordered;
    assert!(reordered.abs_diff(delays(22_500) as u64) < 30, "{reordered}");

    let early = base.with_reorder(Reorder::Ahead { share: 0.01, by }).unwrap();
    let (link, arrivals) = run(early, 2, 100_000, MS);
    assert_eq!(arrivals.len(), 100_000);
    // Each early packet makes the two before it arrive after a later one.
    assert!(link.statistics().reordered.abs_diff(2_000) < 330, "{}", link.statistics().reordered);
}

#[test]
fn jitter_without_order_has_the_mean_and_deviation_configured() {
    let base = LinkConfig::default().with_delay(50 * MS).with_keep_order(false);
    let jitters = [
        // A uniform's standard deviation is its width by the root of 12.
        (Jitter::Uniform { spread: 30 * MS }, 60_000.0 / 12_f64.sqrt()),
        (Jitter::Normal { std_dev: 10 * MS }, 10_000.0),
        (Jitter::Pareto { std_dev: 10 * MS }, 10_000.0),
    ];
    for (jitter, expected) in jitters {
        let (_, arrivals) = run(base.clone().with_jitter(jitter), 3, 100_000, MS);
        let delays: Vec<f64> = arrivals
            .iter()
            .map(|a| (a.at - Instant::from_millis(a.packet.number)).as_secs_f64() * 1e6)
            .collect();
        let mean = delays.iter().sum::<f64>() / 1e5;
        let deviation = (delays.iter().map(|d| (d - mean) * (d - mean)).sum::<f64>() / 1e5).sqrt();
        assert!((mean - 50_000.0).abs() < 300.0, "{jitter:?}: mean {mean}");
        // The long tail makes a sample's deviation vary much.
        let off = if matches!(jitter, Jitter::Pareto { .. }) { 0.15 } else { 0.02 };
        assert!((deviation / expected - 1.0).abs() < off, "{jitter:?}: deviation {deviation}");
    }
}

#[test]
fn one_impairment_does_not_move_the_others() {
    let base = LinkConfig::default()
        .with_delay(50 * MS)
        .with_jitter(Jitter::Normal { std_dev: 10 * MS })
        .with_keep_order(false);
    let arrivals_of = |config: LinkConfig| {
        let (_, mut arrivals) = run(config, 4, 2_000, MS);
        arrivals.sort_by_key(|arrival| arrival.packet.number);
        arrivals
    };
    let all = arrivals_of(base.clone());
    let some = arrivals_of(base.clone().with_loss(Loss::Random(0.3)).unwrap());
    assert!(some.len() < 1_500);
    assert!(some.iter().all(|a| a.at == all[usize::try_from(a.packet.number).unwrap()].at));
    let twice = arrivals_of(base.with_duplicate(0.3).unwrap());
    assert!(all.iter().all(|arrival| twice.contains(arrival)));
}

#[test]
fn seeds_differ_and_repeat() {
    let config = LinkConfig::default().with_loss(Loss::Random(0.5)).unwrap();
    let of = |seed| numbers(&run(config.clone(), seed, 1_000, MS).1);
    assert_eq!(of(1), of(1));
    let (one, two) = (of(1), of(2));
    // Neighbouring seeds are as unrelated as any: a quarter of the packets survives both.
    let both = one.iter().filter(|number| two.contains(number)).count();
    assert!(both.abs_diff(250) < 70, "{both}");
}

#[test]
fn codel_keeps_the_wait_short_where_tail_drop_fills_the_queue() {
    // 12 Mb/s for 10: a packet of 1250 bytes each 833 µs.
    let at = |discipline| {
        let config = at_10_mbps().with_discipline(discipline);
        let (link, arrivals) = run(config, 1, 24_000, Duration::from_micros(833));
        let sent = |number: u64| Instant::from_micros(number * 833);
        let waits: Vec<_> = arrivals.iter().map(|a| a.at - sent(a.packet.number)).collect();
        (link.statistics().clone(), waits[waits.len() / 2])
    };
    let (tail, wait) = at(Discipline::TailDrop);
    assert!(wait > 900 * MS, "{wait:?}");
    assert_eq!(tail.dropped_by_codel, 0);
    let (codel, wait) = at(Discipline::CODEL);
    assert!(wait < 200 * MS, "{wait:?}");
    assert!(codel.dropped_by_codel > 2_000 && codel.dropped_by_queue == 0, "{codel:?}");
    assert_eq!(codel.sent, codel.delivered + codel.dropped());
}

#[test]
fn codel_spares_a_burst_that_is_over_within_the_interval() {
    let config = at_10_mbps().with_discipline(Discipline::CODEL);
    let (link, _) = run(config, 1, 90, Duration::ZERO);
    assert_eq!(link.statistics().dropped(), 0);
}

#[test]
fn the_mobile_link_is_as_described() {
    // 5 Mb/s in packets of 1250 bytes.
    let (link, arrivals) = run(presets::mobile(), 6, 500_000, 2 * MS);
    let lost = link.statistics().lost as f64 / 5e5;
    assert!((lost - 0.021).abs() < 0.002, "{lost}");
    assert!((presets::mobile().loss.mean() - 0.02095).abs() < 1e-9);
    assert_eq!(link.statistics().reordered, 0);
    let mut delays: Vec<f64> = arrivals
        .iter()
        .map(|a| (a.at - Instant::from_millis(2 * a.packet.number)).as_secs_f64() * 1e3)
        .collect();
    // RFC 3550's jitter is this mean, only smoothed.
    let count = delays.len() as f64;
    let jitter = delays.windows(2).map(|d| (d[1] - d[0]).abs()).sum::<f64>() / count;
    let mean = delays.iter().sum::<f64>() / count;
    delays.sort_by(f64::total_cmp);
    let p99 = delays[delays.len() / 100 * 99];
    assert!((mean - 30.0).abs() < 1.0, "{mean}");
    assert!((jitter - 3.0).abs() < 0.5, "{jitter}");
    assert!((p99 - 40.0).abs() < 1.0, "{p99}");
}
