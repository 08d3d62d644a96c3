//! Rules for any link, whatever its configuration and its use.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use punctual_netem::{
    Action, Arrival, Change, Discipline, Event, Jitter, Link, LinkConfig, LinkProfile, Loss,
    PacketList, QueueLimit, Ramp, Reorder, Timeline, Trace, TraceRow,
};
use punctual_units::{Bitrate, Instant};

mod common;
use common::{Numbered, drain};

/// A call of a link, this long after the one before.
#[derive(Clone, Debug)]
enum Step {
    Send(Duration, usize),
    Change(Duration, Box<LinkConfig>),
}

fn up_to_ms(limit: u64) -> impl Strategy<Value = Duration> {
    (0..limit * 1_000).prop_map(Duration::from_micros)
}

fn share() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), 0.0..1.0, Just(1.0)]
}

fn any_rate() -> impl Strategy<Value = Option<Bitrate>> {
    prop::option::of((0_u64..50).prop_map(|mbps| Bitrate::from_mbps(mbps * mbps)))
}

fn any_loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        4 => Just(Loss::None),
        1 => Just(Loss::All),
        2 => share().prop_map(Loss::Random),
        2 => (share(), share(), share(), share()).prop_map(|(p, r, good_loss, bad_loss)| {
            Loss::GilbertElliott { p, r, good_loss, bad_loss }
        }),
        1 => (0_u64..20, 0_u64..20, 0_u64..20).prop_map(|(every, burst, first)| {
            Loss::Periodic { every, burst, first }
        }),
        1 => (up_to_ms(40), 0_u64..9).prop_map(|(every, burst)| Loss::Timed { every, burst }),
        1 => prop::collection::vec(0_u64..100, 0..20)
            .prop_map(|numbers| Loss::List(PacketList::from_iter(numbers))),
    ]
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let queue = prop_oneof![
        (0_usize..20_000).prop_map(QueueLimit::Bytes),
        (0_usize..20).prop_map(QueueLimit::Packets),
        up_to_ms(30).prop_map(QueueLimit::Time),
        Just(QueueLimit::Unlimited),
    ];
    let discipline = prop_oneof![
        Just(Discipline::TailDrop),
        (up_to_ms(6), up_to_ms(20))
            .prop_map(|(target, interval)| Discipline::CoDel { target, interval }),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        up_to_ms(60).prop_map(|spread| Jitter::Uniform { spread }),
        up_to_ms(20).prop_map(|std_dev| Jitter::Normal { std_dev }),
        up_to_ms(20).prop_map(|std_dev| Jitter::Pareto { std_dev }),
    ];
    let reorder = prop_oneof![
        Just(Reorder::None),
        (share(), up_to_ms(40)).prop_map(|(share, by)| Reorder::Ahead { share, by }),
        (share(), up_to_ms(40)).prop_map(|(share, by)| Reorder::Late { share, by }),
    ];
    let queue = (any_rate(), queue, discipline, prop::option::of(0_usize..1_500), -50_i32..50);
    let delay = (up_to_ms(50), jitter, any::<bool>(), reorder);
    (queue, delay, any_loss(), share(), share()).prop_map(
        |(queue, (delay, jitter, keep_order, reorder), loss, duplicate, corrupt)| {
            let (rate, queue, discipline, mtu, overhead) = queue;
            LinkConfig {
                rate,
                queue,
                discipline,
                mtu,
                overhead,
                delay,
                jitter,
                keep_order,
                loss,
                reorder,
                duplicate,
                corrupt,
            }
        },
    )
}

fn any_action() -> impl Strategy<Value = Action> {
    let ramp = prop_oneof![
        any_rate().prop_map(|rate| Ramp::Rate(rate.unwrap_or(Bitrate::ZERO))),
        up_to_ms(50).prop_map(Ramp::Delay),
        share().prop_map(Ramp::Loss),
    ];
    prop_oneof![
        any_rate().prop_map(|rate| Action::Set(Change::Rate(rate))),
        up_to_ms(50).prop_map(|delay| Action::Set(Change::Delay(delay))),
        any_loss().prop_map(|loss| Action::Set(Change::Loss(loss))),
        any_config().prop_map(|config| Action::Set(Change::Queue(config.queue))),
        (ramp, up_to_ms(60)).prop_map(|(to, over)| Action::Ramp { to, over }),
        up_to_ms(20).prop_map(Action::Outage),
        (up_to_ms(40), any_rate()).prop_map(|(duration, drain)| Action::Stall {
            duration,
            drain: drain.filter(|rate| *rate > Bitrate::ZERO),
        }),
    ]
}

fn any_timeline() -> impl Strategy<Value = Timeline> {
    let event = (up_to_ms(200), prop::option::of(up_to_ms(50)), any_action()).prop_map(
        |(at, every, action)| {
            // It has an end, so that the waiting packets can be taken out.
            Event { at, every, until: Some(Duration::from_millis(400)), action }
        },
    );
    prop::collection::vec(event, 0..6).prop_map(Timeline::from_iter)
}

fn any_trace() -> impl Strategy<Value = Trace> {
    let opportunities = prop::collection::vec(0_u32..100, 1..60).prop_map(|mut millis| {
        millis.sort_unstable();
        millis.push(100);
        Trace::from_millis(millis).expect("ascending, and more than 0")
    });
    let row = (any_rate(), prop::option::of(up_to_ms(50)), prop::option::of(share()));
    let rows = (prop::collection::vec(row, 1..20), any::<bool>()).prop_map(|(rows, lines)| {
        let rows = (1..).zip(rows).map(|(number, (rate, delay, loss))| TraceRow {
            at: Duration::from_millis(7 * number),
            rate,
            delay,
            loss,
        });
        let trace = Trace::from_rows(rows.collect()).expect("ascending");
        if lines { trace.interpolated() } else { trace }
    });
    let played = prop_oneof![opportunities, rows];
    // Once, so that the waiting packets can be taken out at a constant rate.
    played.prop_map(Trace::once)
}

fn any_profile() -> impl Strategy<Value = LinkProfile> {
    (any_config(), any_timeline(), prop::option::of(any_trace()))
        .prop_map(|(config, timeline, trace)| LinkProfile { config, timeline, trace })
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        15 => (up_to_ms(4), 0_usize..1_500).prop_map(|(after, size)| Step::Send(after, size)),
        1 => (up_to_ms(4), any_config().prop_map(Box::new))
            .prop_map(|(after, config)| Step::Change(after, config)),
    ];
    prop::collection::vec(step, 0..120)
}

/// When packets are taken out of the link.
#[derive(Clone, Copy, PartialEq)]
enum Polling {
    /// At any time, this number of nanoseconds before a step.
    Often(u64),
    /// Whenever `poll_timeout` asks for it.
    InTime,
    /// After everything was done to the link.
    AtTheEnd,
}

/// Does the steps, lets the rest arrive, and checks the rules all the time.
fn play(
    profile: &LinkProfile,
    seed: u64,
    steps: &[Step],
    polling: Polling,
) -> Result<Vec<Arrival<Numbered>>, TestCaseError> {
    let mut link = Link::new(profile.clone(), seed);
    link.start(Instant::ORIGIN);
    let still = profile.timeline.is_empty() && profile.trace.is_none();
    let mut arrivals = Vec::new();
    let mut now = Instant::ORIGIN;
    for (number, step) in (0_u64..).zip(steps) {
        let (Step::Send(after, _) | Step::Change(after, _)) = step;
        now += *after;
        while polling == Polling::InTime && link.poll_timeout().is_some_and(|due| due < now) {
            let due = link.poll_timeout().expect("just asked");
            let before = arrivals.len();
            arrivals.extend(std::iter::from_fn(|| link.recv(due)));
            let LinkConfig { jitter, reorder, mtu, discipline, .. } = link.config();
            let exact = *jitter == Jitter::None
                && *reorder == Reorder::None
                && mtu.is_none()
                && *discipline == Discipline::TailDrop
                && still
                && steps.iter().all(|step| matches!(step, Step::Send(..)));
            prop_assert!(arrivals.len() > before || !exact, "woken in vain at {}", due);
            prop_assert!(link.poll_timeout() > Some(due) || link.poll_timeout().is_none());
        }
        if let Polling::Often(nanos) = polling {
            // Instants between the steps at which nothing needs to be done.
            let early = now.saturating_sub(after.mul_f64(0.5) + Duration::from_nanos(nanos));
            link.start(early);
            let _ = (link.poll_timeout(), link.config());
            arrivals.extend(link.recv(early));
            arrivals.extend(link.recv(now.saturating_sub(Duration::from_nanos(nanos))));
        }
        match step {
            Step::Send(_, size) => link.send(now, Numbered::new(number, *size)),
            Step::Change(_, config) => link.set_config(now, LinkConfig::clone(config)),
        }
        let done = link.statistics();
        let gone = done.delivered + done.dropped();
        prop_assert_eq!(done.sent + done.duplicated, gone + link.in_flight() as u64);
        prop_assert_eq!(done.delivered, arrivals.len() as u64);
    }
    // A link that is stalled at the end must deliver the packets that it holds.
    let end = now.max(Instant::from_millis(600));
    arrivals.extend(std::iter::from_fn(|| link.recv(end)));
    link.set_config(end, LinkConfig { rate: None, ..link.config().clone() });
    arrivals.extend(drain(&mut link));
    prop_assert_eq!(link.in_flight(), 0);
    Ok(arrivals)
}

/// The time and size of each sent packet, by number.
fn sent(steps: &[Step]) -> HashMap<u64, (Instant, usize)> {
    let mut now = Instant::ORIGIN;
    let mut sent = HashMap::new();
    for (number, step) in (0..).zip(steps) {
        let (Step::Send(after, _) | Step::Change(after, _)) = step;
        now += *after;
        if let Step::Send(_, size) = step {
            sent.insert(number, (now, *size));
        }
    }
    sent
}

proptest! {
    #[test]
    fn only_sent_packets_arrive_later_and_at_most_twice(
        profile in any_profile(), seed: u64, steps in any_steps(),
    ) {
        let sent = sent(&steps);
        let arrivals = play(&profile, seed, &steps, Polling::InTime)?;
        let mut times: HashMap<u64, u32> = HashMap::new();
        for Arrival { at, packet } in &arrivals {
            let (sent_at, size) = sent[&packet.number];
            prop_assert!(*at >= sent_at);
            prop_assert_eq!(packet.size, size);
            *times.entry(packet.number).or_default() += 1;
        }
        prop_assert!(times.values().all(|&times| times <= 2));
        prop_assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
    }

    #[test]
    fn asking_late_and_asking_again_change_nothing(
        profile in any_profile(), seed: u64, steps in any_steps(), nanos in 0_u64..2_000_000,
    ) {
        let in_time = play(&profile, seed, &steps, Polling::InTime)?;
        prop_assert_eq!(&in_time, &play(&profile, seed, &steps, Polling::InTime)?);
        prop_assert_eq!(&in_time, &play(&profile, seed, &steps, Polling::AtTheEnd)?);
        prop_assert_eq!(&in_time, &play(&profile, seed, &steps, Polling::Often(nanos))?);
    }

    #[test]
    fn a_poll_that_is_kept_delivers_each_packet_at_its_instant(
        profile in any_profile(), seed: u64, sizes in prop::collection::vec(0_usize..1_500, 1..60),
    ) {
        let mut link = Link::new(profile, seed);
        let mut now = Instant::ORIGIN;
        for (number, size) in (0..).zip(sizes) {
            link.send(now, Numbered::new(number, size));
            now += Duration::from_millis(3);
            while let Some(due) = link.poll_timeout().filter(|&due| due < now) {
                while let Some(arrival) = link.recv(due) {
                    prop_assert_eq!(arrival.at, due, "a packet is taken out late");
                }
            }
        }
    }

    #[test]
    fn an_orderly_link_keeps_order_and_delivers_once(
        config in any_config(), seed: u64, steps in any_steps(),
    ) {
        let orderly = |config: &LinkConfig| LinkConfig {
            keep_order: true,
            reorder: Reorder::None,
            duplicate: 0.0,
            ..config.clone()
        };
        let steps: Vec<Step> = steps
            .iter()
            .map(|step| match step {
                Step::Change(after, config) => Step::Change(*after, Box::new(orderly(config))),
                send @ Step::Send(..) => send.clone(),
            })
            .collect();
        let arrivals = play(&orderly(&config).into(), seed, &steps, Polling::InTime)?;
        prop_assert!(arrivals.is_sorted_by(|a, b| a.packet.number < b.packet.number));
    }

    #[test]
    fn no_packet_is_faster_than_rate_and_least_delay(
        config in any_config(), seed: u64, steps in any_steps(),
    ) {
        let steps: Vec<Step> =
            steps.into_iter().filter(|step| matches!(step, Step::Send(..))).collect();
        let config = LinkConfig { rate: Some(Bitrate::from_mbps(8)), ..config };
        let sent = sent(&steps);
        let mut link = Link::new(config.clone(), seed);
        for number in 0..steps.len() as u64 {
            let (at, size) = sent[&number];
            link.send(at, Numbered::new(number, size));
        }
        for Arrival { at, packet } in drain(&mut link) {
            let (sent_at, size) = sent[&packet.number];
            // A packet at 8 Mb/s takes 1 µs a byte.
            let bytes = (size as u64).saturating_add_signed(config.overhead.into());
            let least = Duration::from_micros(bytes) + config.min_delay();
            prop_assert!(at >= sent_at + least, "{:?} after {:?}", at, sent_at);
        }
    }
}
