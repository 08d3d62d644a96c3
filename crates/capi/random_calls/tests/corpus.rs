//! Random calls of the C functions, beside a model of what they may do. The fuzz target `capi`
//! makes the same calls from the inputs of libFuzzer.

#![expect(clippy::disallowed_methods, reason = "sockets need the system's time")]
#![expect(clippy::cast_possible_truncation, reason = "random numbers are cut to their useful bits")]

use std::fs;
use std::panic::catch_unwind;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use punctual_random_calls::Reached;

/// The time for inputs that are made up here.
const TIME: Duration = Duration::from_secs(2);
/// The first number of the inputs that are made up here; a failure names the one that failed.
const SEED: u64 = 1;
/// The most bytes of an input.
const MOST_BYTES: u64 = 400;
/// The time after which an input hangs. Each takes some milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// Each input of the corpus, and inputs that are made up for some time. Both run one after another:
/// the functions have one library for the process.
#[test]
fn no_sequence_of_calls_breaks_a_promise() {
    if let Ok(seed) = std::env::var("RANDOM_CALLS_SEED") {
        punctual_random_calls::run(&made_up(seed.parse().expect("a number")));
        return;
    }
    let mut reached = [0; 5];
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../fuzz/corpus/capi");
    let mut paths: Vec<_> =
        fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        let input = fs::read(&path).unwrap();
        run(&mut reached, &input, &format!("the input {}", path.display()));
    }
    let begun = Instant::now();
    for seed in SEED.. {
        run(&mut reached, &made_up(seed), &format!("RANDOM_CALLS_SEED={seed} repeats it"));
        if begun.elapsed() > TIME {
            println!("{seed} made-up inputs; the calls reached {reached:?}");
            break;
        }
    }
    assert!(reached.iter().all(|&count| count > 0), "the calls reach only {reached:?}");
}

/// Makes the calls of an input, and adds what they reach: connections, groups, messages sent and
/// received, and events.
fn run(sum: &mut [u32; 5], input: &[u8], name: &str) {
    let (done, hangs) = mpsc::channel::<()>();
    let watched = name.to_owned();
    std::thread::spawn(move || {
        if hangs.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            eprintln!("a call hangs: {watched}");
            std::process::abort();
        }
    });
    let result = catch_unwind(|| punctual_random_calls::run(input));
    drop(done);
    let Ok(reached) = result else { panic!("{name}") };
    let Reached { accepted, accepted_groups, sent, received, reported } = reached;
    let counts = [accepted, accepted_groups, sent, received, reported];
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

/// Random bytes, by a generator of which the seed is the only state.
fn made_up(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB) >> 31
    };
    let len = next() % MOST_BYTES;
    (0..len).map(|_| next() as u8).collect()
}
