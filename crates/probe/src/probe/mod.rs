mod pacer;
mod peer_reports;
mod progress;
mod schedule;
mod trials;

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::Statistics;
use punctual_units::{Bitrate, Instant};

use crate::capacity;
use crate::config::ProbeConfig;
use crate::history::ProbeHistory;
use crate::measurement::{
    Delay, Limit, Measurement, ProbePeer, ReturnPath, StepKind, StepResult, TriedRates, Watched,
};
use crate::payload::null_packets;
use crate::report::Report;
use crate::reporter::SAMPLE_PERIOD;
use crate::step::{Load, PacketCounts, Sample, SenderTotals, Step};
use crate::summary;

use pacer::Pacer;
use peer_reports::PeerReports;
pub use progress::{ProbeProgress, Stage};
use schedule::{Schedule, StepAttempt};
use trials::Trials;

/// The side of a probe that calls and sends: decides on the rates, collects what is seen of them,
/// and stops.
///
/// Its driver owns the connection and the clock:
///
/// - at [`poll_timeout`](Self::poll_timeout): send every message that
///   [`poll_message`](Self::poll_message) gives, then hand the connection's statistics to
///   [`observe`](Self::observe)
/// - each message from the peer goes to [`handle_message`](Self::handle_message)
/// - when [`is_done`](Self::is_done), [`measurement`](Self::measurement) gives the result
#[derive(Debug)]
pub struct Probe {
    started: Instant,
    now: Instant,
    phase: Phase,
    schedule: Schedule,
    trials: Trials,
    pacer: Pacer,
    next_look: Instant,
    peer: Option<ProbePeer>,
    reports: PeerReports,
    /// This end's statistics at the last look.
    statistics: Statistics,
}

/// The present activity of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Waits for a Punctual listener to make itself known.
    Greeting {
        until: Instant,
    },
    /// Sends messages of all sizes and waits for reports about them.
    Sizes {
        sent: usize,
        until: Instant,
    },
    /// Sends at a step's rate.
    Sending {
        until: Instant,
    },
    /// Sends nothing while queues empty and the last reports come.
    Pause {
        until: Instant,
    },
    Done,
}

impl Probe {
    /// A probe of a connection that is established at `now`.
    pub fn new(config: ProbeConfig, now: Instant) -> Self {
        let schedule = Schedule::new(config);
        Self {
            started: now,
            now,
            phase: Phase::Greeting { until: now + schedule.greeting() },
            pacer: Pacer::new(schedule.max_payload(), now),
            schedule,
            trials: Trials::default(),
            next_look: now,
            peer: None,
            reports: PeerReports::default(),
            statistics: Statistics::default(),
        }
    }

    /// When the probe should be driven next; `None` when it is done.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Done => None,
            // A message that would be due after the end is not sent.
            Phase::Sending { until } if self.pacer.next() < until => {
                Some(self.pacer.next().min(self.next_look))
            }
            _ => Some(self.next_look),
        }
    }

    /// Whether [`observe`](Self::observe) would use statistics now.
    pub fn wants_statistics(&self, now: Instant) -> bool {
        now >= self.next_look && self.phase != Phase::Done
    }

    /// The next message that is due by `now`.
    pub fn poll_message(&mut self, now: Instant) -> Option<Bytes> {
        self.now = self.now.max(now);
        match &mut self.phase {
            Phase::Sizes { sent, .. } => {
                let size = sizes(self.schedule.max_payload()).nth(*sent / COPIES)?;
                // One with each look, so that they are no burst.
                self.pacer.poll_other(now, SAMPLE_PERIOD).then(|| {
                    *sent += 1;
                    null_packets(size)
                })
            }
            Phase::Sending { until } if now < *until => self.pacer.poll(now),
            _ => None,
        }
    }

    /// Takes in the statistics of the connection, and goes on.
    pub fn observe(&mut self, now: Instant, statistics: &Statistics) {
        self.now = self.now.max(now);
        if !self.wants_statistics(now) {
            return;
        }
        self.next_look = now + SAMPLE_PERIOD;
        let before = std::mem::replace(&mut self.statistics, statistics.clone());
        self.trials.note_sender(SenderTotals::of(&before), SenderTotals::of(statistics));
        if self.peer == Some(ProbePeer::Other) {
            let sample = self.own_sample(&before);
            self.trials.take(&sample);
        }
        self.proceed();
    }

    /// Takes in a message from the peer; it is ignored unless it is a report.
    pub fn handle_message(&mut self, now: Instant, message: &[u8]) {
        self.now = self.now.max(now);
        let Some(report) = Report::parse(message) else { return };
        // A probe that has begun without reports goes on without them.
        if self.peer == Some(ProbePeer::Other) {
            return;
        }
        self.peer = Some(ProbePeer::Punctual);
        self.reports.take(&report, self.schedule.max_payload());
        for sample in &report.samples {
            if !self.reports.is_new(sample) {
                continue;
            }
            self.reports.match_clocks(sample, self.trials.all().first().map(Step::from));
            let Some(at) = self.reports.local_time(sample.elapsed) else { continue };
            let sample = Sample {
                at,
                rtt: sample.rtt.map(micros),
                transit: sample.transit_us,
                counts: PacketCounts {
                    received: sample.received.into(),
                    missing: sample.lost.into(),
                    gaps: sample.gaps.into(),
                    reordered: sample.reordered.into(),
                },
                backlog: self.backlog(),
            };
            self.trials.take(&sample);
        }
        let elapsed = Duration::from_micros(report.totals.elapsed_us);
        if let Some(at) = self.reports.local_time(elapsed) {
            self.trials.note_receiver(at, &report.totals);
        }
        self.proceed();
    }

    /// Ends the probe with the result so far, if it is not done. The connection may be gone.
    pub fn stop(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.phase != Phase::Done {
            self.trials.end(self.elapsed());
            self.trials.conclude_all();
            self.finish(Limit::Stopped);
        }
    }

    /// Whether the probe has ended.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// The program at the other end, once it is known.
    pub fn peer(&self) -> Option<ProbePeer> {
        self.peer
    }

    /// The present state.
    pub fn progress(&self) -> ProbeProgress {
        let step = self.trials.last();
        let stage = match (self.phase, step) {
            (Phase::Done, _) => Stage::Done,
            (Phase::Sending { .. }, Some(step)) => match step.kind() {
                StepKind::Ramp => Stage::Ramp(step.rate()),
                StepKind::Sustained => Stage::Sustained(step.rate()),
            },
            (Phase::Pause { .. }, _) => Stage::Pause,
            _ => Stage::Greeting,
        };
        ProbeProgress {
            elapsed: self.elapsed(),
            stage,
            rtt: self.latest_rtt(),
            loss: step.map_or(0.0, |step| step.counts().loss()),
            usable: self.trials.usable(),
        }
    }

    /// The steps that were tried so far, the one under way included.
    pub fn steps(&self) -> Vec<StepResult> {
        self.trials.results()
    }

    /// Number of steps with a final verdict: the first ones.
    pub fn concluded(&self) -> usize {
        self.trials.concluded()
    }

    /// The result so far.
    pub fn measurement(&self) -> Measurement {
        let steps = self.trials.representative();
        let peer = self.peer.unwrap_or(ProbePeer::Other);
        let reported = peer == ProbePeer::Punctual && !steps.is_empty();
        let rtt = summary::rtt(&steps);
        let usable = self.trials.usable();
        let limit = self.trials.limit().unwrap_or(Limit::Stopped);
        let capacity = match peer {
            ProbePeer::Punctual => self.reports.capacity(),
            ProbePeer::Other => self.statistics.link_capacity,
        };
        let capacity = capacity::plausible(capacity, usable, limit);
        let largest = self.reports.largest_payload();
        let mut missing = summary::missing(peer, &steps);
        missing.extend(capacity.err());
        Measurement {
            peer,
            duration: self.elapsed(),
            delay: Delay {
                rtt,
                rtt_variance: self.reports.rtt_variance().unwrap_or(self.statistics.rtt_variance),
                variation: summary::delay_variation(&steps),
                spikes: summary::spikes(&steps, rtt.as_ref()),
            },
            watched: Watched {
                time: steps.iter().map(|step| step.watched()).sum(),
                troubled: steps.iter().map(|step| step.troubled()).sum(),
            },
            losses: summary::losses(&steps, reported),
            return_path: ReturnPath {
                loss: summary::return_loss(&steps),
                loss_again: summary::return_loss_again(&steps),
            },
            reordering: reported
                .then(|| summary::reordering(&steps, self.reports.reorder_distance())),
            duplicates: reported.then(|| summary::duplicates(&steps)),
            changes: self.trials.link_changes(),
            rates: TriedRates {
                steps: self.trials.results(),
                usable,
                limit,
                sustained: self.trials.sustained(),
                capacity: capacity.ok(),
            },
            largest_payload: (peer == ProbePeer::Punctual && largest > 0).then_some(largest),
            payload: self.pacer.payload(),
            missing,
            history: ProbeHistory::of(self.trials.all().iter().map(Step::history), &steps),
        }
    }

    /// Goes on to the next phase, if the present one is over.
    fn proceed(&mut self) {
        let now = self.now;
        match self.phase {
            Phase::Greeting { until } => match self.peer {
                Some(ProbePeer::Punctual) => {
                    let messages = sizes(self.schedule.max_payload()).count() * COPIES;
                    let sending = SAMPLE_PERIOD * u32::try_from(messages).unwrap_or(u32::MAX);
                    let until = now + sending + self.schedule.size_reports();
                    self.phase = Phase::Sizes { sent: 0, until };
                }
                _ if now >= until => {
                    self.peer = Some(ProbePeer::Other);
                    self.begin(self.schedule.first());
                }
                _ => {}
            },
            Phase::Sizes { until, .. } => {
                let best = sizes(self.schedule.max_payload()).last().unwrap_or(0);
                let largest = self.reports.largest_payload();
                if largest >= best || now >= until {
                    if largest > 0 {
                        self.pacer.set_max_payload(largest);
                    }
                    self.begin(self.schedule.first());
                }
            }
            Phase::Sending { until } => {
                if self.trials.judge() {
                    self.pause();
                } else if now >= until {
                    self.next_step();
                }
            }
            Phase::Pause { until } if now >= until => {
                self.trials.conclude_all();
                match self.schedule.after_pause(&self.trials, self.elapsed()) {
                    Some(attempt) => self.begin(attempt),
                    None => self.finish(Limit::Time),
                }
            }
            Phase::Pause { .. } | Phase::Done => {}
        }
    }

    fn begin(&mut self, attempt: StepAttempt) {
        let StepAttempt { rate, time, kind } = attempt;
        let load = Load::new(rate, self.pacer.payload());
        self.trials.begin(Step::new(load, self.elapsed(), time, kind));
        self.pacer.set_rate(rate, self.now);
        self.phase = Phase::Sending { until: self.now + time };
    }

    /// After a whole step: the next one of the ramp, or a pause.
    fn next_step(&mut self) {
        self.trials.end(self.elapsed());
        let rate = self.trials.last().map_or(Bitrate::ZERO, Step::rate);
        match self.schedule.after_step(rate, self.elapsed()) {
            Ok(attempt) => self.begin(attempt),
            Err(limit) => {
                if let Some(limit) = limit {
                    self.trials.set_limit(limit);
                }
                self.pause();
            }
        }
    }

    fn pause(&mut self) {
        self.trials.end(self.elapsed());
        let time = self.schedule.pause(self.trials.last(), self.latest_rtt());
        self.phase = Phase::Pause { until: self.now + time };
    }

    fn finish(&mut self, limit: Limit) {
        self.trials.set_default_limit(limit);
        self.phase = Phase::Done;
    }

    fn elapsed(&self) -> Duration {
        self.now - self.started
    }

    /// The round-trip time as the peer measures it, or else as this end knows it.
    fn latest_rtt(&self) -> Duration {
        self.reports.rtt().unwrap_or(self.statistics.rtt)
    }

    /// A sample of the counters of this end, of which `before` are those of the look before.
    fn own_sample(&self, before: &Statistics) -> Sample {
        let own = &self.statistics;
        let acknowledged = |statistics: &Statistics| {
            statistics.packets_sent_unique.saturating_sub(statistics.flight_size.into())
        };
        // The smoothed round trip begins with 100 ms, which nobody measured (draft section 4.10).
        let fresh = own.acks_received > before.acks_received.max(SETTLED_ACKS);
        let retransmitted = own.packets_retransmitted - before.packets_retransmitted;
        Sample {
            at: self.elapsed(),
            rtt: fresh.then(|| micros(own.rtt)),
            transit: None,
            counts: PacketCounts {
                received: acknowledged(own).saturating_sub(acknowledged(before)),
                missing: retransmitted,
                gaps: retransmitted,
                reordered: 0,
            },
            backlog: self.backlog(),
        }
    }

    /// Time that it would take to send the messages that wait in the sender.
    fn backlog(&self) -> Duration {
        if !matches!(self.phase, Phase::Sending { .. }) {
            return Duration::ZERO;
        }
        let waiting =
            self.statistics.send_buffer_packets.saturating_sub(self.statistics.flight_size);
        self.pacer.time_for(waiting)
    }
}

/// The recommended rate of a stream where `usable` is usable: a fifth is left for retransmissions.
pub(crate) fn recommended(usable: Bitrate) -> Bitrate {
    Bitrate::from_bits_per_sec(usable.as_bits_per_sec() / 5 * 4)
}

/// Payload sizes to try: whole MPEG-TS packets, and the largest possible one.
fn sizes(max_payload: usize) -> impl Iterator<Item = usize> {
    [188, 376, 564, 752, 940, 1_128, 1_316, 1_456]
        .into_iter()
        .filter(move |&size| size <= max_payload)
}

fn micros(time: Duration) -> u32 {
    u32::try_from(time.as_micros()).unwrap_or(u32::MAX)
}

/// The number of messages of each size.
const COPIES: usize = 4;
/// After this number of ACKs nothing is left of the round trip that a connection begins with: an
/// eighth of it goes with each.
const SETTLED_ACKS: u64 = 80;
