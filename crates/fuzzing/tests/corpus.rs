//! Replays the corpus of each fuzz target, and changed copies of its inputs. That finds only faults
//! that are new in known places; libFuzzer itself looks further: `cargo xtask fuzz`.

#![expect(clippy::cast_possible_truncation, reason = "random numbers are cut to their useful bits")]

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use punctual_fuzzing::TARGETS;
use punctual_testbed::Random;

/// Changed copies for each target.
const COPIES: u32 = 2_000;
/// Bytes of all corpora: they are part of every clone.
const MOST_BYTES: u64 = 500_000;
/// The target of the C library, whose own test replays the corpus: its sockets need real time.
const ELSEWHERE: &str = "capi";

#[test]
fn no_target_finds_anything_in_its_corpus() {
    let mut bytes = 0;
    for (target, run) in TARGETS {
        let corpus = corpus(target);
        assert!(!corpus.is_empty(), "the corpus of {target} is empty");
        for (path, input) in &corpus {
            bytes += input.len() as u64;
            let found = catch_unwind(AssertUnwindSafe(|| run(input)));
            assert!(found.is_ok(), "{target}: {}", path.display());
        }
    }
    assert!(bytes <= MOST_BYTES, "{bytes} bytes: cargo fuzz cmin makes them less");
}

#[test]
fn every_target_passes_on_changed_copies_of_its_corpus() {
    for (target, run) in TARGETS {
        let corpus = corpus(target);
        let mut chance = Random(1);
        for copy in 0..COPIES {
            let input = changed(&corpus, &mut chance);
            let found = catch_unwind(AssertUnwindSafe(|| run(&input)));
            if found.is_err() {
                let path = std::env::temp_dir().join(format!("fuzz-{target}-{copy}"));
                fs::write(&path, &input).unwrap();
                panic!("{target}: copy {copy}, written to {}", path.display());
            }
        }
    }
}

/// Every target has a program for libFuzzer, and every program its target.
#[test]
fn every_target_is_fuzzed() {
    let programs = fs::read_dir(folder().join("fuzz_targets")).unwrap();
    let mut programs: Vec<_> = programs.map(|entry| entry.unwrap().path()).collect();
    programs.sort();
    programs.retain(|path| path.file_stem().is_none_or(|name| name != ELSEWHERE));
    let names = programs.iter().map(|path| path.file_stem().unwrap().to_str().unwrap());
    assert!(names.eq(TARGETS.iter().map(|(name, _)| *name)), "{programs:?}");
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for ((name, _), program) in TARGETS.iter().zip(programs) {
        assert!(fs::read_to_string(program).unwrap().contains(&format!("run(\"{name}\", input)")));
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name}");
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz")
}

/// The files of a target's corpus, in the order of their names.
fn corpus(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs::read_dir(folder().join("corpus").join(target)).expect("a corpus");
    let mut paths: Vec<_> = files.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("a file"))).collect()
}

/// One of the inputs, with some bytes changed, left out or added, and perhaps the end of another.
fn changed(corpus: &[(PathBuf, Vec<u8>)], chance: &mut Random) -> Vec<u8> {
    let pick = |chance: &mut Random| corpus[chance.below(corpus.len() as u32) as usize].1.clone();
    let mut input = pick(chance);
    if chance.below(4) == 0 {
        let other = pick(chance);
        input.truncate(chance.below((input.len() + 1) as u32) as usize);
        input.extend_from_slice(&other[chance.below((other.len() + 1) as u32) as usize..]);
    }
    for _ in 0..=chance.below(8) {
        let at = chance.below((input.len() + 1) as u32) as usize;
        match chance.below(4) {
            0 => input.insert(at, chance.next_u32() as u8),
            1 if at < input.len() => drop(input.remove(at)),
            2 if at < input.len() => input[at] = [0, 0xFF, 0x7F, 0x80][chance.below(4) as usize],
            _ if at < input.len() => input[at] ^= 1 << chance.below(8),
            _ => {}
        }
    }
    input
}
