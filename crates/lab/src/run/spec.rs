//! The list of runs of a plan, each with an identity and a seed that depend on nothing but its
//! parameters and its repeat.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hasher as _;
use std::str::FromStr;

use siphasher::sip::SipHasher24;

use crate::plan::{ParameterValue, Plan, PlanError, Values};
use crate::run::setup::Setup;

/// One run: its values, its repeat and its seed.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The same runs of any sweep have the same ID: `srt-750-3f9c01a2b4d5-1`.
    pub id: String,
    /// The experiment's name; empty for the only one of a plan.
    pub experiment: String,
    /// The name of its backend.
    pub backend: String,
    /// From 1.
    pub repeat: u32,
    /// From the parameters and the repeat, the same on each backend.
    pub seed: u64,
    /// Every parameter's value, in the order of the plan.
    pub values: Values,
    /// The meaning of the values.
    pub setup: Setup,
}

/// Which runs of a plan are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Backends; empty for the plan's.
    pub backends: Vec<String>,
    /// The part of all runs.
    pub shard: SweepShard,
}

/// One of several parts of a sweep, which have no run in common and are the sweep together.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SweepShard {
    /// From 1.
    pub index: u64,
    /// The number of parts.
    pub count: u64,
}

impl Default for SweepShard {
    fn default() -> Self {
        Self { index: 1, count: 1 }
    }
}

impl FromStr for SweepShard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers = text.split_once('/').and_then(|(index, count)| {
            Some(Self { index: index.parse().ok()?, count: count.parse().ok()? })
        });
        numbers
            .filter(|shard| (1..=shard.count).contains(&shard.index))
            .ok_or_else(|| format!("`{text}` is no shard; the second of four is written `2/4`"))
    }
}

impl SweepShard {
    /// Whether a run is in this part. All repeats of a combination are spread over the parts.
    pub(crate) fn holds(self, spec: &RunSpec) -> bool {
        hash(&format!("shard\n{}\n{}", spec.backend, spec.id)) % self.count == self.index - 1
    }
}

/// Every run that is wanted: backend after backend, experiment after experiment, combination after
/// combination, repeat after repeat.
///
/// # Errors
///
/// A value that cannot be had, with its place.
pub fn runs(plan: &Plan, selection: &Selection) -> Result<Vec<RunSpec>, PlanError> {
    let backends = match selection.backends.as_slice() {
        [] => &plan.run.backends,
        given => given,
    };
    let mut specs = Vec::new();
    for backend in backends {
        let plan = plan.on(backend)?;
        for experiment in &plan.experiments {
            for values in experiment.grid.combinations()? {
                for repeat in 1..=plan.repeats(experiment) {
                    let name = &experiment.name;
                    let seed = hash(&canonical(plan.run.seed, name, &world(&values), Some(repeat)));
                    let setup = Setup::new(&plan, experiment, &values, seed)?;
                    let identity = hash(&canonical(plan.run.seed, name, &values, None));
                    let dash = if name.is_empty() { "" } else { "-" };
                    specs.push(RunSpec {
                        id: format!("{name}{dash}{:012x}-{repeat}", identity >> 16),
                        experiment: name.clone(),
                        backend: backend.clone(),
                        repeat,
                        seed,
                        values: values.clone(),
                        setup,
                    });
                }
            }
        }
    }
    specs.retain(|spec| selection.shard.holds(spec));
    Ok(specs)
}

/// The identity of the world of a run. Streams that share a link are one world, whichever of them
/// is observed.
fn world(values: &Values) -> Values {
    let is_shared = values.iter().any(|(key, _)| key == "stream.together");
    let kept = |(key, _): &&(String, ParameterValue)| !(is_shared && key == "stream.transport");
    values.iter().filter(kept).cloned().collect()
}

/// The identity of a run, as a text that depends neither on the order of keys nor on the way values
/// are written.
fn canonical(seed: u64, experiment: &str, values: &Values, repeat: Option<u32>) -> String {
    let sorted: BTreeMap<&str, String> =
        values.iter().map(|(key, value)| (key.as_str(), value.to_string())).collect();
    let mut text = format!("seed={seed}\nexperiment={experiment}\n");
    for (key, value) in sorted {
        let _ = writeln!(text, "{key}={value}");
    }
    if let Some(repeat) = repeat {
        let _ = writeln!(text, "repeat={repeat}");
    }
    text
}

/// A hash that is the same for ever: SipHash-2-4 with the key zero.
pub(crate) fn hash(text: &str) -> u64 {
    let mut hasher = SipHasher24::new();
    hasher.write(text.as_bytes());
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = "name = 'n'\n[stream]\nbitrate = '5Mbps'\nduration = '1s'\n[link]\n\
        rtt = '20ms'\nloss = ['5%', '10%']\n[options]\nlatency = ['2 * RTT', '80ms']\n\
        [run]\nrepeats = 3";

    fn specs(text: &str, shard: &str) -> Vec<RunSpec> {
        let plan = Plan::parse("n.toml", text).unwrap();
        let selection = Selection { backends: Vec::new(), shard: shard.parse().unwrap() };
        runs(&plan, &selection).unwrap()
    }

    #[test]
    fn a_runs_seed_depends_on_nothing_but_its_parameters_and_repeat() {
        let all = specs(PLAN, "1/1");
        assert_eq!(all.len(), 12);
        let other = PLAN.replace("'5%', '10%'", "0.1, '7%'").replace("rtt = '20ms'\n", "")
            + "\n[link.up]\n";
        let other = other.replace("[link.up]\n", "").replace("[link]\n", "[link]\nrtt = '0.02s'\n");
        let others = specs(&other.replace("'2 * RTT', '80ms'", "40"), "1/1");
        let same = &others[0];
        let first = all.iter().find(|spec| spec.id == same.id).expect("the same run is in both");
        assert_eq!((first.seed, first.repeat), (same.seed, same.repeat));
        let mut seeds: Vec<u64> = all.iter().map(|spec| spec.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 12);
    }

    #[test]
    fn streams_that_share_a_link_are_observed_in_one_world() {
        let plan = |together: &str| {
            let transport = "transport = ['srt', 'udp']";
            PLAN.replace("[stream]", &format!("[stream]\n{transport}\n{together}"))
        };
        let seeds = |text: &str| {
            // The first half of the runs observes one stream, the other half the other.
            let specs = specs(text, "1/1");
            let (one, other) = (&specs[0], &specs[specs.len() / 2]);
            assert_ne!(one.setup.transport.observed, other.setup.transport.observed);
            [one.seed, other.seed]
        };
        let [one, other] = seeds(&plan("together = ['udp', 'srt']"));
        assert_eq!(one, other);
        let [one, other] = seeds(&plan(""));
        assert_ne!(one, other);
    }

    #[test]
    fn seeds_and_identities_stay_for_ever() {
        let first = &specs(PLAN, "1/1")[0];
        assert_eq!((first.id.as_str(), first.seed), ("ec036a4c8aae-1", 7_060_844_298_016_806_863));
    }

    #[test]
    fn shards_have_no_run_in_common_and_are_all_runs_together() {
        let mut ids: Vec<String> = Vec::new();
        for shard in ["1/3", "2/3", "3/3"] {
            ids.extend(specs(PLAN, shard).into_iter().map(|spec| spec.id));
        }
        let mut all: Vec<String> = specs(PLAN, "1/1").into_iter().map(|spec| spec.id).collect();
        ids.sort();
        all.sort();
        assert_eq!(ids, all);
        for wrong in ["0/3", "4/3", "3", "a/b", "1/0"] {
            assert!(wrong.parse::<SweepShard>().unwrap_err().contains("`2/4`"));
        }
    }
}
