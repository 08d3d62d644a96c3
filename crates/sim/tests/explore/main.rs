//! Random worlds from a seed, checked against rules that hold at any time, and rules that hold
//! after the faults are over.
//!
//! A seed that fails is printed with its plan. To run it again: `EXPLORE_SEED=17 cargo test -p
//! punctual-sim --test explore`; a long run on all cores is `cargo xtask swarm`. A failure that was
//! understood becomes a scenario of `crates/proto/tests`, reduced by hand to the necessary.

#![expect(unreachable_pub, reason = "a test program has no outside")]
#![expect(clippy::cast_possible_truncation, reason = "the numbers of a plan are small")]

mod cut;
mod extras;
mod judge;
mod kinds;
mod lossless;
mod plan;
mod run;
mod swarm;

use std::hash::{DefaultHasher, Hasher};

use crate::run::explore;

/// Seeds of a short run.
const SEEDS: u64 = 150;

#[test]
fn random_worlds_keep_the_rules_and_recover() {
    if let Some(seed) = swarm::number("EXPLORE_SEED") {
        println!("{}", explore(seed));
        return;
    }
    for seed in 0..SEEDS {
        explore(seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 77, 204] {
        assert!(explore(seed) == explore(seed), "seed {seed}");
    }
}

/// Machines of all kinds print the same line, with QUIC in the simulator or without.
#[test]
#[ignore = "its line is compared with those of other machines: cargo xtask machines"]
fn hash_of_worlds() {
    let mut hash = DefaultHasher::new();
    for seed in (0..).filter(|seed| !plan::Plan::chooses_quic(*seed)).take(HASHED_WORLDS) {
        hash.write(explore(seed).as_bytes());
    }
    println!("hash of {HASHED_WORLDS} worlds: {:016x}", hash.finish());
}

/// Enough for both algorithms of retransmission and each control of the rate.
const HASHED_WORLDS: usize = 40;
