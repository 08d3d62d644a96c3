//! The text forms, and how they are read.

use std::time::Duration;

use proptest::prelude::*;
use punctual_netem::{
    Action, Change, Event, Jitter, KEYS, LinkProfile, Loss, PathProfile, QueueLimit, Ramp, Reorder,
    Timeline,
};
use punctual_units::Bitrate;

fn event(text: &str) -> Result<Event, String> {
    text.parse().map_err(|error: punctual_netem::LinkTextError| error.to_string())
}

fn wrong(text: &str) -> String {
    event(text).expect_err("it is wrong")
}

#[test]
fn events_are_read_as_they_are_written() {
    let second = Duration::from_secs(1);
    let set = |change| Event::set(20 * second, change);
    assert_eq!(event("20s: delay=300ms"), Ok(set(Change::Delay(300 * second / 1_000))));
    assert_eq!(
        event(" 20s : rate = 2Mbps over 3s "),
        Ok(Event::ramp(20 * second, Ramp::Rate(Bitrate::from_mbps(2)), 3 * second))
    );
    assert_eq!(
        event("20s: loss=every:10s:50"),
        Ok(set(Change::Loss(Loss::Timed { every: 10 * second, burst: 50 })))
    );
    let stall = Action::Stall { duration: second, drain: Some(Bitrate::from_mbps(12)) };
    let expected =
        Event { at: 5 * second, every: Some(30 * second), until: Some(60 * second), action: stall };
    assert_eq!(event("5s every 30s until 1min: stall 1s drain 12Mbps"), Ok(expected));
    assert_eq!(
        event("every 30s: outage 1s"),
        Ok(Event::every(30 * second, Action::Outage(second)))
    );
}

#[test]
fn a_timeline_has_an_event_a_line_or_several() {
    let timeline: Timeline =
        "# bad weather\n\n10s: rate=1Mbps; loss=5%  # both\n20s: outage 1s\n".parse().unwrap();
    assert_eq!(timeline.events().len(), 3);
    assert_eq!(timeline.to_string(), "10s: rate=1Mb/s\n10s: loss=5%\n20s: outage 1s\n");
    let error = "10s: rate=1Mbps\n\n20s: outge 1s\n".parse::<Timeline>().unwrap_err();
    assert_eq!(error.to_string(), "line 3: `outge`: did you mean `outage`?");
    assert_eq!(error.line(), Some(3));
}

#[test]
fn a_wrong_event_is_told_by_its_word() {
    assert!(wrong("20s").contains("write when, a colon and what happens"));
    assert!(wrong("20: delay=3ms").contains("the unit is missing"));
    assert_eq!(wrong(": delay=3ms"), "when? write a time before the colon: 20s: delay=300ms");
    assert_eq!(wrong("5s evry 1s: outage 1s"), "`evry`: did you mean `every`?");
    assert_eq!(wrong("5s every: outage 1s"), "after `every` comes a time: every 30s");
    assert_eq!(wrong("5s: dely=3ms"), "`dely` is no parameter of a link; did you mean `delay`?");
    assert_eq!(wrong("5s: delay 3ms"), "`delay`: did you mean `delay=...`?");
    assert_eq!(wrong("5s: delay=3mss"), "delay: `3mss`: unknown unit `mss`; did you mean `ms`?");
    assert_eq!(wrong("5s: delay=3ms until 1s"), "`until 1s`: only `over` TIME can follow");
    assert!(wrong("5s: queue=3 over 1s").contains("cannot come little by little"));
    assert_eq!(wrong("5s: outage"), "write how long: outage 1s");
    assert!(wrong("5s: stall 1s drin 1Mbps").contains("stall 1s drain 12Mbps"));
    assert!(wrong("5s:").contains("what happens?"));
}

#[test]
fn every_key_is_known_to_all_that_set() {
    let values = [
        "5%",
        "2%:8",
        "20ms",
        "pareto:4ms",
        "on",
        "20Mbps",
        "300ms",
        "5ms:100ms",
        "1500",
        "38",
        "ahead:1%:10ms",
        "1%",
        "2%",
    ];
    let mut profile = LinkProfile::default();
    let mut path = PathProfile::default();
    for (key, value) in KEYS.iter().zip(values) {
        profile.set(key.name, value).unwrap();
        path.set(key.name, value).unwrap();
        let event = event(&format!("1s: {}={value}", key.name)).unwrap();
        assert_eq!(event.action, Action::Set(Change::parse(key.name, value).unwrap()));
    }
    assert_eq!((&path.up, &path.down), (&profile, &profile));
    path.set("rtt", "60ms").unwrap();
    path.set("loss-down", "0").unwrap();
    path.set("at-up", "1s: outage 1s").unwrap();
    assert_eq!(path.up.config.delay, Duration::from_millis(30));
    assert_eq!(path.down.config.loss, Loss::Random(0.0));
    assert_eq!((path.up.timeline.events().len(), path.down.timeline.events().len()), (1, 0));
}

#[test]
fn a_wrong_parameter_or_value_says_what_would_be_right() {
    let mut profile = LinkProfile::default();
    let mut wrong = |key, value| profile.set(key, value).unwrap_err().to_string();
    assert_eq!(wrong("los", "5%"), "`los` is no parameter of a link; did you mean `loss`?");
    assert!(wrong("bandwidth", "1").contains("there are loss, burst-loss, delay"));
    assert!(wrong("rtt", "1ms").contains("both ways"));
    assert_eq!(wrong("loss", "evry:10"), "`evry`: did you mean `every`?");
    assert!(wrong("loss", "every:0").contains("must be a number of packets (100) or a time"));
    assert!(wrong("loss", "every:10:11").contains("of 10 packets, 11 cannot be lost"));
    assert!(wrong("loss", "list:9-7").contains("write 7-9"));
    assert!(wrong("loss", "2%:0.5").contains("from 1 up"));
    assert!(wrong("loss", "1%,2%").contains("p,r,good,bad"));
    assert!(wrong("jitter", "parto:4ms").contains("did you mean `pareto`?"));
    assert!(wrong("codel", "5ms").contains("target and interval (5ms:100ms)"));
    assert!(wrong("overhead", "5000").contains("-1000 to 1000"));
    assert!(wrong("overtake", "maybe").contains("on or off"));
    assert!(wrong("queue", "big").contains("a number of packets (1000)"));
}

fn any_change() -> impl Strategy<Value = Change> {
    let time = || any::<u64>().prop_map(Duration::from_nanos);
    let share = || prop_oneof![Just(0.0), Just(1.0), 0.0..1.0];
    prop_oneof![
        any::<Option<u64>>().prop_map(|bits| Change::Rate(bits.map(Bitrate::from_bits_per_sec))),
        any::<usize>().prop_map(|n| Change::Queue(QueueLimit::Packets(n))),
        any::<u32>().prop_map(|n| Change::Queue(QueueLimit::Bytes(n as usize))),
        time().prop_map(|time| Change::Queue(QueueLimit::Time(time))),
        time().prop_map(Change::Delay),
        time().prop_map(|std_dev| Change::Jitter(Jitter::Pareto { std_dev })),
        time().prop_map(|spread| Change::Jitter(Jitter::Uniform { spread })),
        any::<bool>().prop_map(Change::KeepOrder),
        share().prop_map(|share| Change::Loss(Loss::Random(share))),
        (share(), share(), share(), share()).prop_map(|(p, r, good_loss, bad_loss)| {
            Change::Loss(Loss::GilbertElliott { p, r, good_loss, bad_loss })
        }),
        (1_u64..99, 0_u64..99).prop_map(|(burst, first)| {
            Change::Loss(Loss::Periodic { every: 100, burst, first })
        }),
        prop::collection::vec(0_u64..99, 1..9)
            .prop_map(|numbers| Change::Loss(Loss::List(numbers.into_iter().collect()))),
        (share(), time()).prop_map(|(share, by)| Change::Reorder(Reorder::Ahead { share, by })),
        (share(), time()).prop_map(|(share, by)| Change::Reorder(Reorder::Late { share, by })),
        share().prop_map(Change::Corrupt),
        any::<Option<usize>>().prop_map(Change::Mtu),
        (-1_000..1_000).prop_map(Change::Overhead),
    ]
}

proptest! {
    #[test]
    fn a_printed_event_reads_back(at: u64, every in 1_000_000_u64.., change in any_change()) {
        let at = Duration::from_nanos(at);
        let every = Some(Duration::from_nanos(every));
        let event = Event { at, every, until: None, action: Action::Set(change) };
        prop_assert_eq!(event.to_string().parse(), Ok(event));
    }

    #[test]
    fn no_text_panics(text in "[a-z0-9:=;,% .-]{0,40}|\\PC{0,20}", value in "\\PC{0,20}") {
        let _ = (text.parse::<Timeline>(), text.parse::<Loss>(), text.parse::<Jitter>());
        let _ = (punctual_netem::Trace::parse(&text), Change::parse(&text, &value));
        for key in KEYS {
            let _ = Change::parse(key.name, &text);
        }
    }
}
