//! How likely a run of lost packets, and any lost packet, is late.

use std::collections::BTreeMap;
use std::time::Duration;

use super::bursts::LossRuns;
use super::playout::WantedTime;
use super::rounds::{FittingRounds, Schedule};

/// Runs of lost packets, and the times at which they are wanted.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossLateness<'a> {
    pub(super) schedule: Schedule<'a>,
    pub(super) runs: &'a LossRuns,
    pub(super) buffer: Duration,
    pub(super) readchunk: Duration,
    pub(super) wanted: WantedTime,
}

/// Where a run of lost packets lies in its readchunk.
#[derive(Clone, Debug)]
struct RunPlace {
    /// The share of places that are like this one.
    share: f64,
    /// Its packets, by the rounds that they have.
    parts: Vec<Part>,
}

/// Packets of a run, as a number of slots, for which the same rounds are in time.
#[derive(Clone, Copy, Debug)]
struct Part {
    fit: FittingRounds,
    slots: usize,
}

impl LossLateness<'_> {
    /// The probability that any packet of a run is late, and that a lost packet is.
    pub(super) fn probabilities(&self) -> (f64, f64) {
        let found: Vec<(f64, Vec<RunPlace>)> =
            self.runs.lengths().map(|(length, p)| (p, self.places(length))).collect();
        let missing = self.missing(&found);
        let (mut late_run, mut late, mut packets) = (0.0, 0.0, 0.0);
        for (probability, places) in &found {
            for place in places {
                let weight = probability * place.share;
                let mut all_in_time = 1.0;
                for part in &place.parts {
                    let missing = &missing[&part.fit.rounds];
                    all_in_time *= 1.0 - missing[part.slots - 1];
                    late += weight * as_f64(part.slots) * missing[0];
                    packets += weight * as_f64(part.slots);
                }
                // No more than if all packets had the rounds of the first ones; and exact for small
                // probabilities, too.
                let slots: usize = place.parts.iter().map(|part| part.slots).sum();
                let fewest = missing[&place.parts[0].fit.rounds][slots - 1];
                let late_part = if place.parts.len() == 1 { fewest } else { 1.0 - all_in_time };
                late_run += weight * late_part.min(fewest);
            }
        }
        (late_run, late / packets)
    }

    /// For each number of rounds that occurs: the probabilities that a run of one slot, of two, and
    /// so on has a packet missing after it.
    fn missing(&self, found: &[(f64, Vec<RunPlace>)]) -> BTreeMap<u32, Vec<f64>> {
        let mut slacks: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
        for (probability, places) in found {
            for place in places {
                for Part { fit, slots } in &place.parts {
                    let weight = probability * place.share * as_f64(*slots);
                    let (sum, weights) = slacks.entry(fit.rounds).or_default();
                    *sum += weight * fit.slack.as_secs_f64();
                    *weights += weight;
                }
            }
        }
        let missing = |(rounds, (sum, weights)): (u32, (f64, f64))| {
            let slack = Duration::from_secs_f64(sum / weights.max(f64::MIN_POSITIVE));
            (
                rounds,
                self.runs.missing_after(&self.schedule.rounds(FittingRounds { rounds, slack })),
            )
        };
        slacks.into_iter().map(missing).collect()
    }

    /// The places of a run of `length` packets in its readchunk, with the rounds that its packets
    /// have there.
    fn places(&self, length: f64) -> Vec<RunPlace> {
        match self.wanted {
            WantedTime::ByPacket => vec![RunPlace { share: 1.0, parts: self.parts(length) }],
            WantedTime::ByChunk => self.places_in_chunk(length),
        }
    }

    /// The parts of a run whose packets have the same number of rounds: later packets of it are
    /// wanted later, and noticed at the same time.
    fn parts(&self, length: f64) -> Vec<Part> {
        let (schedule, slots) = (&self.schedule, self.runs.slots(length));
        let first = schedule.fit(self.buffer, length);
        let mut parts = vec![Part { fit: first, slots: 1 }];
        for slot in 1..slots {
            let later = schedule.path.packet.mul_f64(as_f64(slot) * self.runs.slot);
            let later = if schedule.timing.is_noticed_late { later } else { Duration::ZERO };
            let fit = Self::bounded(schedule.fit(self.buffer + later, length), first);
            match parts.last_mut() {
                Some(part) if part.fit.rounds == fit.rounds => {
                    // The slack of its packets on the mean.
                    part.slots += 1;
                    let more = fit.slack.saturating_sub(part.fit.slack);
                    part.fit.slack += more.div_f64(as_f64(part.slots));
                }
                _ => parts.push(Part { fit, slots: 1 }),
            }
        }
        parts
    }

    /// The places of a run in a readchunk that is wanted as a whole. Only its packets within the
    /// readchunk count.
    fn places_in_chunk(&self, length: f64) -> Vec<RunPlace> {
        let schedule = &self.schedule;
        let packet = schedule.path.packet;
        let first = schedule.fit(self.buffer, length);
        let mut places = Vec::new();
        let mut from = Duration::ZERO;
        while from < self.readchunk {
            let more = schedule.fit(self.buffer + from, length).rounds + 1;
            let next = schedule.time_for(more, length).saturating_sub(self.buffer);
            // Places before that have enough rounds not to count.
            let enough = more > first.rounds + MORE_ROUNDS || next <= from;
            let mut to = if enough { self.readchunk } else { next.min(self.readchunk) };
            // Near the end, a place for each slot.
            let end = packet.mul_f64(length);
            if from < end {
                to = to.min(from + packet.mul_f64(self.runs.slot).max(Duration::from_nanos(1)));
            }
            let middle = (from + to) / 2;
            let within = middle.as_secs_f64() / packet.as_secs_f64().max(1e-9);
            let slots = self.runs.slots(length.min(within.ceil().max(1.0)));
            let fit = Self::bounded(schedule.fit(self.buffer + middle, length), first);
            let share = (to - from).as_secs_f64() / self.readchunk.as_secs_f64();
            places.push(RunPlace { share, parts: vec![Part { fit, slots }] });
            from = to;
        }
        places
    }

    /// More rounds beyond those of the first packet hardly make a difference.
    fn bounded(fit: FittingRounds, first: FittingRounds) -> FittingRounds {
        FittingRounds { rounds: fit.rounds.min(first.rounds + MORE_ROUNDS), ..fit }
    }
}

fn as_f64(slots: usize) -> f64 {
    f64::from(u32::try_from(slots).unwrap_or(u32::MAX))
}

/// Within a readchunk, rounds beyond those of its last packet that are told apart.
const MORE_ROUNDS: u32 = 8;
