//! A playout point, and the glitches that it has on a path.

use std::time::Duration;

use punctual_units::DisplayDuration;
use thiserror::Error;

use super::super::PathFigures;
use super::bursts::LossRuns;
use super::lateness::LossLateness;
use super::recovery::{RecoveryEffort, RoundTiming};
use super::rounds::{Before, FittingRounds, Schedule};

/// A stream that is played a fixed time after it should arrive, over a path that loses packets,
/// where every lost packet is asked for until it comes.
#[derive(Clone, Debug, PartialEq)]
pub struct Playout {
    path: PathFigures,
    buffer: Duration,
    recovery: RecoveryEffort,
    timing: RoundTiming,
    readchunk: Duration,
    wanted: WantedTime,
}

/// The time at which the player wants a packet.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum WantedTime {
    /// The buffer after the packet itself should have come: the player reads as it plays. This is
    /// the paper's assumption, and that of a byte stream with a playout point.
    #[default]
    ByPacket,
    /// The buffer after the last packet of its readchunk should have come: the player gets
    /// readchunks as a whole, so that earlier packets have more time.
    ByChunk,
}

/// A figure of a playout that is out of its range.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum PlayoutError {
    /// The buffer is so short that it must be meant otherwise.
    #[error(
        "the buffer of {} is shorter than a one-way delay of {}; it counts from the time when a \
         packet should arrive, and a retransmission takes a round trip and some milliseconds after \
         that: {} or more would be right",
        DisplayDuration(*buffer), DisplayDuration(*rtt / 2), DisplayDuration(*needed)
    )]
    ShortBuffer {
        /// The buffer.
        buffer: Duration,
        /// The round trip.
        rtt: Duration,
        /// The least buffer with time for one round.
        needed: Duration,
    },
    /// The buffer is longer than the model reckons with.
    #[error("the buffer is {:#}; it must be 1 h at most", DisplayDuration(*.0))]
    LongBuffer(Duration),
    /// The readchunk is out of its range.
    #[error(
        "the readchunk is {}; it must be 1 h at most, and at least {}, the time between two \
         packets",
        DisplayDuration(*readchunk), DisplayDuration(*packet)
    )]
    Readchunk {
        /// The readchunk.
        readchunk: Duration,
        /// The time between two packets.
        packet: Duration,
    },
}

/// The glitches that a playout is expected to have, and its cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// Rounds of NAK and retransmission that can be in time.
    pub rounds: u32,
    /// The share of packets that come too late.
    pub late: f64,
    /// The probability that a readchunk has a packet that comes too late.
    pub glitch_probability: f64,
    /// The mean time to a glitch, in seconds; infinite if there are none.
    pub mean_time: f64,
    /// Retransmissions for each original, copies included.
    pub overhead: f64,
    /// The copies among them.
    pub copies: f64,
    /// Datagrams of NAKs for each original.
    pub naks: f64,
    readchunk: f64,
}

/// The cost of a lost packet.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    retransmissions: f64,
    copies: f64,
    naks: f64,
}

impl Playout {
    /// Plays a stream over this path `buffer` after it should arrive: at least half of the path's
    /// round trip, at most an hour. Rounds are [timed](RoundTiming::timed), readchunks have a
    /// second, and each packet is wanted for itself.
    pub fn new(
        path: PathFigures,
        buffer: Duration,
        recovery: RecoveryEffort,
    ) -> Result<Self, PlayoutError> {
        let timing = RoundTiming::timed(&path);
        let (readchunk, wanted) = (Duration::from_secs(1), WantedTime::default());
        let playout = Self { path, buffer, recovery, timing, readchunk, wanted };
        if buffer < path.rtt / 2 {
            let needed = playout.needed(1);
            return Err(PlayoutError::ShortBuffer { buffer, rtt: path.rtt, needed });
        }
        if buffer > LONGEST {
            return Err(PlayoutError::LongBuffer(buffer));
        }
        playout.with_readchunk(readchunk, wanted)
    }

    /// The same with rounds that take other times.
    #[must_use]
    pub fn with_timing(self, timing: RoundTiming) -> Self {
        Self { timing, ..self }
    }

    /// The same with another readchunk, in which glitches are counted: one packet to an hour.
    pub fn with_readchunk(
        self,
        readchunk: Duration,
        wanted: WantedTime,
    ) -> Result<Self, PlayoutError> {
        let packet = self.path.packet;
        if readchunk < packet || readchunk > LONGEST {
            return Err(PlayoutError::Readchunk { readchunk, packet });
        }
        Ok(Self { readchunk, wanted, ..self })
    }

    /// The buffer with just enough time for this number of rounds, if one packet is lost.
    pub fn needed(&self, rounds: u32) -> Duration {
        self.schedule().time_for(rounds, 1.0)
    }

    /// The share of packets that are expected to come later than this number of rounds, without any
    /// copies: those between two such numbers make a band of lateness.
    pub fn later_than(&self, rounds: u32) -> f64 {
        let usual = self.schedule().late_round();
        let lone = vec![usual.without_copies(); rounds as usize];
        let missing = if rounds == 0 { 1.0 } else { self.runs().missing_after(&lone)[0] };
        self.path.loss * missing
    }

    /// The glitches that are expected, and the cost.
    pub fn outcome(&self) -> Outcome {
        let runs = self.runs();
        let late = LossLateness {
            schedule: self.schedule(),
            runs: &runs,
            buffer: self.buffer,
            readchunk: self.readchunk,
            wanted: self.wanted,
        };
        let (late_run, late_packet) = late.probabilities();
        let packets = self.readchunk.as_secs_f64() / self.path.packet.as_secs_f64();
        let glitch_probability = -libm::expm1(packets * libm::log1p(-runs.begins * late_run));
        let fit = self.schedule().fit(self.buffer, 1.0);
        let cost = self.cost(fit);
        let readchunk = self.readchunk.as_secs_f64();
        Outcome {
            rounds: fit.rounds,
            late: self.path.loss * late_packet,
            glitch_probability,
            mean_time: readchunk / glitch_probability,
            overhead: self.path.loss * cost.retransmissions,
            copies: self.path.loss * cost.copies,
            naks: self.path.loss * cost.naks,
            readchunk,
        }
    }

    /// The cost of a lost packet, from round to round until it comes.
    fn cost(&self, fit: FittingRounds) -> Cost {
        let mut cost = Cost::default();
        // The probabilities that it is missing, by the fate of the round before.
        let mut missing = [(Before::Nothing, 1.0), (Before::NakLost, 0.0), (LOST, 0.0)];
        let mut rounds = self.schedule().rounds(fit).into_iter();
        let late = self.schedule().late_round();
        for _ in 0..MOST_ROUNDS {
            let round = rounds.next().unwrap_or(late);
            let (mut nak_lost, mut lost) = (0.0, 0.0);
            for (before, probability) in missing {
                let heard = probability * (1.0 - round.nak_lost(before));
                cost.naks += probability * f64::from(round.datagrams);
                cost.retransmissions += heard * f64::from(1 + round.copies);
                cost.copies += heard * f64::from(round.copies);
                nak_lost += probability - heard;
                lost += heard * round.all_lost(before);
            }
            if nak_lost + lost < NEVER {
                break;
            }
            missing = [(Before::Nothing, 0.0), (Before::NakLost, nak_lost), (LOST, lost)];
        }
        cost
    }

    fn runs(&self) -> LossRuns {
        LossRuns::new(self.path.loss, self.path.burst)
    }

    fn schedule(&self) -> Schedule<'_> {
        Schedule { path: &self.path, timing: self.timing, recovery: &self.recovery }
    }
}

impl Outcome {
    /// The probability of no glitch within this time.
    pub fn glitch_free(&self, time: Duration) -> f64 {
        let chunks = time.as_secs_f64() / self.readchunk;
        libm::exp(chunks * libm::log1p(-self.glitch_probability))
    }

    /// The number of readchunks with a glitch that are expected within this time.
    pub fn expected(&self, time: Duration) -> f64 {
        time.as_secs_f64() / self.readchunk * self.glitch_probability
    }
}

const LOST: Before = Before::RetransmissionLost;
/// The longest buffer and readchunk.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Rounds after which a packet has come, and a probability that is as good as zero.
const MOST_ROUNDS: u32 = 100_000;
const NEVER: f64 = 1e-15;

#[cfg(test)]
#[path = "playout_tests.rs"]
mod tests;
