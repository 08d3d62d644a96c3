//! The values of `[blocks]`: a record of each packet of a stream.

use std::time::Duration;

use super::setup::Given;
use crate::plan::PlanError;

/// A record of each block, which is a data packet of the stream. Only `sim` has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BlockOptions {
    /// The time of video that the player gets at once, and in which a glitch counts once.
    pub readchunk: Duration,
    /// Blocks that should arrive earlier than this are not counted.
    pub after: Duration,
    /// Whether the blocks that came as retransmissions and the readchunks are written to files.
    pub are_written: bool,
}

impl Default for BlockOptions {
    fn default() -> Self {
        Self { readchunk: Duration::from_secs(1), after: Duration::ZERO, are_written: false }
    }
}

impl BlockOptions {
    /// The record that a plan asks for; `None` if it has no `[blocks]`.
    pub(super) fn read(given: &Given<'_>) -> Result<Option<Self>, PlanError> {
        if !given.has_any("blocks.") {
            return Ok(None);
        }
        let usual = Self::default();
        let readchunk = given.time("blocks.readchunk")?.unwrap_or(usual.readchunk);
        if readchunk < LEAST_READCHUNK {
            return Err(given.error("blocks.readchunk", "`readchunk` must be 1 ms or more"));
        }
        Ok(Some(Self {
            readchunk,
            after: given.time("blocks.after")?.unwrap_or(usual.after),
            are_written: given.word("blocks.files", &["yes", "no"])?.is_some_and(|it| it == "yes"),
        }))
    }
}

const LEAST_READCHUNK: Duration = Duration::from_millis(1);
