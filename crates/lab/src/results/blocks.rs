//! The columns and records of the blocks of a stream.

use crate::backend::blocks::{BUFFERS, ModelFigures, Totals};
use crate::numbers::{NamedNumber, number};

/// A table of its own for each run, in a folder of this name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) name: &'static str,
    pub(crate) columns: &'static [&'static str],
}

/// Each block of which a retransmission arrived first, and of others the first of each whole
/// millisecond of lateness.
pub(crate) const BLOCKS: Record = Record {
    name: "blocks",
    columns: &[
        "block",
        "readchunk",
        "s_sent",
        "s_arrived",
        "ms_late",
        "is_retransmission",
        "requests",
        "request_datagrams",
    ],
};

/// Each readchunk: its lateness by equation 10 as printed, beside the ideal arrival of its last
/// block, and that of its latest block.
pub(crate) const READCHUNKS: Record = Record {
    name: "readchunks",
    columns: &["readchunk", "ms_late_as_printed", "ms_late", "ms_latest_block"],
};

pub(crate) const RECORDS: [Record; 2] = [BLOCKS, READCHUNKS];

/// The columns of a run; all unknown without totals.
pub(crate) fn blocks(found: Option<(&Totals, &ModelFigures)>) -> Vec<NamedNumber> {
    let total = |of: fn(&Totals) -> f64| found.map_or(f64::NAN, |(totals, _)| of(totals));
    let model = |of: fn(&ModelFigures) -> f64| found.map_or(f64::NAN, |(_, expected)| of(expected));
    let mut numbers = vec![
        ("count".to_owned(), total(|it| number(it.blocks))),
        ("retransmitted".to_owned(), total(|it| number(it.retransmitted))),
        ("missing".to_owned(), total(|it| number(it.missing))),
        ("violations".to_owned(), total(|it| number(it.violations))),
        ("violationsByDatagrams".to_owned(), total(|it| number(it.violations_by_datagrams))),
        ("msLateMax".to_owned(), total(|it| it.latest * 1e3)),
        ("msLateOriginalMax".to_owned(), total(|it| it.latest_original * 1e3)),
        ("readchunks".to_owned(), total(|it| number(it.readchunks))),
        ("msReadchunkLateMax".to_owned(), total(|it| it.latest_readchunk * 1e3)),
        ("glitches".to_owned(), total(|it| it.at_playout.map_or(f64::NAN, number))),
        ("modelGlitches".to_owned(), model(|it| it.at_playout)),
        ("modelCopies".to_owned(), model(|it| it.copies)),
    ];
    for (place, rounds) in (1..=crate::backend::blocks::ROUNDS).enumerate() {
        let later = found.map_or(f64::NAN, |(totals, _)| number(totals.later[place]));
        let expected = found.map_or(f64::NAN, |(_, expected)| expected.later[place]);
        numbers.push((format!("laterThan{rounds}"), later));
        numbers.push((format!("modelLaterThan{rounds}"), expected));
    }
    for (place, buffer) in BUFFERS.into_iter().enumerate() {
        let glitches = found.map_or(f64::NAN, |(totals, _)| number(totals.glitches[place]));
        let expected = found.map_or(f64::NAN, |(_, expected)| expected.glitches[place]);
        numbers.push((format!("glitches{buffer}ms"), glitches));
        numbers.push((format!("modelGlitches{buffer}ms"), expected));
    }
    numbers.into_iter().map(|(name, number)| (format!("blocks.{name}"), number)).collect()
}
