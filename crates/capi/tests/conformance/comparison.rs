use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::differences::Accepted;
use crate::rows::{Answer, Key, Rows};

/// The rows of both libraries, side by side.
#[derive(Debug)]
pub(crate) struct Comparison(BTreeMap<Key, Pair>);

/// One row of both libraries. A library has no answer if its program ended before.
#[derive(Debug, Default)]
pub(crate) struct Pair {
    pub(crate) libsrt: Option<Answer>,
    pub(crate) ours: Option<Answer>,
}

impl Pair {
    fn differs(&self) -> bool {
        self.libsrt != self.ours
    }
}

impl Comparison {
    pub(crate) fn of(libsrt: &Rows, ours: &Rows) -> Self {
        let mut pairs = BTreeMap::<Key, Pair>::new();
        for (key, answer) in libsrt {
            pairs.entry(key.clone()).or_default().libsrt = Some(answer.clone());
        }
        for (key, answer) in ours {
            pairs.entry(key.clone()).or_default().ours = Some(answer.clone());
        }
        Self(pairs)
    }

    /// The row of this key.
    pub(crate) fn row(&self, key: &Key) -> Option<&Pair> {
        self.0.get(key)
    }

    /// The number of rows and the number of rows that differ, by program.
    pub(crate) fn counts(&self) -> BTreeMap<&str, (usize, usize)> {
        let mut counts = BTreeMap::<&str, (usize, usize)>::new();
        for (key, pair) in &self.0 {
            let (rows, different) = counts.entry(&key.program).or_default();
            *rows += 1;
            *different += usize::from(pair.differs());
        }
        counts
    }

    /// The rows that differ without an entry in the list, and the entries whose rows do not differ.
    fn faults(&self, accepted: &Accepted) -> (BTreeSet<Key>, BTreeSet<Key>) {
        let accepted: BTreeSet<Key> = accepted.reasons().into_keys().collect();
        let different: BTreeSet<Key> =
            self.0.iter().filter(|(_, pair)| pair.differs()).map(|(key, _)| key.clone()).collect();
        (&different - &accepted, &accepted - &different)
    }

    /// The programs whose rows have a fault.
    pub(crate) fn programs_with_problems(&self, accepted: &Accepted) -> BTreeSet<String> {
        let (unexpected, stale) = self.faults(accepted);
        let known: BTreeSet<&String> = self.0.keys().map(|key| &key.program).collect();
        let programs = unexpected.into_iter().chain(stale).map(|key| key.program);
        programs.filter(|program| known.contains(program)).collect()
    }

    /// A text of all faults, empty if there are none.
    pub(crate) fn problems(&self, accepted: &Accepted) -> String {
        let (unexpected, stale) = self.faults(accepted);
        let mut text = String::new();
        if !unexpected.is_empty() {
            let _ = writeln!(text, "{} rows differ and are not accepted:", unexpected.len());
        }
        let mut missing = BTreeMap::<&str, usize>::new();
        for key in &unexpected {
            let pair = &self.0[key];
            if pair.ours.is_none() {
                *missing.entry(&key.program).or_default() += 1;
                continue;
            }
            let _ = writeln!(text, "{key}");
            let _ = writeln!(text, "    libsrt: {}", shown(pair.libsrt.as_ref()));
            let _ = writeln!(text, "    ours:   {}", shown(pair.ours.as_ref()));
        }
        for (program, rows) in missing {
            let _ = writeln!(
                text,
                "{program}: ours does not print {rows} rows; \
                 target/interop/capi-conformance/ours-{program} has its output and its end"
            );
        }
        if !stale.is_empty() {
            let _ = writeln!(text, "{} entries of differences.toml do not differ:", stale.len());
        }
        for key in &stale {
            let _ = writeln!(text, "{key}");
        }
        text
    }
}

/// The answer, or a word for its absence.
pub(crate) fn shown(answer: Option<&Answer>) -> String {
    answer.map_or_else(|| "no row".to_owned(), Answer::to_string)
}

#[test]
fn a_row_that_differs_needs_an_entry_and_an_entry_needs_such_a_row() {
    use crate::rows::add_rows;
    let (mut libsrt, mut ours) = (Rows::new(), Rows::new());
    add_rows(&mut libsrt, "p", "f\tsame\t0\t-\t-\t-\nf\tother\t0\t-\t-\t-\n");
    add_rows(&mut ours, "p", "f\tsame\t0\t-\t-\t-\nf\tother\t-1\tEINVOP\t-\t-\n");
    let comparison = Comparison::of(&libsrt, &ours);
    let nothing = Accepted { groups: Vec::new() };
    let problems = comparison.problems(&nothing);
    assert!(
        problems.contains("p | f | other\n    libsrt: 0\n    ours:   -1, EINVOP"),
        "{problems}"
    );
    assert_eq!(comparison.counts()["p"], (2, 1));
}
