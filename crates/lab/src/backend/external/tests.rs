use interop::{Tool, have_all};

use super::*;
use crate::plan::Plan;
use crate::run::{Selection, runs};

const PLAN: &str = "name = 'n'\n[stream]\nbitrate = '2Mbps'\nduration = '2s'\n\
    [link]\nrtt = '10ms'\nloss = '2%'\n[options]\nlatency = '100ms'";

fn run_with(external: &str) -> Result<Outcome, String> {
    let plan = Plan::parse("n.toml", &format!("{PLAN}\n[external]\n{external}")).unwrap();
    let spec = runs(&plan, &Selection::default()).unwrap().remove(0);
    External::new(plan.external.as_ref())?.run(&spec)
}

#[test]
fn a_missing_or_failing_program_is_reported_with_its_output() {
    let error = run_with("sender = 'x {feed}'\nreceiver = 'no-such-program {port}'").unwrap_err();
    assert_eq!(error, "`no-such-program` is not installed");
    let failing = "sender = 'x {feed}'\nreceiver = \"/bin/sh -c 'echo cannot do {port}; exit 3'\"";
    let error = run_with(failing).unwrap_err();
    assert!(error.contains("the receiver ended with exit status: 3"), "{error}");
    assert!(error.contains("cannot do "), "{error}");
}

#[test]
fn srt_live_transmit_runs_a_plan() {
    if !have_all(&[Tool::SrtLiveTransmit]) {
        return;
    }
    let outcome = run_with("preset = 'srt-live-transmit'").unwrap();
    let number = |name: &str| outcome.numbers.get(name).copied().unwrap_or_default();
    assert_eq!(outcome.status, "ok");
    assert!(number("messagesReceived") > 300.0, "{:?}", outcome.numbers);
    assert!(number("sender.pktSentUnique") > 200.0, "{:?}", outcome.numbers);
    assert!(number("up.pktSent") > 300.0, "{:?}", outcome.numbers);
}

#[test]
fn ffmpeg_relays_each_message_as_it_is() {
    if !have_all(&[Tool::Ffmpeg]) {
        return;
    }
    let outcome = run_with("preset = 'ffmpeg'").unwrap();
    let number = |name: &str| outcome.numbers.get(name).copied().unwrap_or_default();
    assert_eq!(outcome.status, "ok");
    let bytes = number("byteMessagesReceived");
    assert!(bytes > 300.0 * 1316.0, "{:?}", outcome.numbers);
    assert_eq!(bytes, 1316.0 * number("messagesReceived"));
    assert!(!outcome.numbers.contains_key("sender.pktSent"));
}
