//! Traces: their forms, and their effect on packets.

use std::time::Duration;

use punctual_netem::{Arrival, Link, LinkConfig, LinkProfile, QueueLimit, Trace};
use punctual_units::{Bitrate, Instant};

mod common;
use common::{Numbered, drain};

fn link(config: LinkConfig, trace: Trace) -> Link<Numbered> {
    let mut link = Link::new(LinkProfile::from(config).with_trace(Some(trace)), 1);
    link.start(Instant::ORIGIN);
    link
}

fn arrivals(trace: Trace, sent: &[(u64, usize)]) -> Vec<(u64, u64)> {
    let mut link = link(LinkConfig::default(), trace);
    for (number, &(micros, size)) in (0..).zip(sent) {
        link.send(Instant::from_micros(micros), Numbered::new(number, size));
    }
    let taken: Vec<Arrival<Numbered>> = drain(&mut link);
    taken.iter().map(|a| (a.packet.number, a.at.as_micros())).collect()
}

fn mahimahi(text: &str) -> Trace {
    Trace::parse(text).expect("a trace")
}

#[test]
fn an_opportunity_carries_1504_bytes_of_one_packet_or_several() {
    let trace = mahimahi("5\n6\n10\n");
    // Two small ones share the first; a large one needs the two that follow.
    let sent = [(0, 752), (0, 752), (0, 1_505), (0, 1_503)];
    assert_eq!(arrivals(trace, &sent), [(0, 5_000), (1, 5_000), (2, 10_000), (3, 10_000)]);
}

#[test]
fn an_opportunity_that_finds_nothing_is_wasted() {
    let trace = mahimahi("2\n4\n6\n8\n");
    // A packet that comes at the very instant is too late for it, as in mahimahi.
    let sent = [(0, 100), (4_000, 1_504), (4_001, 1_504), (9_000, 100)];
    assert_eq!(arrivals(trace, &sent), [(0, 2_000), (1, 6_000), (2, 8_000), (3, 10_000)]);
}

#[test]
fn a_repeated_time_of_a_trace_carries_twice_as_much() {
    let trace = mahimahi("3\n3\n9\n");
    assert_eq!(arrivals(trace, &[(0, 3_008), (0, 1)]), [(0, 3_000), (1, 9_000)]);
}

#[test]
fn a_trace_begins_anew_after_its_last_time_unless_it_is_played_once() {
    let sent = [(0, 1_504), (0, 1_504), (0, 1_504), (0, 1_504)];
    let again = arrivals(mahimahi("1\n4\n"), &sent);
    assert_eq!(again, [(0, 1_000), (1, 4_000), (2, 5_000), (3, 8_000)]);
    // Then the link has its configured rate, which is unlimited.
    let once = arrivals(mahimahi("1\n4\n").once(), &sent);
    assert_eq!(once, [(0, 1_000), (1, 4_000), (2, 4_000), (3, 4_000)]);
}

#[test]
fn a_saturated_trace_has_its_mean_rate_for_hours() {
    let trace = mahimahi("1\n1\n2\n5\n7\n");
    let rate = trace.mean_rate().unwrap();
    assert_eq!(rate, Bitrate::of(5 * 1_504, Duration::from_millis(7)));
    let mut link = link(LinkConfig::default().with_queue(QueueLimit::Unlimited), trace);
    let late = Instant::from_millis(7 * 3_600_000);
    (0..1_000).for_each(|n| link.send(late, Numbered::new(n, 1_504)));
    let last = drain(&mut link).last().unwrap().at;
    assert_eq!(last - late, Duration::from_millis(7 * 200));
}

#[test]
fn rows_set_rate_delay_and_loss_at_their_times() {
    let trace = Trace::parse(
        "# a course\n time_ms, rate_mbps, delay, loss_%\n\n 0, 10, 5ms, 0 # ten\n 10, , 20ms, 0\n \
         20, 20, , 100\n 30, 20, 1ms, 0\n",
    )
    .unwrap();
    let sent: Vec<_> = (0..8).map(|n| (n * 5_000, 1_250)).collect();
    // At 15 ms the trace has 20 ms of delay; from 20 ms on all is lost; at 30 ms it begins anew.
    let expected = [(0, 6_000), (1, 11_000), (2, 31_000), (3, 36_000), (6, 36_000), (7, 41_000)];
    assert_eq!(arrivals(trace.clone(), &sent), expected);
    assert_eq!(trace.period(), Duration::from_millis(30));
    assert_eq!(trace.mean_rate(), Some(Bitrate::from_bits_per_sec(13_333_333)));
    let once = arrivals(trace.once(), &sent);
    assert_eq!(once[4..], [(6, 36_000), (7, 36_500)]);
}

#[test]
fn straight_lines_go_through_the_rows() {
    let trace = Trace::parse("time,delay\n0s,10ms\n1s,30ms\n2s,10ms\n").unwrap().interpolated();
    let sent: Vec<_> = [0, 250_000, 500_000, 1_000_000, 1_500_000].map(|at| (at, 100)).into();
    let delays: Vec<_> =
        arrivals(trace, &sent).iter().zip(&sent).map(|((_, at), (sent, _))| at - sent).collect();
    assert_eq!(delays, [10_000, 15_000, 20_000, 30_000, 20_000]);
}

#[test]
fn errors_name_the_line_and_what_would_be_right() {
    let message = |text: &str| Trace::parse(text).unwrap_err().to_string();
    assert_eq!(
        message("1\n# fine\n2.5\n"),
        "line 3: `2.5` must be a time in whole milliseconds, like 125 (up to 4294967295)"
    );
    assert_eq!(message("7\n3\n"), "line 2: 3 comes after 7, but times must not go backwards");
    assert_eq!(message("0\n0\n"), "the last time must be later than 0");
    assert_eq!(message(""), "a trace needs at least one line with a time in it");
    assert!(
        message("time,speed\n").starts_with("line 1: unknown column `speed`; write time, rate")
    );
    assert_eq!(message("rate,delay\n"), "line 1: the column `time` is missing in `rate,delay`");
    assert_eq!(message("time,rate\n0,5Mbps,1\n"), "line 2: 3 fields, but the header has 2");
    assert_eq!(
        message("time,rate\n0,5Mbits\n"),
        "line 2: `5Mbits`: unknown unit `Mbits`; did you mean `Mbit/s`?"
    );
    assert!(message("time,rate\n1,5M\n1,6M\n").starts_with("line 3: time 1s comes after 1s"));
    assert!(message("time,loss\n0,1%\n").contains("at least 1ms"));
    assert_eq!(message("time,rate\n"), "a trace needs at least one line with values");
    assert_eq!(Trace::parse("7\n3").unwrap_err().line(), Some(2));
}
