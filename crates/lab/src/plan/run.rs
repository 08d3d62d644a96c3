//! The settings for the runs of a plan: repeats, seed, backends, recordings.

use std::time::Duration;

use punctual_units::{parse_count, parse_duration_in};

use crate::plan::document::{DocumentEntry, DocumentTable};
use crate::plan::error::PlanError;

/// How a plan is run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RunOptions {
    /// Runs of each combination of values, with different seeds. Default 1.
    pub repeats: u32,
    /// Where all chance comes from. Default 1.
    pub seed: u64,
    /// The backends that run it unless the command names others. Default `sim`.
    pub backends: Vec<String>,
    /// Period of the time series that each run records; `None` (default) for none.
    pub series: Option<Duration>,
    /// Whether each run of `sim` records its packets (pcapng). Default not.
    pub captures: bool,
}

impl Default for RunOptions {
    fn default() -> Self {
        let backends = vec!["sim".to_owned()];
        Self { repeats: 1, seed: 1, backends, series: None, captures: false }
    }
}

impl RunOptions {
    /// Keys that say how something is run.
    pub(crate) const KEYS: [&str; 5] = ["repeats", "seed", "backends", "series", "captures"];

    pub(crate) fn read(table: Option<&DocumentTable>) -> Result<Self, PlanError> {
        let mut options = Self::default();
        if let Some(table) = table {
            table.only("[run]", &Self::KEYS)?;
            for entry in &table.entries {
                options.set(entry)?;
            }
        }
        Ok(options)
    }

    /// Changes one of them.
    pub(crate) fn set(&mut self, entry: &DocumentEntry) -> Result<(), PlanError> {
        match entry.key.as_str() {
            "repeats" => self.repeats = repeats(entry)?,
            "seed" => self.seed = whole(entry)?,
            "backends" => self.backends = entry.texts()?,
            "series" => {
                let period = parse_duration_in(entry.text()?, Duration::from_millis(1))
                    .map_err(|error| entry.error(format!("must be a period: {error}")))?;
                if !period.is_zero() && period < SHORTEST_PERIOD {
                    return Err(entry.error("must be at least 10ms, or 0 for none"));
                }
                self.series = (!period.is_zero()).then_some(period);
            }
            "captures" => {
                let holder =
                    DocumentTable { place: entry.place.clone(), entries: vec![entry.clone()] };
                self.captures = holder.switch("captures")?.unwrap_or(false);
            }
            _ => return Err(entry.unknown("[run]", &Self::KEYS)),
        }
        Ok(())
    }
}

fn whole(entry: &DocumentEntry) -> Result<u64, PlanError> {
    parse_count(entry.text()?).map_err(|error| entry.error(format!("must be a number: {error}")))
}

/// Reads how often each combination of values is run.
pub(crate) fn repeats(entry: &DocumentEntry) -> Result<u32, PlanError> {
    u32::try_from(whole(entry)?)
        .ok()
        .filter(|repeats| (1..=1_000_000).contains(repeats))
        .ok_or_else(|| entry.error("must be 1 to 1000000"))
}

/// Programs of others that run a plan: what to type at each end.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ExternalPrograms {
    /// A pair of programs that is built in: `srt-live-transmit`, `srt-xtransmit`, `ffmpeg`,
    /// `punctual`.
    pub preset: Option<String>,
    /// The sender's command line, with placeholders.
    pub sender: Option<String>,
    /// The receiver's command line, with placeholders.
    pub receiver: Option<String>,
}

impl ExternalPrograms {
    /// Keys that are not parameters.
    pub(crate) const KEYS: [&str; 3] = ["preset", "sender", "receiver"];

    pub(crate) fn read(table: &DocumentTable) -> Result<Self, PlanError> {
        Ok(Self {
            preset: table.text("preset")?,
            sender: table.text("sender")?,
            receiver: table.text("receiver")?,
        })
    }
}

/// The shortest period of a recording.
const SHORTEST_PERIOD: Duration = Duration::from_millis(10);
