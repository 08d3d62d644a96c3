//! The table and the sentence at the end.

use std::fmt::Write;
use std::time::Duration;

use punctual::Statistics;
use punctual_units::{DisplayBytes, DisplayDuration};

use crate::demo::outcome::Outcome;
use punctual_units::percent;

/// Both streams in columns.
pub(super) fn table(udp: &Outcome, srt: &Outcome, sender: &Statistics) -> String {
    let mut table = String::new();
    let mut line = |name: &str, udp: &str, srt: &str| {
        let _ = writeln!(table, "{name:<28}{udp:>18}{srt:>18}");
    };
    let mut row = |name: &str, value: &dyn Fn(&Outcome) -> String| {
        line(name, &value(udp), &value(srt));
    };
    row("", &|o| if std::ptr::eq(o, udp) { "bare UDP" } else { "SRT" }.to_owned());
    row("messages sent", &|o| o.sent.to_string());
    row("messages received", &|o| o.received.to_string());
    row("messages lost", &|o| share(o.lost(), o.sent));
    row("bytes received", &|o| format!("{:#}", DisplayBytes(o.stream.bytes)));
    row("transport packets missing", &|o| o.stream.total().missing_packets.to_string());
    row("continuity errors", &|o| o.stream.total().continuity_errors.to_string());
    row("clock (PCR) breaks", &|o| o.stream.total().pcr_discontinuities.to_string());
    row("longest PCR interval", &|o| {
        let interval = o.stream.total().pcr_interval_max;
        interval.map_or("-".to_owned(), |interval| format!("{:#}", DisplayDuration(interval)))
    });
    row("delay, shortest", &|o| micros(o.delay_us.min()));
    row("delay, median", &|o| micros(o.delay_us.median()));
    row("delay, p99", &|o| micros(o.delay_us.p99()));
    row("delay, longest", &|o| micros(o.delay_us.max()));
    row("jitter (RFC 3550)", &|o| micros(Some(o.jitter_us)));
    let again = sender.packets_retransmitted;
    let again = format!("{again} ({})", percent(again, sender.packets_sent_unique));
    line("retransmitted", "-", &again);
    table
}

/// The table in a sentence.
pub(super) fn verdict(udp: &Outcome, srt: &Outcome, latency: Duration) -> String {
    let udp_breaks = udp.stream.total().continuity_errors;
    let srt_breaks = srt.stream.total().continuity_errors;
    let udp = format!(
        "Bare UDP lost {} of {} messages and broke the stream {udp_breaks} times.",
        udp.lost(),
        udp.sent
    );
    let srt = match srt.lost() {
        0 => format!(
            "SRT delivered each of them, in order, {} ms and the link's delay after it was sent.",
            latency.as_millis()
        ),
        lost => format!("SRT lost {lost} and broke the stream {srt_breaks} times."),
    };
    format!("{udp}\n{srt}")
}

fn share(part: usize, whole: usize) -> String {
    match part {
        0 => "0".to_owned(),
        part => format!("{part} ({})", percent(part as u64, whole as u64)),
    }
}

fn micros(micros: Option<u64>) -> String {
    micros.map_or("-".to_owned(), |micros| {
        format!("{:#}", DisplayDuration(Duration::from_micros(micros)))
    })
}
