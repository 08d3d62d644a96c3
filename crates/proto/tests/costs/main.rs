//! The cost of one packet: the instructions that the worst packets of each type make an endpoint
//! execute, compared to a data packet of a stream. A peer may put anything into the fields of a
//! packet, but no value may make the packet cost many times as much as others.
//!
//! Callgrind counts instructions, so that the load of the machine has no influence. Without
//! valgrind the test is skipped, or fails if nothing may be skipped.

#![expect(unreachable_pub, reason = "a test program has no outside")]

mod bed;
mod worst;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::Command;

use crate::worst::{KINDS, PACKETS};

/// The upper bound for a data packet of a stream, received and delivered, instructions.
const ORDINARY: u64 = 6_000;

#[test]
fn no_packet_costs_more_than_a_few_microseconds() {
    let Some(costs) = measure() else { return };
    let ordinary = costs["ordinary"];
    assert!((100..ORDINARY).contains(&ordinary), "{ordinary} instructions");
    let mut costly = Vec::new();
    for kind in KINDS {
        let cost = costs[kind.name];
        println!("{:>8} instructions: {}", cost, kind.name);
        if cost > kind.most {
            costly
                .push(format!("{} costs {cost} instructions, more than {}", kind.name, kind.most));
        }
    }
    assert!(costly.is_empty(), "{costly:#?}");
}

/// The program under callgrind, which the test above starts.
#[test]
#[ignore = "run under callgrind by the other test"]
fn under_callgrind() {
    for kind in KINDS {
        (kind.run)();
    }
}

/// The mean number of instructions for a packet of each kind; `None` without valgrind.
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
            // Directly to the standard output, since the harness hides the output of tests that
            // pass.
            let _ = writeln!(std::io::stdout(), "\nskipped: {problem}");
            return None;
        }
    };
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "valgrind failed: {log}");
    let counts = std::fs::read_to_string(&file).expect("callgrind has written its counts");
    std::fs::remove_file(&file).expect("the counts are there");
    Some(KINDS.iter().map(|kind| (kind.name, inclusive(&counts, kind.name) / PACKETS)).collect())
}

/// Instructions in the function `measured::name` and the functions that it called.
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
