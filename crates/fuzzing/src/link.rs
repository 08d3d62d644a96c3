//! The text forms of a link: parameters, timelines and recorded traces.

use std::time::Duration;

use punctual_netem::{
    Change, Event, KEYS, Link, LinkConfig, LinkProfile, PathProfile, Timeline, Trace,
};
use punctual_units::Instant;

/// The first byte chooses the meaning of the rest.
pub(crate) fn run(input: &[u8]) {
    let Some((&kind, text)) = input.split_first() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    match kind % 4 {
        0 => parameter(kind >> 2, text),
        1 => path(text),
        2 => timeline(text),
        _ => trace(kind >> 2, text),
    }
}

/// A change that was read is written as what reads the same, and a link takes it.
fn parameter(key: u8, value: &str) {
    let key = KEYS[usize::from(key) % KEYS.len()].name;
    let change = match Change::parse(key, value) {
        Ok(change) => change,
        Err(error) => return drop(error.to_string()),
    };
    let written = change.to_string();
    let (key, value) = written.split_once('=').expect("key=value");
    assert_eq!(Change::parse(key, value).as_ref(), Ok(&change), "{written}");
    let mut config = LinkConfig::default();
    change.apply(&mut config);
    carry(config.into());
}

/// Lines of `KEY=VALUE` for both ways.
fn path(text: &str) {
    let mut path = PathProfile::default();
    for line in text.lines() {
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if let Err(error) = path.set(key, value) {
            drop(error.to_string());
        }
    }
    carry(path.up);
    carry(path.down);
}

/// Events that were read are written as what reads the same, and a link follows them.
fn timeline(text: &str) {
    drop(text.parse::<Event>().map_err(|error| error.to_string()));
    let timeline = match text.parse::<Timeline>() {
        Ok(timeline) => timeline,
        Err(error) => return drop((error.to_string(), error.line())),
    };
    let written = timeline.to_string();
    assert_eq!(written.parse::<Timeline>().as_ref(), Ok(&timeline), "{written}");
    carry(LinkProfile::default().with_timeline(timeline));
}

/// A trace that was read has a period and a rate, and a link follows it.
fn trace(how: u8, text: &str) {
    let trace = match Trace::parse(text) {
        Ok(trace) => trace,
        Err(error) => return drop(error.to_string()),
    };
    let trace = if how & 1 == 0 { trace } else { trace.once() };
    let trace = if how & 2 == 0 { trace } else { trace.interpolated() };
    assert!(trace.period() > Duration::ZERO, "a trace without an end");
    let _ = trace.mean_rate();
    carry(LinkProfile::default().with_trace(Some(trace)));
}

/// Sends packets through a link for 300 ms: each of them comes out, is lost, or is still there.
fn carry(profile: LinkProfile) {
    let mut link: Link<Vec<u8>> = Link::new(profile, 1);
    let start = Instant::from_millis(1_000);
    link.start(start);
    let mut received = 0;
    for i in 0..30 {
        let now = start + Duration::from_millis(10 * i);
        link.send(now, vec![i as u8; 1 + 50 * i as usize]);
        while let Some(arrival) = link.recv(now) {
            assert!(arrival.at <= now);
            received += 1;
        }
        assert!(link.poll_timeout().is_none_or(|at| at > now), "it does not come to rest");
    }
    let statistics = link.statistics();
    assert_eq!((statistics.sent, statistics.delivered), (30, received));
    assert_eq!(
        statistics.sent + statistics.duplicated,
        statistics.delivered + statistics.dropped() + link.in_flight() as u64
    );
}
