//! A setting, which the model and a stream in virtual time have in common.

use std::time::Duration;

use punctual_probe::model::PathFigures;
use punctual_probe::model::glitch::{
    Effort, Outcome, Playout, RecoveryEffort, RoundTiming, WantedTime,
};
use punctual_units::Bitrate;

use crate::recovered::{Found, recovered};

/// A stream of 1000 packets a second, in readchunks of a second, over a round trip of 50 ms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) loss: f64,
    pub(crate) return_loss: f64,
    /// The mean length of bursts, in both directions.
    pub(crate) burst: f64,
    pub(crate) buffer: Duration,
    pub(crate) usual: Effort,
    pub(crate) last: Effort,
    pub(crate) wanted: WantedTime,
    /// Readchunks that are streamed.
    pub(crate) chunks: u32,
}

pub(crate) const RTT: Duration = Duration::from_millis(50);
pub(crate) const PACKET: Duration = Duration::from_millis(1);
pub(crate) const PACKETS_IN_CHUNK: u64 = 1_000;

impl Setting {
    pub(crate) fn with_buffer(self, ms: u64) -> Self {
        Self { buffer: Duration::from_millis(ms), ..self }
    }

    pub(crate) fn with_loss(self, loss: f64, return_loss: f64) -> Self {
        Self { loss, return_loss, ..self }
    }

    pub(crate) fn timing(&self) -> RoundTiming {
        RoundTiming::timed(&self.path())
    }

    /// Asserts that a stream has as many glitches as the model says, within four standard
    /// deviations of their number, or down to this share of it; and that its overhead is as the
    /// model says.
    #[track_caller]
    pub(crate) fn agrees(&self, least: f64) {
        let told = self.told();
        let Found { glitches, overhead } = recovered(self, SEED);
        let expected = told.glitch_probability * f64::from(self.chunks);
        let deviation = (expected * (1.0 - told.glitch_probability)).sqrt();
        let says = format!(
            "{self:?}, seed {SEED}: {glitches} glitches, expected {expected:.1} ± \
             {deviation:.1}; overhead {overhead:.5}, expected {:.5}",
            told.overhead
        );
        println!("{:.3} {says}", f64::from(glitches) / expected);
        assert!(expected > 30.0, "too few glitches to compare: {says}");
        let range = expected * least - 4.0 * deviation..=expected + 4.0 * deviation;
        assert!(range.contains(&f64::from(glitches)), "{says}");
        // Packets of a run have their last rounds at different times, the model's at one.
        let tolerance = if self.burst > 1.0 { 0.06 } else { 0.03 };
        assert!((overhead / told.overhead - 1.0).abs() < tolerance, "{says}");
    }

    /// The model's outcome.
    fn told(&self) -> Outcome {
        let recovery = RecoveryEffort::once().with_usual(self.usual).with_last(self.last);
        let playout = Playout::new(self.path(), self.buffer, recovery).expect("a playout");
        let chunk = PACKET * u32::try_from(PACKETS_IN_CHUNK).expect("it fits");
        playout.with_readchunk(chunk, self.wanted).expect("a readchunk").outcome()
    }

    fn path(&self) -> PathFigures {
        let path =
            PathFigures::new(RTT, Duration::ZERO, Bitrate::from_mbps(8), 1_000).expect("a path");
        path.with_loss(self.loss, self.return_loss, self.burst).expect("a loss")
    }
}

const SEED: u64 = 20_150_401;
