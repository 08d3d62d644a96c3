//! The description of a folder of results: how they were made, and how to make them again.

use serde::{Deserialize, Serialize};

use crate::results::layout::ParameterColumn;

/// How results were made. Nothing in it depends on the machine or the time.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The program and its version.
    pub program: String,
    /// The plan's name.
    pub plan: String,
    /// Identifies runs and columns: results with the same can be resumed and merged.
    pub sweep: String,
    /// The plan's seed.
    pub seed: u64,
    /// The backends.
    pub backends: Vec<String>,
    /// Whether it was run quickly.
    pub quick: bool,
    /// The values from the command line: `latency=120ms`.
    pub set: Vec<String>,
    /// Runs of the whole sweep.
    pub runs: usize,
    /// The part of it: `1/1` for all.
    pub shard: String,
    /// The parameters and their columns.
    pub parameters: Vec<ParameterColumn>,
}
