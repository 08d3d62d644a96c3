//! The numbers of late blocks and glitches that the model expects of a stream.

use std::time::Duration;

use punctual_netem::{LinkProfile, Loss};
use punctual_probe::model::PathFigures;
use punctual_probe::model::glitch::{Effort, Playout, RecoveryEffort, WantedTime};

use super::tally::{BUFFERS, ROUNDS, Totals};
use crate::numbers::number;
use crate::run::Setup;

/// The numbers that the model expects; NaN where it has none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ModelFigures {
    /// Blocks that need more than 1, 2, 3 and 4 rounds.
    pub(crate) later: [f64; ROUNDS],
    /// Readchunks with a block later than each buffer, if nothing is sent more than once for it.
    pub(crate) glitches: [f64; BUFFERS.len()],
    /// Readchunks with a block later than the playout point, with the copies that the mean time
    /// between glitches needs.
    pub(crate) at_playout: f64,
    /// Those copies.
    pub(crate) copies: f64,
}

/// The numbers that the model expects for as many blocks and readchunks as were counted. It has
/// none for links that lose packets in bursts or differently over time.
pub(super) fn expected(setup: &Setup, totals: &Totals) -> ModelFigures {
    let unknown = ModelFigures {
        later: [f64::NAN; ROUNDS],
        glitches: [f64::NAN; BUFFERS.len()],
        at_playout: f64::NAN,
        copies: f64::NAN,
    };
    let Some(path) = path(setup) else { return unknown };
    let readchunk = setup.blocks.unwrap_or_default().readchunk;
    let counted = readchunk.saturating_mul(u32::try_from(totals.readchunks).unwrap_or(u32::MAX));
    let playout = |buffer, recovery| {
        let playout = Playout::new(path, buffer, recovery).ok()?;
        playout.with_readchunk(readchunk, WantedTime::ByPacket).ok()
    };
    let glitches = BUFFERS.map(|buffer| {
        let playout = playout(Duration::from_millis(buffer), without_copies());
        playout.map_or(f64::NAN, |it| it.outcome().expected(counted))
    });
    let rounds = playout(Duration::from_secs(1), without_copies());
    let later = [1, 2, 3, 4].map(|number_of_rounds| {
        let share = rounds.as_ref().map(|it| it.later_than(number_of_rounds));
        share.map_or(f64::NAN, |share| share * number(totals.blocks))
    });
    let point = setup.sender.playout().max(setup.receiver.playout());
    let target = punctual::GLITCH_TARGET.as_secs_f64();
    let with = |copies| Some((copies, playout(point, RecoveryEffort::deadline(copies))?.outcome()));
    let enough = (0..=MOST_COPIES)
        .filter_map(with)
        .find(|(copies, outcome)| outcome.mean_time >= target || *copies == MOST_COPIES);
    let of_playout = enough.filter(|_| !point.is_zero());
    ModelFigures {
        later,
        glitches,
        at_playout: of_playout.map_or(f64::NAN, |(_, it)| it.expected(counted)),
        copies: of_playout.map_or(f64::NAN, |(copies, _)| f64::from(copies)),
    }
}

/// The path of a stream whose links lose single packets.
fn path(setup: &Setup) -> Option<PathFigures> {
    let loss = |link: &LinkProfile| match link.config.loss {
        Loss::None => Some(0.0),
        Loss::Random(share) => Some(share),
        _ => None,
    };
    let (up, down) = (&setup.path.up, &setup.path.down);
    let (there, back) = (loss(up)?, loss(down)?);
    let rtt = up.config.delay + down.config.delay;
    let path = PathFigures::new(rtt, Duration::ZERO, setup.bitrate, setup.payload).ok()?;
    path.with_loss(there, back, 1.0).ok()
}

/// NAKs in two datagrams, and each retransmission once.
fn without_copies() -> RecoveryEffort {
    RecoveryEffort::deadline(0).with_last(Effort { datagrams: 2, copies: 0 })
}

/// The most copies of a last retransmission (`docs/retransmission.md`).
const MOST_COPIES: u32 = 7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::run::{Selection, runs};

    fn setup(more: &str) -> Setup {
        let text = format!(
            "name = 'n'\n[stream]\nbitrate = '40Mbps'\npayload = 1373\nduration = '1s'\n\
             [blocks]\nreadchunk = '1s'\n[link]\nrtt = '200ms'\nloss = '2%'\n{more}"
        );
        let plan = Plan::parse("n.toml", &text).unwrap();
        runs(&plan, &Selection::default()).unwrap().remove(0).setup
    }

    fn of_3000_readchunks(setup: &Setup) -> ModelFigures {
        let totals = Totals { blocks: 3_641 * 3_000, readchunks: 3_000, ..Totals::default() };
        expected(setup, &totals)
    }

    #[test]
    fn requests_in_two_datagrams_halve_the_rounds_that_fail() {
        let found = of_3000_readchunks(&setup(""));
        // 2 % × 0.020392, and so on, of 10,923,000 blocks.
        assert!((found.later[0] - 4_454.8).abs() < 0.1, "{found:?}");
        assert!((found.later[1] / found.later[0] - 0.020_392).abs() < 1e-9, "{found:?}");
        // docs/model.md: a glitch each 33.5 s with half a second, each 27 minutes with 0.8 s.
        assert!((found.glitches[1] - 3_000.0 / 33.5).abs() < 1.0, "{found:?}");
        assert!((found.glitches[3] - 3_000.0 / (27.0 * 60.0)).abs() < 0.1, "{found:?}");
        assert!(found.at_playout.is_nan() && found.copies.is_nan());
    }

    #[test]
    fn a_playout_point_gets_the_copies_that_it_needs() {
        let point = "[options]\ntranstype = 'stream'\nplayout = '500ms'\n";
        let found = of_3000_readchunks(&setup(point));
        assert_eq!(found.copies, 3.0, "{found:?}");
        assert!(found.at_playout < 3_000.0 / 86_400.0, "{found:?}");
    }

    #[test]
    fn there_is_no_model_of_bursts() {
        let mut setup = setup("");
        setup.path.up.config.loss = Loss::All;
        assert!(of_3000_readchunks(&setup).later[0].is_nan());
    }
}
