//! Runs that this machine cannot run are left out of a sweep.

use crate::run::RunSpec;
use crate::sweep::Execution;

/// Runs that this machine cannot run, all for one reason. `--resume` on another one, or with more
/// rights, does them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftOut {
    /// The right or the part of the system that the machine lacks.
    pub reason: String,
    /// How many they are.
    pub runs: usize,
}

/// The runs that this machine can do, and the others.
pub(super) fn parted<'a>(
    specs: Vec<&'a RunSpec>,
    execution: &Execution<'_>,
) -> Result<(Vec<&'a RunSpec>, Vec<LeftOut>), String> {
    let mut possible = Vec::new();
    let mut left_out: Vec<LeftOut> = Vec::new();
    for spec in specs {
        let Some(reason) = execution.backend(&spec.backend)?.lacks(spec) else {
            possible.push(spec);
            continue;
        };
        match left_out.iter_mut().find(|it| it.reason == reason) {
            Some(known) => known.runs += 1,
            None => left_out.push(LeftOut { reason, runs: 1 }),
        }
    }
    Ok((possible, left_out))
}
