//! The last rows of connections in files of statistics and metrics, at a limited rate.

use punctual::Gathered;
use punctual_units::grouped;

/// Limits the rows of connections that have none before their end. Strangers may make and end
/// thousands of connections a second, and would fill the disk.
#[derive(Debug)]
pub(crate) struct LastRows {
    /// Rows of connections that carried nothing.
    empty: Gathered,
    /// Rows of connections that ended within their first period.
    short: Gathered,
}

impl LastRows {
    /// The limits for a file of `what`.
    pub(crate) fn new(what: &'static str) -> Self {
        let gathered = |burst, which: &'static str| {
            Gathered::new(burst, move |more| {
                let more = grouped(more);
                tracing::warn!(
                    "{what}: {more} rows of the last second were left out, of connections that \
                     {which}"
                );
            })
        };
        Self { empty: gathered(EMPTY, "carried nothing"), short: gathered(SHORT, "ended at once") }
    }

    /// Writes the last row by `write`, unless there were too many.
    pub(crate) fn write(&self, had_rows: bool, carried_something: bool, write: impl FnOnce()) {
        match (had_rows, carried_something) {
            (true, true) => write(),
            (false, true) => self.short.say(write),
            (_, false) => self.empty.say(write),
        }
    }
}

/// The number of last rows that may follow each other at once; a tenth of it a second in the long
/// run.
const EMPTY: u32 = 100;
const SHORT: u32 = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn written(had_rows: bool, carried_something: bool) -> u32 {
        let rows = LastRows::new("statistics");
        let mut written = 0;
        (0..20_000).for_each(|_| rows.write(had_rows, carried_something, || written += 1));
        written
    }

    #[test]
    fn a_flood_of_connections_leaves_few_rows() {
        // Time passes meanwhile, but far less than ten seconds.
        assert!((100..200).contains(&written(false, false)));
        assert!((100..200).contains(&written(true, false)));
        assert!((1_000..2_000).contains(&written(false, true)));
    }

    #[test]
    fn a_connection_that_lasted_and_carried_something_gets_its_last_row() {
        assert_eq!(written(true, true), 20_000);
    }
}
