//! What one packet can cost: the instructions that the worst packet of each type makes an endpoint
//! execute, beside those of a packet of a stream. Whoever may send at all decides what is in the
//! fields of a packet; none of them may make it cost a multiple of others.
//!
//! Callgrind counts, so a busy machine counts the same; without valgrind the test is skipped,
//! or fails where nothing may be skipped.

#![expect(unreachable_pub, reason = "a test program has no outside")]

mod bed;
mod worst;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

use crate::worst::{KINDS, PACKETS};

/// A packet of a stream, taken in and delivered, costs so many instructions at most.
const ORDINARY: u64 = 6_000;

#[test]
fn no_packet_costs_more_than_a_few_microseconds() {
    let Some(costs) = measure() else { return };
    let ordinary = costs["ordinary"];
    assert!((100..ORDINARY).contains(&ordinary), "{ordinary} instructions");
    let mut dear = Vec::new();
    for kind in KINDS {
        let cost = costs[kind.name];
        println!("{:>8} instructions: {}", cost, kind.name);
        if cost > kind.most {
            dear.push(format!("{} costs {cost} instructions, more than {}", kind.name, kind.most));
        }
    }
    assert!(dear.is_empty(), "{dear:#?}");
}

/// What callgrind looks at: the test above starts it.
#[test]
#[ignore = "run under callgrind by the other test"]
fn under_callgrind() {
    for kind in KINDS {
        (kind.run)();
    }
}

/// Instructions a packet of each kind; `None` without valgrind.
fn measure() -> Option<BTreeMap<&'static str, u64>> {
    let file = std::env::temp_dir().join(format!("punctual-costs-{}", std::process::id()));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--compress-strings=no", "--compress-pos=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(std::env::current_exe().expect("the test's own path"))
        .args(["--ignored", "--exact", "under_callgrind"])
        .output();
    let output = match run {
        Ok(output) => output,
        Err(error) => {
            let problem =
                format!("valgrind does not start: {error} (Debian: apt install valgrind)");
            assert!(std::env::var("PUNCTUAL_REQUIRE_PEERS").as_deref() != Ok("1"), "{problem}");
            // Past the capture of the test harness, so that nobody takes it for a test that passed.
            let _ = writeln!(std::io::stdout(), "\nskipped: {problem}");
            return None;
        }
    };
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind failed: {log}");
    let counts = std::fs::read_to_string(&file).expect("callgrind has written its counts");
    std::fs::remove_file(&file).expect("a file of this test's");
    Some(KINDS.iter().map(|kind| (kind.name, inclusive(&counts, kind.name) / PACKETS)).collect())
}

/// Instructions in the function `measured::name` and all that it called.
fn inclusive(counts: &str, name: &str) -> u64 {
    let end = format!("measured::{name}");
    let mut within = false;
    let mut sum = 0;
    for line in counts.lines() {
        if let Some(function) = line.strip_prefix("fn=") {
            let path = function.split("::h").next().unwrap_or(function);
            within = path.ends_with(&end);
        } else if within && line.starts_with(|first: char| first.is_ascii_digit()) {
            let cost = line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok());
            sum += cost.unwrap_or(0);
        }
    }
    assert!(sum > 0, "callgrind counted nothing in {end}");
    sum
}
