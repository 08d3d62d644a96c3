//! The columns of transfers over the model of QUIC.

use std::time::Duration;

use punctual_quic_model::{Event, Outcome, Sample};
use punctual_units::Instant;

use crate::numbers::{NamedNumber, number};

/// The columns of a run; all unknown without an outcome.
pub(crate) fn quic_model(outcome: Option<&Outcome>) -> Vec<NamedNumber> {
    let first = |wanted: fn(&Event) -> bool| {
        let found = outcome?.events.iter().find(|(_, event)| wanted(event));
        found.map(|(at, _)| seconds(*at - Instant::ORIGIN))
    };
    let total = |of: fn(&Outcome) -> u64| outcome.map(|it| number(of(it)));
    let timeouts = |it: &Outcome| {
        let is_timeout = |event: &Event| matches!(event, Event::ProbeTimeout(_));
        it.events.iter().filter(|(_, event)| is_timeout(event)).count() as u64
    };
    let numbers = [
        ("sCompleted", outcome.and_then(|it| it.completed).map(seconds)),
        ("pktSent", total(|it| it.counts.sent)),
        ("pktLost", total(|it| it.counts.lost)),
        ("pktSpurious", total(|it| it.counts.spurious)),
        ("pktRepeated", total(|it| it.counts.repeated)),
        ("pktVanished", total(|it| it.down.dropped_by_mtu)),
        ("byteDuplicate", total(|it| it.duplicate_bytes)),
        ("acks", total(|it| it.acks)),
        ("rttSamples", total(|it| it.round_trips)),
        ("rttUpdates", total(|it| it.updates)),
        ("timeouts", total(timeouts)),
        ("sSlowStartLeft", first(|event| matches!(event, Event::SlowStartLeft))),
        ("sMtuDropped", first(|event| matches!(event, Event::MtuDropped(_)))),
        ("sFirstTimeout", first(|event| matches!(event, Event::ProbeTimeout(_)))),
        ("sMtuReset", first(|event| matches!(event, Event::MtuReset))),
        ("msTailFound", outcome.and_then(|it| it.tail_found).map(|time| seconds(time) * 1e3)),
    ];
    let named =
        |(name, number): (&str, Option<f64>)| (format!("quic.{name}"), number.unwrap_or(f64::NAN));
    let last = outcome.and_then(|it| it.samples.last());
    numbers.into_iter().map(named).chain(quic_state(last)).collect()
}

/// The columns of a sender's state at one time; all unknown without a sample.
pub(crate) fn quic_state(sample: Option<&Sample>) -> Vec<NamedNumber> {
    let time = |of: fn(&Sample) -> Duration| sample.map_or(f64::NAN, |it| seconds(of(it)) * 1e3);
    let bytes = |of: fn(&Sample) -> u64| sample.map_or(f64::NAN, |it| number(of(it)));
    let numbers = [
        ("msLatest", time(|it| it.latest)),
        ("msSmoothed", time(|it| it.smoothed)),
        ("msDeviation", time(|it| it.variance)),
        ("msTimer", time(|it| it.timeout)),
        ("byteWindow", bytes(|it| it.window)),
        ("byteInFlight", bytes(|it| it.in_flight)),
        ("byteMtu", bytes(|it| it.mtu as u64)),
    ];
    numbers.into_iter().map(|(name, number)| (format!("quic.{name}"), number)).collect()
}

/// Seconds, exact to the microsecond: results are the same with each compiler.
fn seconds(time: Duration) -> f64 {
    number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX)) / 1e6
}
