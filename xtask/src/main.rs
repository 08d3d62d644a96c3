//! Every chore of this repository as one program:
//! `cargo xtask test | check | bench | capi | dist | fuzz | relay-soak | swarm`.

#![forbid(unsafe_code)]

mod bare;
mod capi;
mod check;
mod dist;
mod lanes;
mod machines;
mod shell;
mod test;
#[cfg(test)]
mod tidy;
mod tools;
mod totals;

use std::process::ExitCode;

use crate::shell::Outcome;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match parse(&arguments) {
        Ok(Chore::Help) => {
            print!("{USAGE}");
            Ok(())
        }
        Ok(Chore::Test { require_peers }) => test::run(require_peers),
        Ok(Chore::TestWithoutPeers) => bare::run(),
        Ok(Chore::Check) => check::run_all(),
        Ok(Chore::Machines) => machines::same_worlds(),
        Ok(Chore::Bench { quick }) => tools::bench(quick),
        Ok(Chore::Capi { dev, prefix }) => capi::build(dev, prefix.as_deref()),
        Ok(Chore::Dist { dev, check }) => dist::run(dev, check),
        Ok(Chore::Fuzz { minutes, target }) => tools::fuzz(minutes, target.as_deref()),
        Ok(Chore::RelaySoak(soak)) => tools::relay_soak(soak),
        Ok(Chore::Swarm(extent)) => tools::swarm(extent),
        Err(problem) => Err(format!("{problem}\n\n{USAGE}")),
    };
    finish(outcome)
}

/// The chore of the command line.
#[derive(Debug, Eq, PartialEq)]
enum Chore {
    Bench { quick: bool },
    Capi { dev: bool, prefix: Option<String> },
    Check,
    Dist { dev: bool, check: bool },
    Fuzz { minutes: u64, target: Option<String> },
    Help,
    Machines,
    RelaySoak(Soak),
    Swarm(Extent),
    Test { require_peers: bool },
    TestWithoutPeers,
}

/// A soak of the relay.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Soak {
    minutes: u64,
    /// The seed of one that failed.
    seed: Option<u64>,
}

/// The extent of a swarm.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Extent {
    Seconds(u64),
    Seeds(u64),
    /// One seed again.
    Seed(u64),
}

fn parse(arguments: &[String]) -> Result<Chore, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        [] | ["help" | "--help" | "-h"] => Ok(Chore::Help),
        ["test"] => Ok(Chore::Test { require_peers: false }),
        ["test", "--require-peers"] => Ok(Chore::Test { require_peers: true }),
        ["test", "--without-peers"] => Ok(Chore::TestWithoutPeers),
        ["check"] => Ok(Chore::Check),
        ["machines"] => Ok(Chore::Machines),
        ["bench"] => Ok(Chore::Bench { quick: false }),
        ["bench", "--quick"] => Ok(Chore::Bench { quick: true }),
        ["capi", ref words @ ..] => parse_capi(words),
        ["dist", ref words @ ..] => parse_dist(words),
        ["fuzz"] => Ok(Chore::Fuzz { minutes: FUZZ_MINUTES, target: None }),
        ["fuzz", "--minutes", amount] => {
            let minutes = parse_amount(amount, "--minutes")?;
            Ok(Chore::Fuzz { minutes, target: None })
        }
        ["fuzz", "--minutes", amount, target] => {
            let minutes = parse_amount(amount, "--minutes")?;
            Ok(Chore::Fuzz { minutes, target: Some(target.to_owned()) })
        }
        ["fuzz", target] if !target.starts_with('-') => {
            Ok(Chore::Fuzz { minutes: FUZZ_MINUTES, target: Some(target.to_owned()) })
        }
        ["relay-soak", ref words @ ..] => parse_soak(words),
        ["swarm"] => Ok(Chore::Swarm(Extent::Seconds(SWARM_SECONDS))),
        ["swarm", amount] => parse_amount(amount, "swarm").map(Extent::Seconds).map(Chore::Swarm),
        ["swarm", "--seeds", amount] => {
            parse_amount(amount, "--seeds").map(Extent::Seeds).map(Chore::Swarm)
        }
        ["swarm", "--seed", seed] => parse_seed(seed).map(Extent::Seed).map(Chore::Swarm),
        [chore @ ("test" | "check" | "bench" | "fuzz"), option, ..] => {
            Err(format!("{chore} does not take {option:?}"))
        }
        _ => Err(format!("there is no chore {:?}", words.join(" "))),
    }
}

fn parse_dist(words: &[&str]) -> Result<Chore, String> {
    let (mut dev, mut check) = (false, false);
    for word in words {
        match *word {
            "--dev" => dev = true,
            "--check" => check = true,
            other => return Err(format!("dist does not take {other:?}")),
        }
    }
    Ok(Chore::Dist { dev, check })
}

fn parse_soak(words: &[&str]) -> Result<Chore, String> {
    let mut soak = Soak { minutes: SOAK_MINUTES, seed: None };
    let mut rest = words;
    while let [option, value, after @ ..] = rest {
        match *option {
            "--minutes" => soak.minutes = parse_amount(value, "--minutes")?,
            "--seed" => soak.seed = Some(parse_seed(value)?),
            _ => break,
        }
        rest = after;
    }
    match rest {
        [] => Ok(Chore::RelaySoak(soak)),
        [option, ..] => Err(format!("relay-soak does not take {option:?}")),
    }
}

fn parse_capi(words: &[&str]) -> Result<Chore, String> {
    let (dev, rest) = match words {
        ["--dev", rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    match *rest {
        [] => Ok(Chore::Capi { dev, prefix: None }),
        [prefix] if !prefix.starts_with('-') => {
            Ok(Chore::Capi { dev, prefix: Some(prefix.to_owned()) })
        }
        [option, ..] if option.starts_with('-') => Err(format!("capi does not take {option:?}")),
        [..] => Err("capi takes one folder".to_owned()),
    }
}

fn parse_seed(seed: &str) -> Result<u64, String> {
    seed.parse().map_err(|_| format!("--seed takes the number of a seed, not {seed:?}"))
}

fn parse_amount(amount: &str, of: &str) -> Result<u64, String> {
    match amount.parse() {
        Ok(amount) if amount > 0 => Ok(amount),
        _ => Err(format!("{of} takes a number of at least 1, not {amount:?}")),
    }
}

fn finish(outcome: Outcome) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("xtask: {problem}");
            ExitCode::FAILURE
        }
    }
}

/// The default time for each fuzz target, minutes.
const FUZZ_MINUTES: u64 = 1;

/// The default time of a soak of the relay, minutes.
const SOAK_MINUTES: u64 = 10;

/// The default time of a swarm, seconds.
const SWARM_SECONDS: u64 = 60;

const USAGE: &str = "\
Every chore of this repository.

    cargo xtask test [--require-peers]  every test: unit, doc, scenario, interop; a missing peer
                                        program skips its tests, or fails them with the flag
    cargo xtask test --without-peers    the tests that call other programs, with a PATH that holds
                                        the toolchain and the C compiler alone
    cargo xtask check                   formatting, clippy, rustdoc, the core for wasm,
                                        licences and bans of dependencies
    cargo xtask machines                the same simulated worlds here, on aarch64 (QEMU) and in
                                        WebAssembly (Node.js)
    cargo xtask bench [--quick]         the measurements against libsrt, into the tables of
                                        docs/benchmarks.md
    cargo xtask capi [--dev] [PREFIX]   the C library with libsrt's names, its headers and pkg-config
                                        files, into a folder (target/capi); --dev without
                                        optimisation
    cargo xtask dist [--dev] [--check]  programs, manual pages, completions, Debian packages and the
                                        list of their parts, into target/dist; --check builds the
                                        packages twice, and installs, runs and purges them on a copy
                                        of this system (root); --dev without optimisation
    cargo xtask fuzz [--minutes N] [TARGET]  each fuzz target, or this one, for some minutes (1)
    cargo xtask relay-soak [--minutes N] [--seed N]
                                        50 publishers and 200 viewers come and go at the relay over
                                        a bad link, for some minutes (10)
    cargo xtask swarm [SECONDS]         random simulated worlds on all cores, for some time (60);
                                        --seeds N for this number, --seed N for one that failed
";

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Chore, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words)
    }

    #[test]
    fn chores_and_their_options_are_told_apart() {
        assert_eq!(parsed("test"), Ok(Chore::Test { require_peers: false }));
        assert_eq!(parsed("test --require-peers"), Ok(Chore::Test { require_peers: true }));
        assert_eq!(parsed("test --without-peers"), Ok(Chore::TestWithoutPeers));
        assert_eq!(parsed("bench --quick"), Ok(Chore::Bench { quick: true }));
        let capi =
            |dev, prefix: Option<&str>| Ok(Chore::Capi { dev, prefix: prefix.map(str::to_owned) });
        assert_eq!(parsed("capi"), capi(false, None));
        assert_eq!(parsed("capi /opt/srt"), capi(false, Some("/opt/srt")));
        assert_eq!(parsed("capi --dev here"), capi(true, Some("here")));
        let dist = |dev, check| Ok(Chore::Dist { dev, check });
        assert_eq!(parsed("dist"), dist(false, false));
        assert_eq!(parsed("dist --check --dev"), dist(true, true));
        let fuzz = |minutes, target: Option<&str>| {
            Ok(Chore::Fuzz { minutes, target: target.map(str::to_owned) })
        };
        assert_eq!(parsed("fuzz"), fuzz(1, None));
        assert_eq!(parsed("fuzz packet"), fuzz(1, Some("packet")));
        assert_eq!(parsed("fuzz --minutes 3"), fuzz(3, None));
        assert_eq!(parsed("fuzz --minutes 3 packet"), fuzz(3, Some("packet")));
        let soak = |minutes, seed| Ok(Chore::RelaySoak(Soak { minutes, seed }));
        assert_eq!(parsed("relay-soak"), soak(10, None));
        assert_eq!(parsed("relay-soak --seed 7 --minutes 2"), soak(2, Some(7)));
        assert_eq!(parsed("swarm 9"), Ok(Chore::Swarm(Extent::Seconds(9))));
        assert_eq!(parsed("swarm --seeds 7"), Ok(Chore::Swarm(Extent::Seeds(7))));
        assert_eq!(parsed("swarm --seed 0"), Ok(Chore::Swarm(Extent::Seed(0))));
        assert_eq!(parsed(""), Ok(Chore::Help));
    }

    #[test]
    fn an_unknown_chore_or_option_is_named() {
        assert_eq!(parsed("tset").unwrap_err(), "there is no chore \"tset\"");
        assert_eq!(parsed("check --quick").unwrap_err(), "check does not take \"--quick\"");
        assert_eq!(parsed("capi --debug").unwrap_err(), "capi does not take \"--debug\"");
        assert_eq!(parsed("dist there").unwrap_err(), "dist does not take \"there\"");
        assert_eq!(parsed("capi a b").unwrap_err(), "capi takes one folder");
        assert!(parsed("fuzz --minutes 0").unwrap_err().contains("at least 1"));
        assert!(parsed("fuzz --hours 1").unwrap_err().contains("does not take"));
        assert!(parsed("relay-soak --minutes 0").unwrap_err().contains("at least 1"));
        assert!(parsed("relay-soak --seed").unwrap_err().contains("does not take"));
        assert!(parsed("relay-soak --hours 1").unwrap_err().contains("does not take"));
        assert!(parsed("swarm --seeds 0").unwrap_err().contains("at least 1"));
    }
}
