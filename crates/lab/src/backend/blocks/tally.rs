//! Totals of the blocks and readchunks of a stream.

use std::collections::BTreeSet;
use std::time::Duration;

use punctual_probe::model::glitch::paper;
use punctual_units::Instant;

use super::ledger::Block;
use super::readchunks::{Readchunk, Readchunks};
use crate::numbers::number;
use crate::outcome::RunSeries;
use crate::results::blocks::{BLOCKS, READCHUNKS, Record};
use crate::run::{BlockOptions, Setup};

/// Rounds of request and retransmission that are told apart.
pub(crate) const ROUNDS: usize = 4;
/// Buffers for which glitches are counted, in milliseconds.
pub(crate) const BUFFERS: [u64; 5] = [300, 500, 600, 800, 1_000];

/// A stream and its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct WatchedStream {
    /// The propagation delay towards the receiver.
    one_way: Duration,
    /// The round trip without any queue.
    rtt: Duration,
    /// The time from one block to the next.
    block: Duration,
    readchunk: Duration,
    /// The playout point, if the stream has one.
    playout: Option<Duration>,
}

impl WatchedStream {
    pub(super) fn new(setup: &Setup, options: BlockOptions) -> Self {
        let one_way = setup.path.up.config.delay;
        let playout = setup.sender.playout().max(setup.receiver.playout());
        Self {
            one_way,
            rtt: one_way + setup.path.down.config.delay,
            block: setup.bitrate.time_for(setup.payload as u64),
            readchunk: options.readchunk,
            playout: (!playout.is_zero()).then_some(playout),
        }
    }

    /// The time at which a block should arrive, by the begin of the stream.
    fn due(&self, begun: Instant, index: u64) -> Instant {
        let nanos = u128::from(index) * self.block.as_nanos();
        begun + self.one_way + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// The totals of a stream.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Totals {
    /// Blocks that arrived.
    pub(crate) blocks: u64,
    /// Blocks of which a retransmission arrived first.
    pub(crate) retransmitted: u64,
    /// Blocks that did not arrive before the end of the run.
    pub(crate) missing: u64,
    /// Blocks that needed more than 1, 2, 3 and 4 rounds: their lateness is more than half a round
    /// trip above that number of round trips, which is between two bands.
    pub(crate) later: [u64; ROUNDS],
    /// Blocks against equation 9: requests before the arrival × round trip > lateness.
    pub(crate) violations: u64,
    /// The same if each datagram of a request counts as one.
    pub(crate) violations_by_datagrams: u64,
    /// The greatest lateness of a block by the paper's formula, in seconds, and of one whose
    /// original arrived.
    pub(crate) latest: f64,
    pub(crate) latest_original: f64,
    /// Readchunks that count, and those with a block that was later than each buffer.
    pub(crate) readchunks: u64,
    pub(crate) glitches: [u64; BUFFERS.len()],
    /// Readchunks with a block that was later than the playout point.
    pub(crate) at_playout: Option<u64>,
    /// The greatest lateness of a readchunk beside the ideal arrival of its last block, in seconds.
    pub(crate) latest_readchunk: f64,
    /// The time from the first byte of the source until all blocks of the first readchunk were
    /// there, in seconds.
    pub(crate) start_up: Option<f64>,
}

/// Counts blocks as they arrive.
#[derive(Debug)]
pub(super) struct BlockTally {
    stream: WatchedStream,
    options: BlockOptions,
    begun: Option<Instant>,
    first_arrival: Option<Instant>,
    seen: u64,
    readchunks: Readchunks,
    totals: Totals,
    /// Whole milliseconds of lateness that an original had.
    originals: BTreeSet<i64>,
    written: WrittenRows,
}

/// The rows of both records.
#[derive(Debug, Default)]
struct WrittenRows {
    blocks: Vec<Vec<f64>>,
    readchunks: Vec<Readchunk>,
}

impl BlockTally {
    pub(super) fn new(stream: WatchedStream, options: BlockOptions) -> Self {
        Self {
            stream,
            options,
            begun: None,
            first_arrival: None,
            seen: 0,
            readchunks: Readchunks::new(stream.readchunk, stream.block),
            totals: Totals::default(),
            originals: BTreeSet::new(),
            written: WrittenRows::default(),
        }
    }

    /// Counts the next block of the stream.
    pub(super) fn add(&mut self, block: &Block) {
        let begun = *self.begun.get_or_insert(block.sent);
        self.first_arrival =
            Some(self.first_arrival.map_or(block.arrived, |first| first.min(block.arrived)));
        self.seen = block.index + 1;
        let due = self.stream.due(begun, block.index);
        let late = block.arrived.saturating_since(due).as_secs_f64();
        let complete = self.readchunks.add(block.index, block.arrived, late);
        if let Some(chunk) = complete {
            self.add_readchunk(chunk, begun);
        }
        if due >= begun + self.stream.one_way + self.options.after {
            self.count(block, begun);
        }
    }

    fn count(&mut self, block: &Block, begun: Instant) {
        let WatchedStream { one_way, rtt, .. } = self.stream;
        let late = paper::lateness(block.arrived, block.sent, one_way);
        let totals = &mut self.totals;
        totals.blocks += 1;
        totals.retransmitted += u64::from(block.is_retransmission);
        totals.latest = totals.latest.max(late);
        if !block.is_retransmission {
            totals.latest_original = totals.latest_original.max(late);
        }
        for (later, rounds) in totals.later.iter_mut().zip(1_u32..) {
            *later += u64::from(late > (f64::from(rounds) + 0.5) * rtt.as_secs_f64());
        }
        let against = |requests| u64::from(!paper::requests_fit(requests, rtt, late));
        // Without any request it would say that nothing is early, which the clock of one world
        // makes true.
        totals.violations += against(block.requests);
        totals.violations_by_datagrams += against(block.datagrams);
        if self.options.are_written {
            self.write(block, late, begun);
        }
    }

    /// Writes a block down: each that came as a retransmission, and of originals the first of each
    /// whole millisecond of lateness.
    fn write(&mut self, block: &Block, late: f64, begun: Instant) {
        #[expect(clippy::cast_possible_truncation, reason = "milliseconds of a run")]
        let whole = (late * 1e3).floor() as i64;
        if block.is_retransmission || self.originals.insert(whole) {
            self.written.blocks.push(vec![
                number(block.index),
                f64::from(self.readchunks.index_of(block.index)),
                micros(block.sent.saturating_since(begun)) / 1e6,
                micros(block.arrived.saturating_since(begun)) / 1e6,
                (late * 1e6).round() / 1e3,
                f64::from(u8::from(block.is_retransmission)),
                f64::from(block.requests),
                f64::from(block.datagrams),
            ]);
        }
    }

    fn add_readchunk(&mut self, chunk: Readchunk, begun: Instant) {
        if chunk.index == 0 {
            let block = self.stream.block.as_secs_f64();
            let there = chunk.last.saturating_since(begun).as_secs_f64();
            // The source had to make the first block before it was sent.
            self.totals.start_up = Some(there + block);
        }
        if self.stream.readchunk.saturating_mul(chunk.index) < self.options.after {
            return;
        }
        let totals = &mut self.totals;
        totals.readchunks += 1;
        for (glitches, buffer) in totals.glitches.iter_mut().zip(BUFFERS) {
            *glitches += u64::from(chunk.latest > Duration::from_millis(buffer).as_secs_f64());
        }
        if let Some(playout) = self.stream.playout {
            let is_late = chunk.latest > playout.as_secs_f64();
            *totals.at_playout.get_or_insert(0) += u64::from(is_late);
        }
        let late = self.readchunks.beside_ideal(&chunk, begun + self.stream.one_way);
        totals.latest_readchunk = totals.latest_readchunk.max(late);
        if self.options.are_written {
            self.written.readchunks.push(chunk);
        }
    }

    /// The totals; `missing` blocks were sent and have not arrived.
    pub(super) fn totals(&mut self, missing: usize) -> Totals {
        if let (Some(begun), Some(last)) = (self.begun, self.readchunks.last(self.seen)) {
            self.add_readchunk(last, begun);
        }
        Totals { missing: missing as u64, ..self.totals.clone() }
    }

    /// The records of blocks and of readchunks.
    pub(super) fn records(&self) -> Vec<(&'static str, RunSeries)> {
        let ideal = self.begun.map(|begun| begun + self.stream.one_way);
        let (Some(ideal), Some(first)) = (ideal, self.first_arrival) else { return Vec::new() };
        let row = |chunk: &Readchunk| {
            let printed = self.readchunks.as_printed(chunk, first);
            let late = self.readchunks.beside_ideal(chunk, ideal);
            vec![
                f64::from(chunk.index),
                (printed * 1e6).round() / 1e3,
                (late * 1e6).round() / 1e3,
                (chunk.latest * 1e6).round() / 1e3,
            ]
        };
        let readchunks = self.written.readchunks.iter().map(row).collect();
        let record = |record: &Record, rows| {
            let columns = record.columns.iter().map(|name| (*name).to_owned()).collect();
            (record.name, RunSeries { columns, rows })
        };
        vec![record(&BLOCKS, self.written.blocks.clone()), record(&READCHUNKS, readchunks)]
    }
}

/// Microseconds.
fn micros(time: Duration) -> f64 {
    number(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// A stream of a block each 10 ms in readchunks of 100 ms, over 200 ms and back.
    fn tally(after: Duration, playout: Option<Duration>) -> BlockTally {
        let options = BlockOptions { readchunk: MS(100), after, are_written: true };
        let (one_way, rtt) = (MS(100), MS(200));
        let stream =
            WatchedStream { one_way, rtt, block: MS(10), readchunk: options.readchunk, playout };
        BlockTally::new(stream, options)
    }

    fn block(index: u64, late: u64, requests: u32) -> Block {
        let sent = Instant::from_millis(1_000 + 10 * index);
        let arrived = sent + MS(100 + late);
        let (is_retransmission, datagrams) = (requests > 0, 2 * requests);
        Block { index, sent, arrived, is_retransmission, requests, datagrams }
    }

    #[test]
    fn blocks_are_counted_by_rounds_and_readchunks_by_their_latest_block() {
        let mut tally = tally(Duration::ZERO, Some(MS(400)));
        for index in 0..40 {
            tally.add(&match index {
                3 => block(index, 202, 1),
                17 => block(index, 412, 2),
                18 => block(index, 202, 1),
                25 => block(index, 622, 3),
                _ => block(index, 1, 0),
            });
        }
        let totals = tally.totals(2);
        assert_eq!((totals.blocks, totals.retransmitted, totals.missing), (40, 4, 2));
        assert_eq!((totals.later, totals.violations), ([2, 1, 0, 0], 0));
        assert_eq!(totals.violations_by_datagrams, 4, "two datagrams in each round");
        assert_eq!((totals.readchunks, totals.glitches), (4, [2, 1, 1, 0, 0]));
        assert_eq!(totals.at_playout, Some(2));
        let close = |one: f64, other: f64| (one - other).abs() < 1e-9;
        assert!(close(totals.latest, 0.622) && close(totals.latest_original, 0.001));
        // The third block should have come 60 ms before the last of its readchunk.
        let start_up = totals.start_up.unwrap();
        assert!((start_up - (0.030 + 0.1 + 0.202 + 0.01)).abs() < 1e-9, "{start_up}");
    }

    #[test]
    fn a_request_that_is_too_early_is_against_equation_9() {
        let mut tally = tally(Duration::ZERO, None);
        tally.add(&block(0, 399, 2));
        let totals = tally.totals(0);
        assert_eq!((totals.violations, totals.violations_by_datagrams), (1, 1));
        assert_eq!((totals.at_playout, totals.start_up), (None, None));
    }

    #[test]
    fn packets_due_before_the_count_begins_are_left_out() {
        let mut tally = tally(MS(200), None);
        (0..40).for_each(|index| tally.add(&block(index, if index < 20 { 900 } else { 0 }, 0)));
        let totals = tally.totals(0);
        assert_eq!((totals.blocks, totals.readchunks, totals.latest), (20, 2, 0.0));
        assert_eq!(totals.glitches, [0; BUFFERS.len()]);
        assert!(totals.start_up.is_some_and(|time| time > 1.0), "the start-up always counts");
    }

    #[test]
    fn records_hold_each_retransmission_and_each_readchunk() {
        let mut tally = tally(Duration::ZERO, None);
        (0..20).for_each(|index| {
            tally.add(&if index == 5 { block(index, 203, 1) } else { block(index, 1, 0) });
        });
        tally.totals(0);
        let records = tally.records();
        assert_eq!((records[0].0, records[1].0), ("blocks", "readchunks"));
        let (blocks, readchunks) = (&records[0].1, &records[1].1);
        assert_eq!(blocks.rows[0], [0.0, 0.0, 0.0, 0.101, 1.0, 0.0, 0.0, 0.0]);
        assert_eq!(blocks.rows[1], [5.0, 0.0, 0.05, 0.353, 203.0, 1.0, 1.0, 2.0]);
        assert_eq!((blocks.rows.len(), blocks.columns.len()), (2, 8), "one original is enough");
        // Printed: 90 ms to the begin of the last block. Ideal: 163 ms after it should have come.
        assert_eq!(readchunks.rows[0], [0.0, 252.0, 163.0, 203.0]);
        assert_eq!(readchunks.rows[1], [1.0, 90.0, 1.0, 1.0]);
    }
}
