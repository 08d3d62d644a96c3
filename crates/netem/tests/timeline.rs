//! The effect of a timeline on packets, and its times.

use std::time::Duration;

use punctual_netem::{
    Arrival, Change, Event, Link, LinkConfig, LinkProfile, Loss, QueueLimit, Ramp, Timeline,
};
use punctual_units::{Bitrate, Instant};

mod common;
use common::{Numbered, drain};

const MS: Duration = Duration::from_millis(1);

fn link(config: LinkConfig, timeline: &str) -> Link<Numbered> {
    let timeline: Timeline = timeline.parse().expect("a timeline");
    Link::new(LinkProfile::from(config).with_timeline(timeline), 1)
}

/// Sends `count` packets of 1250 bytes, one each millisecond, and takes out everything.
fn run(mut link: Link<Numbered>, count: u64) -> (Link<Numbered>, Vec<Arrival<Numbered>>) {
    for number in 0..count {
        link.send(Instant::from_millis(number), Numbered::new(number, 1_250));
    }
    let arrivals = drain(&mut link);
    (link, arrivals)
}

fn numbers(arrivals: &[Arrival<Numbered>]) -> Vec<u64> {
    arrivals.iter().map(|arrival| arrival.packet.number).collect()
}

/// Milliseconds from sending to arrival of the packet of this number.
fn delay(arrivals: &[Arrival<Numbered>], number: u64) -> f64 {
    let arrival = arrivals.iter().find(|arrival| arrival.packet.number == number);
    let arrival = arrival.expect("it arrived");
    (arrival.at - Instant::from_millis(number)).as_secs_f64() * 1e3
}

fn at_mbps(mbps: u64) -> LinkConfig {
    LinkConfig::default().with_rate(Some(Bitrate::from_mbps(mbps)))
}

#[test]
fn a_step_holds_from_its_instant_on() {
    let (_, arrivals) =
        run(link(LinkConfig::default().with_delay(5 * MS), "50ms: delay=20ms"), 100);
    assert_eq!(delay(&arrivals, 49), 5.0);
    assert_eq!(delay(&arrivals, 50), 20.0);
}

#[test]
fn a_packet_that_overtakes_by_a_step_is_taken_out_at_its_instant() {
    // They leave after 1 and 2 ms; the step comes between, and its link does not keep the order.
    let config = LinkConfig { keep_order: false, ..at_mbps(10).with_delay(50 * MS) };
    let mut link = link(config, "1500us: delay=1ms");
    (0..2).for_each(|n| link.send(Instant::ORIGIN, Numbered::new(n, 1_250)));
    let mut taken_out = Vec::new();
    while let Some(due) = link.poll_timeout() {
        while let Some(arrival) = link.recv(due) {
            taken_out.push((arrival.packet.number, due));
        }
    }
    assert_eq!(taken_out, [(1, Instant::from_millis(3)), (0, Instant::from_millis(51))]);
}

#[test]
fn time_zero_is_the_start_or_else_the_first_call() {
    let zero = Instant::from_millis(7_000);
    for start in [true, false] {
        let mut link = link(LinkConfig::default(), "10ms: loss=all");
        assert_eq!(link.started(), None);
        if start {
            link.start(zero);
        }
        for millis in [0, 9, 10] {
            link.send(zero + millis * MS, Numbered::new(u64::from(millis), 1));
        }
        assert_eq!(link.started(), Some(zero));
        assert_eq!(numbers(&drain(&mut link)), [0, 9]);
        link.start(zero + 50 * MS);
        assert_eq!(link.started(), Some(zero), "a second start does not change it");
    }
}

#[test]
fn a_ramp_of_the_delay_goes_straight() {
    let config = LinkConfig::default().with_delay(10 * MS);
    let (_, arrivals) = run(link(config, "20ms: delay=110ms over 100ms"), 200);
    assert_eq!(delay(&arrivals, 19), 10.0);
    assert_eq!(delay(&arrivals, 45), 35.0);
    assert_eq!(delay(&arrivals, 70), 60.0);
    assert_eq!(delay(&arrivals, 120), 110.0);
    assert_eq!(delay(&arrivals, 199), 110.0);
}

#[test]
fn a_ramp_of_the_rate_transmits_as_much_as_a_straight_line() {
    // From 10 to 30 Mb/s in a second: 20 Mbit, that is 2000 packets of 1250 bytes.
    let config = at_mbps(10).with_queue(QueueLimit::Unlimited);
    let mut link = link(config, "0s: rate=30Mbps over 1s");
    (0..4_000).for_each(|n| link.send(Instant::ORIGIN, Numbered::new(n, 1_250)));
    let arrivals = drain(&mut link);
    let within = |millis| {
        arrivals.iter().filter(|arrival| arrival.at <= Instant::from_millis(millis)).count()
    };
    assert_eq!(within(1_000), 2_000);
    // Half of the time: 10 Mb/s and a quarter of the rise.
    assert_eq!(within(500), 750);
    assert_eq!(within(1_100), 2_300);
}

#[test]
fn a_ramp_of_the_loss_starts_at_the_mean_loss_before_it() {
    let timeline = Timeline::new().with(Event::ramp(10_000 * MS, Ramp::Loss(0.5), 10_000 * MS));
    let config = LinkConfig::default().with_loss(Loss::Random(0.1)).unwrap();
    let profile = LinkProfile::from(config).with_timeline(timeline);
    let mut link = Link::new(profile, 3);
    let mut lost = [0; 3];
    for number in 0..300_000_u64 {
        let before = link.statistics().lost;
        link.send(Instant::from_micros(number * 100), Numbered::new(number, 1));
        lost[usize::try_from(number / 100_000).unwrap()] += link.statistics().lost - before;
    }
    // Of 100,000 each: five standard deviations are at most 790.
    for (lost, expected) in lost.into_iter().zip([10_000_u64, 30_000, 50_000]) {
        assert!(lost.abs_diff(expected) < 790, "{lost} instead of {expected}");
    }
    assert_eq!(link.statistics().lost_by_chance, link.statistics().lost);
}

#[test]
fn an_outage_loses_what_enters_and_no_more() {
    let config = LinkConfig::default().with_delay(30 * MS);
    let (link, arrivals) = run(link(config, "20ms: outage 10ms"), 100);
    assert_eq!(numbers(&arrivals), (0..20).chain(30..100).collect::<Vec<_>>());
    assert_eq!(link.statistics().lost_in_outage, 10);
}

#[test]
fn packets_held_by_a_stall_come_at_the_rate_of_the_link() {
    // 1250 bytes take 0.1 ms at 100 Mb/s.
    let (_, arrivals) = run(link(at_mbps(100), "10ms: stall 50ms"), 100);
    assert_eq!(delay(&arrivals, 9), 0.1);
    // Packets 10 to 59 wait; the first of them leaves 0.1 ms after the stall, the last 5 ms.
    assert_eq!(delay(&arrivals, 10), 50.1);
    assert_eq!(delay(&arrivals, 59), 6.0);
    assert!(delay(&arrivals, 90) < 0.101);
}

#[test]
fn a_burst_drains_at_its_own_rate_until_the_queue_is_empty() {
    // At 20 Mb/s a packet takes 0.5 ms and another comes each ms: 50 drain in 50 ms.
    let (link, arrivals) = run(link(at_mbps(100), "10ms: stall 50ms drain 20Mbps"), 200);
    assert_eq!(delay(&arrivals, 10), 50.5);
    assert_eq!(delay(&arrivals, 11), 50.0);
    assert_eq!(delay(&arrivals, 100), 5.5);
    assert!(delay(&arrivals, 130) < 0.101, "the link has its own rate again");
    assert_eq!(link.statistics().dropped(), 0);
}

#[test]
fn a_link_without_a_rate_stalls_too() {
    let (_, arrivals) = run(link(LinkConfig::default(), "10ms: stall 50ms"), 100);
    assert_eq!(delay(&arrivals, 10), 50.0);
    assert_eq!(delay(&arrivals, 59), 1.0);
    assert_eq!(delay(&arrivals, 60), 0.0);
}

#[test]
fn a_queue_limited_in_time_holds_its_time_of_traffic_in_a_stall() {
    // 20 ms at 10 Mb/s are 20 packets, and the one being transmitted.
    let config = at_mbps(10).with_queue(QueueLimit::Time(20 * MS));
    let mut link = link(config, "0s: stall 1s");
    (0..50).for_each(|n| link.send(Instant::ORIGIN + MS, Numbered::new(n, 1_250)));
    assert_eq!(link.in_flight(), 21);
    assert_eq!(link.poll_timeout(), Some(Instant::from_millis(1_001)));
}

#[test]
fn a_repeated_event_happens_each_time_until_its_end() {
    let lost = |timeline: &str| {
        let (link, arrivals) = run(link(LinkConfig::default(), timeline), 100);
        assert_eq!(link.statistics().sent - link.statistics().lost, arrivals.len() as u64);
        link.statistics().lost_in_outage
    };
    assert_eq!(lost("10ms every 20ms: outage 2ms"), 10);
    assert_eq!(lost("10ms every 20ms until 50ms: outage 2ms"), 6);
    assert_eq!(lost("every 20ms: outage 2ms"), 8);
    assert_eq!(lost("10ms: outage 2ms\n 20ms: outage 3ms # and so on"), 5);
}

#[test]
fn of_changes_at_the_same_time_the_last_one_counts() {
    let (_, arrivals) =
        run(link(LinkConfig::default(), "10ms: delay=20ms\n10ms: delay=7ms\n5ms: delay=1ms"), 30);
    assert_eq!(delay(&arrivals, 9), 1.0);
    assert_eq!(delay(&arrivals, 10), 7.0);
}

#[test]
fn a_configuration_set_by_hand_ends_ramps_but_not_the_timeline() {
    let mut link = link(LinkConfig::default(), "0s: delay=100ms over 1s\n2s: delay=7ms");
    link.start(Instant::ORIGIN);
    link.set_config(Instant::from_millis(500), LinkConfig::default().with_delay(MS));
    link.start(Instant::from_millis(1_500));
    assert_eq!(link.config().delay, MS);
    link.start(Instant::from_millis(2_000));
    assert_eq!(link.config().delay, 7 * MS);
}

#[test]
fn losses_by_pattern_hit_exactly_the_given_packets() {
    let lost = |loss: &str| {
        let config = LinkConfig::default().with_loss(loss.parse().unwrap()).unwrap();
        let (link, arrivals) = run(Link::new(config, 1), 40);
        let arrived = numbers(&arrivals);
        assert_eq!(link.statistics().lost_by_pattern, 40 - arrived.len() as u64);
        (0..40).filter(|number| !arrived.contains(number)).collect::<Vec<_>>()
    };
    assert_eq!(lost("every:10"), [0, 10, 20, 30]);
    assert_eq!(lost("every:15:2:7"), [7, 8, 22, 23, 37, 38]);
    assert_eq!(lost("list:3,17,20-22,99"), [3, 17, 20, 21, 22]);
    assert_eq!(lost("every:12ms:2"), [12, 13, 24, 25, 36, 37]);
}

#[test]
fn a_packet_longer_than_the_mtu_vanishes_after_its_time_on_the_link() {
    let mut link = Link::new(at_mbps(10).with_mtu(Some(1_250)), 1);
    for (number, size) in [(0, 1_251), (1, 1_250)] {
        link.send(Instant::ORIGIN, Numbered::new(number, size));
    }
    assert_eq!(link.in_flight(), 2);
    let arrivals = drain(&mut link);
    assert_eq!(numbers(&arrivals), [1]);
    assert_eq!(arrivals[0].at.as_nanos(), 2_000_800);
    assert_eq!((link.statistics().dropped_by_mtu, link.in_flight()), (1, 0));
}

#[test]
fn overhead_counts_for_rate_and_queue_and_not_for_the_mtu() {
    let config = at_mbps(10).with_overhead(50).with_mtu(Some(1_200));
    let mut link = Link::new(config.with_queue(QueueLimit::Bytes(1_250)), 1);
    (0..3).for_each(|n| link.send(Instant::ORIGIN, Numbered::new(n, 1_200)));
    let arrivals = drain(&mut link);
    assert_eq!(arrivals.iter().map(|a| a.at.as_micros()).collect::<Vec<_>>(), [1_000, 2_000]);
    assert_eq!(link.statistics().dropped_by_queue, 1);
    assert_eq!(link.statistics().delivered_bytes, 2_400);
}

#[test]
fn extreme_values_neither_panic_nor_take_forever() {
    let longest = Duration::MAX;
    let events = [
        Event::set(longest, Change::Delay(longest)),
        Event::set(Duration::ZERO, Change::Delay(Duration::from_nanos(u64::MAX))),
        Event::ramp(MS, Ramp::Rate(Bitrate::from_bits_per_sec(u64::MAX)), longest),
        Event::ramp(2 * MS, Ramp::Delay(Duration::ZERO), longest),
        Event::ramp(3 * MS, Ramp::Loss(1.0), Duration::from_nanos(1)),
        Event { every: Some(Duration::ZERO), ..Event::set(MS, Change::Mtu(Some(0))) },
        Event { every: Some(longest), ..Event::set(MS, Change::Overhead(i32::MIN)) },
    ];
    let config = at_mbps(1).with_queue(QueueLimit::Time(longest));
    let stalls = "4ms: stall 500h drain 1bps; outage 600h\n5ms every 1ms: rate=0";
    let timeline: Timeline = stalls.parse().unwrap();
    let mut timeline: Timeline = timeline.events().iter().cloned().collect();
    timeline.extend(events);
    let mut link = Link::new(LinkProfile::from(config).with_timeline(timeline), u64::MAX);
    link.send(Instant::ORIGIN, Numbered::new(0, usize::MAX / 4));
    link.send(Instant::from_millis(10), Numbered::new(1, usize::MAX / 4));
    let _ = link.poll_timeout();
    link.send(Instant::from_nanos(u64::MAX), Numbered::new(2, 0));
    while link.recv(Instant::from_nanos(u64::MAX)).is_some() {}
    let done = link.statistics();
    let gone = done.delivered + done.dropped() + link.in_flight() as u64;
    assert_eq!(done.sent + done.duplicated, gone);
}
