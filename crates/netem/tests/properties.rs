//! What holds for any link, whatever its configuration and whatever is done to it.

use std::collections::HashMap;
use std::time::Duration;

use proptest::prelude::*;
use punctual_netem::{Arrival, Jitter, Link, LinkConfig, Loss, QueueLimit, Reorder};
use punctual_units::{Bitrate, Instant};

mod common;
use common::{Numbered, drain};

/// Something done to a link, this long after what was done before.
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

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let rate = prop::option::of((0_u64..50).prop_map(|mbps| Bitrate::from_mbps(mbps * mbps)));
    let queue = prop_oneof![
        (0_usize..20_000).prop_map(QueueLimit::Bytes),
        (0_usize..20).prop_map(QueueLimit::Packets),
        up_to_ms(30).prop_map(QueueLimit::Time),
        Just(QueueLimit::Unlimited),
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        up_to_ms(60).prop_map(|spread| Jitter::Uniform { spread }),
        up_to_ms(20).prop_map(|std_dev| Jitter::Normal { std_dev }),
    ];
    let loss = prop_oneof![
        4 => Just(Loss::None),
        1 => Just(Loss::All),
        2 => share().prop_map(Loss::Random),
        2 => (share(), share(), share(), share()).prop_map(|(p, r, good_loss, bad_loss)| {
            Loss::GilbertElliott { p, r, good_loss, bad_loss }
        }),
    ];
    let reorder = prop_oneof![
        Just(Reorder::None),
        (share(), up_to_ms(40)).prop_map(|(share, by)| Reorder::Ahead { share, by }),
        (share(), up_to_ms(40)).prop_map(|(share, by)| Reorder::Late { share, by }),
    ];
    (rate, queue, up_to_ms(50), jitter, any::<bool>(), loss, reorder, share(), share()).prop_map(
        |(rate, queue, delay, jitter, keep_order, loss, reorder, duplicate, corrupt)| LinkConfig {
            rate,
            queue,
            delay,
            jitter,
            keep_order,
            loss,
            reorder,
            duplicate,
            corrupt,
            ..LinkConfig::default()
        },
    )
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        15 => (up_to_ms(4), 0_usize..1_500).prop_map(|(after, size)| Step::Send(after, size)),
        1 => (up_to_ms(4), any_config()).prop_map(|(after, config)| Step::Change(after, Box::new(config))),
    ];
    prop::collection::vec(step, 0..120)
}

/// When packets are taken out of the link.
#[derive(Clone, Copy, PartialEq)]
enum Polling {
    /// Whenever `poll_timeout` asks for it.
    InTime,
    /// After everything was done to the link.
    AtTheEnd,
}

/// Does the steps, lets the rest arrive, and checks what must hold all the while.
fn play(
    config: &LinkConfig,
    seed: u64,
    steps: &[Step],
    polling: Polling,
) -> Result<Vec<Arrival<Numbered>>, TestCaseError> {
    let mut link = Link::new(config.clone(), seed);
    let mut arrivals = Vec::new();
    let mut now = Instant::ORIGIN;
    for (number, step) in (0_u64..).zip(steps) {
        let (Step::Send(after, _) | Step::Change(after, _)) = step;
        now += *after;
        while polling == Polling::InTime && link.poll_timeout().is_some_and(|due| due < now) {
            let due = link.poll_timeout().expect("just asked");
            let before = arrivals.len();
            arrivals.extend(std::iter::from_fn(|| link.recv(due)));
            let exact =
                link.config().jitter == Jitter::None && link.config().reorder == Reorder::None;
            prop_assert!(arrivals.len() > before || !exact, "woken in vain at {}", due);
            prop_assert!(link.poll_timeout() > Some(due) || link.poll_timeout().is_none());
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
    // A link that is stalled at the end must let go of what it holds.
    link.set_config(now, LinkConfig { rate: None, ..link.config().clone() });
    arrivals.extend(drain(&mut link));
    prop_assert_eq!(link.in_flight(), 0);
    Ok(arrivals)
}

/// What was sent when, by number.
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
    fn only_what_was_sent_arrives_later_and_at_most_twice(
        config in any_config(), seed: u64, steps in any_steps(),
    ) {
        let sent = sent(&steps);
        let arrivals = play(&config, seed, &steps, Polling::InTime)?;
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
        config in any_config(), seed: u64, steps in any_steps(),
    ) {
        let in_time = play(&config, seed, &steps, Polling::InTime)?;
        prop_assert_eq!(&in_time, &play(&config, seed, &steps, Polling::InTime)?);
        prop_assert_eq!(&in_time, &play(&config, seed, &steps, Polling::AtTheEnd)?);
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
        let arrivals = play(&orderly(&config), seed, &steps, Polling::InTime)?;
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
            let least = Duration::from_micros(size as u64) + config.min_delay();
            prop_assert!(at >= sent_at + least, "{:?} after {:?}", at, sent_at);
        }
    }
}
