//! From phase to phase: which rate is tried next, for how long, and when it is enough.

use std::time::Duration;

use punctual_units::Bitrate;

use super::{COPIES, GREETING, Going, Phase, Probe, recommended, sizes};
use crate::config::LEAST_RATE;
use crate::measurement::{Congestion, Limit, Peer, Verdict};
use crate::payload::{null_packets, ts_payload};
use crate::reporter::SAMPLE_PERIOD;
use crate::step::{Step, scaled};

impl Probe {
    /// Goes on from phase to phase.
    pub(super) fn go_on(&mut self) {
        let now = self.now;
        match self.phase {
            Phase::Greeting { until } => match self.peer {
                Some(Peer::Punctual) => {
                    let sending = SAMPLE_PERIOD * small(sizes(self.config.max_payload()).count());
                    let wait = self.config.patience() * 2 + GREETING;
                    let until = now + sending * small(COPIES) + wait;
                    self.phase = Phase::Sizes { sent: 0, until };
                }
                _ if now >= until => {
                    self.peer = Some(Peer::Other);
                    self.far.offset = Some(0);
                    self.start_step(self.config.start(), self.config.step_time());
                }
                _ => {}
            },
            Phase::Sizes { until, .. } => {
                let best = sizes(self.config.max_payload()).last().unwrap_or(0);
                if self.far.largest_payload >= best || now >= until {
                    let largest = self.far.largest_payload;
                    if largest > 0 {
                        self.message = null_packets(ts_payload(largest));
                    }
                    self.start_step(self.config.start(), self.config.step_time());
                }
            }
            Phase::Sending { until } => {
                if self.judge() {
                    self.drain();
                } else if now >= until {
                    self.end_step();
                    self.next_step();
                }
            }
            Phase::Draining { until } if now >= until => self.decide(),
            Phase::Draining { .. } | Phase::Done => {}
        }
    }

    fn start_step(&mut self, rate: Bitrate, time: Duration) {
        let from = self.now - self.started;
        let soak = self.going == Going::Soak;
        self.steps.push(Step::new(rate, self.message.len(), from, time, soak));
        self.pace.interval = rate.time_for(self.message.len() as u64);
        self.pace.next = self.now;
        self.phase = Phase::Sending { until: self.now + time };
    }

    pub(super) fn end_step(&mut self) {
        let at = self.now - self.started;
        if let Some(step) = self.steps.last_mut() {
            step.until.get_or_insert(at);
        }
    }

    /// After a whole step of the ramp: the next one, or no more.
    fn next_step(&mut self) {
        let next = self.steps.last().map_or(Bitrate::ZERO, |step| {
            Bitrate::from_bits_per_sec(
                step.rate.as_bits_per_sec() + self.config.step().as_bits_per_sec(),
            )
        });
        if self.going != Going::Up {
            self.drain();
        } else if next > self.config.max_rate() {
            self.limit = Some(Limit::MaxRate);
            self.drain();
        } else if self.left() < self.config.step_time() + self.reserve() {
            self.limit = Some(Limit::Time);
            self.drain();
        } else {
            self.start_step(next, self.config.step_time());
        }
    }

    fn drain(&mut self) {
        self.end_step();
        // Reports come late by the latency, and later than that while a queue empties.
        let queue = match self.steps.last().map(|step| step.verdict) {
            Some(Verdict::Congested(Congestion::Queue { delay })) => delay * 2,
            _ => Duration::ZERO,
        };
        let rtt = self.latest_rtt.min(LONGEST_DRAIN);
        let wait = self.config.patience() + rtt + LEAST_DRAIN + queue.min(LONGEST_DRAIN);
        self.phase = Phase::Draining { until: self.now + wait };
    }

    /// After a pause: what next?
    fn decide(&mut self) {
        self.conclude_steps();
        self.settle_usable();
        let least_time = self.config.step_time();
        let rate = match (self.going, self.usable) {
            (Going::Up | Going::Down, None) => {
                let lowest = self.steps.iter().map(|step| step.rate).min().unwrap_or_default();
                let half = scaled(lowest, 0.5);
                if half < LEAST_RATE || self.left() < least_time {
                    self.finish();
                } else {
                    self.going = Going::Down;
                    self.start_step(half, least_time);
                }
                return;
            }
            (_, Some(usable)) => recommended(usable),
            (Going::Soak, None) => return self.finish(),
        };
        let failed = self.going == Going::Soak
            && self.steps.last().is_some_and(|s| matches!(s.verdict, Verdict::Congested(_)));
        // A link that changes is watched for longer: half a minute of it tells little.
        let carried = self.steps.iter().filter(|s| s.soak && s.verdict == Verdict::Clear).count();
        let more = carried < 2 && self.changes();
        let again = self.going != Going::Soak || (failed || more) && self.soaks < MOST_SOAKS;
        let time = self.config.soak().min(self.left().saturating_sub(self.reserve_after()));
        if !again || time < self.config.soak().min(least_time) || self.config.soak().is_zero() {
            self.finish();
            return;
        }
        self.going = Going::Soak;
        self.soaks += 1;
        self.start_step(rate, time);
    }

    fn finish(&mut self) {
        self.limit.get_or_insert(Limit::Time);
        self.phase = Phase::Done;
    }

    fn left(&self) -> Duration {
        self.config.duration().saturating_sub(self.now - self.started)
    }

    /// Time that is kept for what comes after the ramp.
    fn reserve(&self) -> Duration {
        self.config.soak() + self.reserve_after() * 2
    }

    fn reserve_after(&self) -> Duration {
        self.config.patience() + LEAST_DRAIN
    }
}

fn small(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

const LEAST_DRAIN: Duration = Duration::from_millis(1_500);
const LONGEST_DRAIN: Duration = Duration::from_secs(3);
const MOST_SOAKS: u32 = 8;
