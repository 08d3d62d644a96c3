//! The search for packets that cost much: random single packets in the peer's name, the borders of
//! the number space first, at both halves of a connection, in groups, over QUIC and in resumed
//! streams.
//!
//! `FORGED_PACKETS` sets their number for each target, such as 10000000 for some minutes, and
//! `FORGED_FROM` the first seed.
//!
//! Time depends on the machine and its load. So callgrind counts the instructions of each packet of
//! the inputs that took longest, and of the first ones. Without valgrind this part is skipped, or
//! fails if nothing may be skipped.

#![expect(clippy::disallowed_methods, reason = "the search measures time")]
#![expect(clippy::cast_possible_truncation, reason = "random numbers are cut to their useful bits")]

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

use punctual_fuzzing::run;
use punctual_testbed::{Random, callgrind};

/// The time that an input of [`AT_ONCE`] packets may take, at the best of [`ATTEMPTS`]. On an idle
/// machine it takes some milliseconds, and one walk through half of all sequence numbers takes some
/// seconds.
const MOST: Duration = Duration::from_millis(200);
const ATTEMPTS: u32 = 3;
/// The packets of an input.
const AT_ONCE: u32 = 100;
/// Bytes of the choices for a packet.
const CHOICES: u32 = 100;
/// Of each target, the first inputs and the slowest ones whose instructions are counted.
const COUNTED: usize = 4;
/// The environment variable that names the inputs to be counted.
const INPUTS: &str = "FORGED_INPUTS";

/// A target, the number of different first bytes, which are its options, the input that brings
/// about a connection, steps of the application and the clock that come between packets, and the
/// share of the packets that it gets.
///
/// The most instructions of a packet count all that follows from it at once: in a group at the
/// links of both ends, over QUIC in the peer's QUIC, too. The costliest packets, which establish
/// a connection, prove that a stream is the peer's own, or report everything lost, reach half of
/// them at most. A walk through a thousandth of all sequence numbers costs more.
struct Search {
    target: &'static str,
    options: usize,
    begin: &'static [u8],
    /// One of these, or any three bytes.
    between: &'static [&'static [u8]],
    packets: u32,
    most: u64,
}

const SEARCHES: [Search; 4] = [
    Search {
        target: "endpoint",
        options: 2,
        begin: &[],
        between: ENDPOINT,
        packets: 300_000,
        most: 200_000,
    },
    Search {
        target: "group",
        options: 3,
        begin: &[30, 100, 0],
        between: &[],
        packets: 60_000,
        most: 250_000,
    },
    Search {
        target: "quic",
        options: 1,
        begin: CALL,
        between: QUIC,
        packets: 60_000,
        most: 2_000_000,
    },
    Search {
        target: "resume",
        options: 0,
        begin: &[],
        between: &[],
        packets: 60_000,
        most: 350_000,
    },
];

/// Steps of the target `endpoint`: 0.01, 10, 50 or 5,000 ms pass, or a message is sent, with a time
/// to live or without.
const ENDPOINT: &[&[u8]] =
    &[&[0, 0, 10], &[0, 39, 16], &[1, 0, 50], &[1, 19, 136], &[8, 0, 1, 0], &[8, 20, 4, 0]];
/// Steps of the target `quic`: 10 or 50 ms pass, or the caller's next packet arrives, in a DATAGRAM
/// frame or on a stream.
const QUIC: &[&[u8]] = &[&[0, 39, 16], &[1, 0, 50], &[4, 0, 0], &[5, 0, 0]];
/// Steps of the target `quic` in which the caller calls: its next packet arrives, and 50 ms pass.
const CALL: &[u8] = &[4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50, 4, 0, 0, 1, 0, 50];

#[test]
fn no_forged_packet_takes_long_or_executes_many_instructions() {
    let mut inputs = Vec::new();
    for search in &SEARCHES {
        let first = 1..=COUNTED as u64;
        inputs.extend(first.chain(slowest(search)).map(|seed| (search, seed)));
    }
    let Some(counts) = count(&inputs) else { return };
    let mut costly = Vec::new();
    for search in &SEARCHES {
        let (mut packets, mut greatest) = (0, 0);
        let of_target =
            inputs.iter().zip(&counts).filter(|((it, _), _)| it.target == search.target);
        for ((_, seed), costs) in of_target {
            packets += costs.len();
            let most = costs.iter().copied().max().unwrap_or(0);
            greatest = greatest.max(most);
            if most > search.most {
                let path = written(search, *seed);
                let Search { target, most: bound, .. } = search;
                costly.push(format!("{target}, seed {seed}: {most}, not {bound}: {path}"));
            }
        }
        println!("{}: at most {greatest} instructions of {packets} packets", search.target);
        assert!(packets > 0, "callgrind counted no packet of {}", search.target);
    }
    assert!(costly.is_empty(), "packets of more instructions than allowed: {costly:#?}");
}

/// Runs the inputs of a target. Returns the seeds of the slowest ones.
fn slowest(search: &Search) -> Vec<u64> {
    let inputs = number("FORGED_PACKETS").unwrap_or(search.packets.into()).div_ceil(AT_ONCE.into());
    let first = number("FORGED_FROM").unwrap_or(1);
    let (mut slowest, began) = (Vec::new(), Instant::now());
    for seed in first..first + inputs {
        let input = search.drawn(seed);
        let time = || {
            let start = Instant::now();
            run(search.target, &input);
            start.elapsed()
        };
        // Other programs may have delayed an input that seems to be one of the slowest.
        let others = slowest.get(COUNTED - 1).map_or(Duration::ZERO, |&(took, _)| took);
        let mut best = time();
        for _ in 1..ATTEMPTS {
            best = if best > others { best.min(time()) } else { best };
        }
        assert!(
            best <= MOST,
            "{}, seed {seed} takes {best:?}, written to {}",
            search.target,
            written(search, seed)
        );
        let place = slowest.partition_point(|&(took, _)| took > best);
        slowest.insert(place, (best, seed));
        slowest.truncate(COUNTED);
    }
    let (packets, longest) = (inputs * u64::from(AT_ONCE), slowest[0].0);
    println!("{}: {packets} packets in {:?}, at most {longest:?}", search.target, began.elapsed());
    slowest.into_iter().map(|(_, seed)| seed).collect()
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Writes an input to a file, for the fuzz target. Returns its path.
fn written(search: &Search, seed: u64) -> String {
    let path = std::env::temp_dir().join(format!("slow-{}-{seed}", search.target));
    fs::write(&path, search.drawn(seed)).expect("there is room for an input");
    path.display().to_string()
}

impl Search {
    /// An input of packets with random choices, between which the application and the clock
    /// sometimes do something.
    fn drawn(&self, seed: u64) -> Vec<u8> {
        let mut random = Random(seed);
        let mut input: Vec<u8> = (0..self.options).map(|_| random.next_u32() as u8).collect();
        input.extend_from_slice(self.begin);
        for _ in 0..AT_ONCE {
            if random.below(8) == 0 {
                match self.between.get(random.below(self.between.len().max(1) as u32) as usize) {
                    Some(step) => input.extend(*step),
                    None => {
                        let step = random.below(0xF0) as u8;
                        input.extend([step, random.below(4) as u8, random.below(99) as u8]);
                    }
                }
            }
            input.extend([0xF0 | random.below(16) as u8, CHOICES as u8]);
            // Half of the choices are the same small ones, so that several fields fit together.
            let most = if random.below(2) == 0 { 256 } else { 16 };
            input.extend((0..CHOICES).map(|_| random.below(most) as u8));
        }
        input
    }
}

/// The instructions of each forged packet of these inputs; `None` without valgrind.
fn count(inputs: &[(&Search, u64)]) -> Option<Vec<Vec<u64>>> {
    let names: Vec<_> =
        inputs.iter().map(|(search, seed)| format!("{} {seed}", search.target)).collect();
    let options = [
        "--combine-dumps=yes",
        "--dump-line=no",
        "--dump-before=*costs::counted*",
        "--dump-after=*packet_cost::packet_begins*",
        "--dump-after=*packet_cost::packet_ends*",
    ];
    let counts = read(BufReader::new(callgrind(&options, &[(INPUTS, &names.join(","))])?));
    assert_eq!(counts.len(), inputs.len(), "each input was counted");
    Some(counts)
}

/// Reads the instructions of each packet of each input. Callgrind writes a dump when an input
/// begins, when a packet begins and when a packet ends, with the instructions since the last one.
fn read(dumps: impl BufRead) -> Vec<Vec<u64>> {
    let (mut counts, mut trigger) = (Vec::<Vec<u64>>::new(), String::new());
    for line in dumps.lines() {
        let line = line.expect("the dumps are text");
        if let Some(reason) = line.strip_prefix("desc: Trigger: ") {
            reason.clone_into(&mut trigger);
            if trigger.contains("costs::counted") {
                counts.push(Vec::new());
            }
        } else if let Some(total) = line.strip_prefix("totals: ")
            && trigger.contains("packet_ends")
        {
            let packets = counts.last_mut().expect("a packet belongs to an input");
            packets.push(total.trim().parse().expect("a total is a number"));
        }
    }
    counts
}

/// The program under callgrind, which the test above starts.
#[test]
#[ignore = "run under callgrind by the other test"]
fn under_callgrind() {
    let names = std::env::var(INPUTS).expect("the inputs to be counted");
    for name in names.split(',') {
        let (target, seed) = name.split_once(' ').expect("a target and a seed");
        let search = SEARCHES.iter().find(|it| it.target == target).expect("a target");
        counted(target, &search.drawn(seed.parse().expect("a number")));
    }
}

/// Callgrind finds the beginning of an input by the name of this function.
#[inline(never)]
fn counted(target: &str, input: &[u8]) {
    run(target, input);
    // So that the call above returns to this function.
    black_box(());
}
