//! The search for packets that cost much: random single packets in the peer's name, the borders of
//! the number space first, at both halves of a connection, in groups, over QUIC and in resumed
//! streams.
//!
//! `FORGED_PACKETS` sets their number for each target, such as 10000000 for some minutes.

#![expect(clippy::disallowed_methods, reason = "the search measures time")]
#![expect(clippy::cast_possible_truncation, reason = "random numbers are cut to their useful bits")]

use std::fs;
use std::time::{Duration, Instant};

use punctual_fuzzing::run;
use punctual_testbed::Random;

/// The time that an input of [`AT_ONCE`] packets may take. On an idle machine it takes some
/// milliseconds, and one walk through half of all sequence numbers takes some seconds.
const MOST: Duration = Duration::from_secs(2);
/// The packets of an input.
const AT_ONCE: u32 = 100;
/// Bytes of the choices for a packet.
const CHOICES: u32 = 100;

/// A target, the input that brings about a connection, the share of the packets that it gets, and
/// the number of different first bytes, which are its options.
struct Search {
    target: &'static str,
    options: usize,
    begin: &'static [u8],
    packets: u32,
}

const SEARCHES: [Search; 4] = [
    Search { target: "endpoint", options: 2, begin: &[], packets: 300_000 },
    Search { target: "group", options: 3, begin: &[30, 100, 0], packets: 60_000 },
    Search { target: "quic", options: 1, begin: CALL, packets: 60_000 },
    Search { target: "resume", options: 0, begin: &[], packets: 60_000 },
];

/// Steps of the target `quic` in which the caller calls: its next packet arrives, and 50 ms pass.
const CALL: &[u8] = &[4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50];

#[test]
fn no_forged_packet_takes_long() {
    for Search { target, options, begin, packets } in SEARCHES {
        let asked = std::env::var("FORGED_PACKETS").ok().and_then(|number| number.parse().ok());
        let inputs = asked.unwrap_or(packets).div_ceil(AT_ONCE);
        let (mut longest, began) = (Duration::ZERO, Instant::now());
        for seed in 0..inputs {
            let input = drawn(&mut Random(u64::from(seed) + 1), options, begin);
            let start = Instant::now();
            run(target, &input);
            let took = start.elapsed();
            if took > MOST {
                let path = std::env::temp_dir().join(format!("slow-{target}-{seed}"));
                fs::write(&path, &input).unwrap();
                panic!("{target}: seed {seed} takes {took:?}, written to {}", path.display());
            }
            longest = longest.max(took);
        }
        let packets = inputs * AT_ONCE;
        println!("{target}: {packets} packets in {:?}, at most {longest:?}", began.elapsed());
    }
}

/// An input of packets with random choices, between which the application and the clock sometimes
/// do something.
fn drawn(random: &mut Random, options: usize, begin: &[u8]) -> Vec<u8> {
    let mut input: Vec<u8> = (0..options).map(|_| random.next_u32() as u8).collect();
    input.extend_from_slice(begin);
    for _ in 0..AT_ONCE {
        if random.below(8) == 0 {
            input.extend([random.below(0xF0) as u8, random.below(4) as u8, random.below(99) as u8]);
        }
        input.extend([0xF0 | random.below(16) as u8, CHOICES as u8]);
        // Half of the choices are the same small ones, so that several fields fit together.
        let most = if random.below(2) == 0 { 256 } else { 16 };
        input.extend((0..CHOICES).map(|_| random.below(most) as u8));
    }
    input
}
