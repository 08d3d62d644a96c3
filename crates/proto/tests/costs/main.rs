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
use std::io::Read as _;

use punctual_testbed::callgrind;

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
    let mut file = callgrind(&["--compress-strings=no", "--compress-pos=no"], &[])?;
    let mut counts = String::new();
    file.read_to_string(&mut counts).expect("the counts are text");
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
