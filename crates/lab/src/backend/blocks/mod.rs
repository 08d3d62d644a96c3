//! The blocks of a stream: when each was sent and arrived, and how often it was requested.
//!
//! A *block* is a data packet, a *request* a NAK, and a *readchunk* the video that a player gets at
//! once, as in "Aspera FASPstream for near-live and live video streaming" (white paper, 2015).

mod ledger;
mod model;
mod readchunks;
mod tally;

use std::time::Duration;

use punctual_sim::{LinkId, World};

use self::ledger::Ledger;
pub(super) use self::ledger::SeenDatagram;
pub(crate) use self::model::ModelFigures;
use self::model::expected;
pub(crate) use self::tally::{BUFFERS, ROUNDS, Totals};
use self::tally::{BlockTally, WatchedStream};
use crate::outcome::Outcome;
use crate::results::blocks::blocks as columns;
use crate::run::Setup;

/// Why a run cannot have a record of its blocks.
pub(super) const ONE_STREAM: &str = "[blocks] is for one stream over SRT";

/// The record of the blocks of one stream.
#[derive(Debug)]
pub(super) struct Record {
    ledger: Ledger,
    tally: BlockTally,
}

impl Record {
    /// A record, if the run wants one.
    pub(super) fn new(setup: &Setup) -> Option<Self> {
        let options = setup.blocks?;
        let tally = BlockTally::new(WatchedStream::new(setup, options), options);
        Some(Self { ledger: Ledger::default(), tally })
    }

    /// Notes a datagram; they come in order of time.
    pub(super) fn note(&mut self, seen: &SeenDatagram<'_>) {
        self.ledger.note(seen);
        while let Some(block) = self.ledger.next_arrived() {
            self.tally.add(&block);
        }
    }

    /// Writes the totals into an outcome.
    pub(super) fn tell(mut self, setup: &Setup, outcome: &mut Outcome) {
        let totals = self.tally.totals(self.ledger.missing());
        outcome.set("sStartUp", totals.start_up.unwrap_or(f64::NAN));
        outcome.extend(columns(Some((&totals, &expected(setup, &totals)))));
        if setup.blocks.is_some_and(|options| options.are_written) {
            outcome.records.extend(self.tally.records());
        }
    }
}

/// Follows the blocks of the stream of a world.
#[derive(Debug)]
pub(super) struct BlockWatch {
    up: LinkId,
    record: Record,
}

impl BlockWatch {
    /// Watches the stream over these links, if the run wants a record of its blocks.
    pub(super) fn new(setup: &Setup, world: &mut World, up: LinkId, down: LinkId) -> Option<Self> {
        let record = Record::new(setup)?;
        world.watch(up);
        world.watch(down);
        Some(Self { up, record })
    }

    /// Lets `time` pass. Datagrams are noted in short parts of it, so that few are in memory.
    pub(super) fn run_for(&mut self, world: &mut World, time: Duration) {
        let mut rest = time;
        while !rest.is_zero() {
            let part = rest.min(PART);
            world.run_for(part);
            rest -= part;
            for passage in world.take_passages() {
                let (at, gate, content) = (passage.at, passage.gate, &passage.content[..]);
                self.record.note(&SeenDatagram {
                    at,
                    is_up: passage.link == self.up,
                    gate,
                    content,
                });
            }
        }
    }

    /// Writes the totals into an outcome.
    pub(super) fn tell(self, setup: &Setup, outcome: &mut Outcome) {
        self.record.tell(setup, outcome);
    }
}

const PART: Duration = Duration::from_millis(200);
