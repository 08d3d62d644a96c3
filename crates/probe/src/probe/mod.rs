mod findings;
mod phases;
mod verdicts;

use std::time::Duration;

use bytes::Bytes;
use punctual_proto::Statistics;
use punctual_units::{Bitrate, Instant};

use crate::config::ProbeConfig;
use crate::measurement::{Limit, Peer, StepResult};
use crate::payload::{null_packets, ts_payload};
use crate::report::{Report, Totals};
use crate::reporter::SAMPLE_PERIOD;
use crate::step::{Baseline, Sample, SenderTotals, Step};

/// The side of a probe that calls and sends: decides on the rates, takes in what is seen of them,
/// and stops.
///
/// Whoever drives it owns the connection and the clock:
///
/// - at [`poll_timeout`](Self::poll_timeout): send every message that
///   [`poll_message`](Self::poll_message) gives, then hand the connection's statistics to
///   [`observe`](Self::observe)
/// - each message from the peer goes to [`handle_message`](Self::handle_message)
/// - when [`is_done`](Self::is_done), [`measurement`](Self::measurement) tells all
#[derive(Debug)]
pub struct Probe {
    config: ProbeConfig,
    started: Instant,
    now: Instant,
    phase: Phase,
    going: Going,
    peer: Option<Peer>,
    /// The message that is sent, and what it holds.
    message: Bytes,
    pace: Pace,
    next_look: Instant,
    pub(crate) steps: Vec<Step>,
    /// Steps whose verdict is final.
    judged: usize,
    base: Option<Baseline>,
    usable: Option<Bitrate>,
    limit: Option<Limit>,
    soaks: u32,
    far: FarEnd,
    own: Statistics,
    messages_skipped: u64,
    /// What is being sent now shows on the progress line.
    latest_rtt: Duration,
}

/// What the probe is at.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Phase {
    /// Waits for a Punctual listener to make itself known.
    Greeting {
        until: Instant,
    },
    /// Sends messages of all sizes and waits for news of them.
    Sizes {
        sent: usize,
        until: Instant,
    },
    /// Sends at a step's rate.
    Sending {
        until: Instant,
    },
    /// Sends nothing while queues empty and the last reports come.
    Draining {
        until: Instant,
    },
    Done,
}

/// Where the ramp is going.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Going {
    Up,
    Down,
    /// Trying the rate that is going to be recommended.
    Soak,
}

/// When messages are due.
#[derive(Clone, Copy, Debug)]
struct Pace {
    interval: Duration,
    next: Instant,
}

/// What is known of the peer's side.
#[derive(Debug, Default)]
pub(crate) struct FarEnd {
    pub(crate) heard: bool,
    pub(crate) largest_payload: usize,
    pub(crate) reorder_distance: u32,
    pub(crate) capacity: Bitrate,
    pub(crate) rtt_variances: Vec<u32>,
    /// The peer's time less this end's, at packets' arrival; µs.
    offset: Option<i64>,
    /// The time of the latest sample.
    last: Duration,
    pub(crate) totals: Totals,
}

/// What a probe is doing, for people who watch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Time since the beginning.
    pub elapsed: Duration,
    /// What it is at.
    pub stage: Stage,
    /// The latest round-trip time known.
    pub rtt: Duration,
    /// Share of packets lost at the present rate.
    pub loss: f64,
    /// The highest rate so far that the link carried.
    pub usable: Option<Bitrate>,
}

/// What a probe is at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stage {
    /// Finding out who is at the other end, and how large messages may be.
    Greeting,
    /// Sending at this rate, as part of the ramp.
    Ramp(Bitrate),
    /// Letting queues empty.
    Pause,
    /// Trying the rate that is going to be recommended.
    Soak(Bitrate),
    /// Through.
    Done,
}

impl Probe {
    /// A probe of a connection that stands at `now`.
    pub fn new(config: ProbeConfig, now: Instant) -> Self {
        let until = now + config.patience() + GREETING;
        Self {
            message: null_packets(ts_payload(config.max_payload())),
            config,
            started: now,
            now,
            phase: Phase::Greeting { until },
            going: Going::Up,
            peer: None,
            pace: Pace { interval: Duration::MAX, next: now },
            next_look: now,
            steps: Vec::new(),
            judged: 0,
            base: None,
            usable: None,
            limit: None,
            soaks: 0,
            far: FarEnd::default(),
            own: Statistics::default(),
            messages_skipped: 0,
            latest_rtt: Duration::ZERO,
        }
    }

    /// When the probe should be driven next; `None` when it is done.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.phase {
            Phase::Done => None,
            // What would be due after the end is not sent.
            Phase::Sending { until } if self.pace.next < until => {
                Some(self.pace.next.min(self.next_look))
            }
            _ => Some(self.next_look),
        }
    }

    /// Whether [`observe`](Self::observe) would look at statistics now: they need not be had
    /// otherwise.
    pub fn wants_statistics(&self, now: Instant) -> bool {
        now >= self.next_look && self.phase != Phase::Done
    }

    /// The next message that is due by `now`.
    pub fn poll_message(&mut self, now: Instant) -> Option<Bytes> {
        self.now = self.now.max(now);
        match &mut self.phase {
            Phase::Sizes { sent, .. } => {
                let size = sizes(self.config.max_payload()).nth(*sent / COPIES)?;
                // One with each look, so that they are no burst.
                if now < self.pace.next {
                    return None;
                }
                self.pace.next = now + SAMPLE_PERIOD;
                *sent += 1;
                Some(null_packets(size))
            }
            Phase::Sending { until } => {
                if now < self.pace.next || now >= *until {
                    return None;
                }
                let behind = now - self.pace.next;
                if behind > MOST_BEHIND {
                    self.messages_skipped +=
                        u64::try_from(behind.as_nanos() / self.pace.interval.as_nanos().max(1))
                            .unwrap_or(0);
                    self.pace.next = now;
                }
                self.pace.next += self.pace.interval;
                Some(self.message.clone())
            }
            _ => None,
        }
    }

    /// Takes in the statistics of the connection, and goes on.
    pub fn observe(&mut self, now: Instant, statistics: &Statistics) {
        self.now = self.now.max(now);
        if now < self.next_look || self.phase == Phase::Done {
            return;
        }
        self.next_look = now + SAMPLE_PERIOD;
        let before = std::mem::replace(&mut self.own, statistics.clone());
        if self.far.rtt_variances.is_empty() {
            self.latest_rtt = statistics.rtt;
        }
        if let Some(step) = self.steps.last_mut().filter(|step| step.until.is_none()) {
            let (_, last) =
                step.own.get_or_insert((SenderTotals::of(&before), SenderTotals::default()));
            *last = SenderTotals::of(statistics);
        }
        if self.peer == Some(Peer::Other) {
            let sample = self.own_sample(&before);
            self.take(&sample);
        }
        self.go_on();
    }

    /// Takes in a message from the peer; anything but a report is passed over.
    pub fn handle_message(&mut self, now: Instant, message: &[u8]) {
        self.now = self.now.max(now);
        let Some(report) = Report::parse(message) else { return };
        // An early start at sender-only figures is not taken back.
        if self.peer == Some(Peer::Other) {
            return;
        }
        self.peer = Some(Peer::Punctual);
        self.far.heard = true;
        let payload = usize::try_from(report.largest_payload).unwrap_or(0);
        self.far.largest_payload = payload.min(self.config.max_payload());
        self.far.reorder_distance = report.reorder_distance;
        self.far.capacity = report.link_capacity;
        if !report.rtt.is_zero() && report.totals.acks_answered > 0 {
            self.latest_rtt = report.rtt;
            if self.far.rtt_variances.len() < MOST_VARIANCES {
                let micros = u32::try_from(report.rtt_variance.as_micros()).unwrap_or(u32::MAX);
                self.far.rtt_variances.push(micros);
            }
        }
        for sample in &report.samples {
            if sample.elapsed <= self.far.last {
                continue;
            }
            self.far.last = sample.elapsed;
            self.match_clocks(sample.elapsed, sample.received > 0);
            let Some(at) = self.own_time(sample.elapsed) else { continue };
            let sample = Sample {
                at,
                rtt: sample.rtt.map(|rtt| u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX)),
                transit: sample.transit_us,
                received: sample.received.into(),
                lost: sample.lost.into(),
                gaps: sample.gaps.into(),
                reordered: sample.reordered.into(),
                backlog: self.backlog(),
            };
            self.take(&sample);
        }
        self.note_totals(&report.totals);
        self.go_on();
    }

    /// Ends the probe: with what is known so far, if it is not done. The connection may be gone.
    pub fn stop(&mut self, now: Instant) {
        self.now = self.now.max(now);
        if self.phase == Phase::Done {
            return;
        }
        self.end_step();
        self.conclude_steps();
        self.settle_usable();
        self.limit.get_or_insert(Limit::Stopped);
        self.phase = Phase::Done;
    }

    /// Whether there is nothing left to do.
    pub fn is_done(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Who is at the other end, once that is clear.
    pub fn peer(&self) -> Option<Peer> {
        self.peer
    }

    /// What it is doing.
    pub fn progress(&self) -> Progress {
        let step = self.steps.last();
        let stage = match (self.phase, step) {
            (Phase::Done, _) => Stage::Done,
            (Phase::Sending { .. }, Some(step)) if step.soak => Stage::Soak(step.rate),
            (Phase::Sending { .. }, Some(step)) => Stage::Ramp(step.rate),
            (Phase::Draining { .. }, _) => Stage::Pause,
            _ => Stage::Greeting,
        };
        Progress {
            elapsed: self.now - self.started,
            stage,
            rtt: self.latest_rtt,
            loss: step.map_or(0.0, Step::loss),
            usable: self.usable,
        }
    }

    /// The steps that were tried so far, the one under way included.
    pub fn steps(&self) -> Vec<StepResult> {
        self.steps.iter().map(StepResult::of).collect()
    }

    /// How many of the steps have their final verdict: the first so many.
    pub fn concluded(&self) -> usize {
        self.judged
    }

    /// How this end sees the connection.
    fn own_sample(&self, before: &Statistics) -> Sample {
        let own = &self.own;
        let acknowledged = |statistics: &Statistics| {
            statistics.packets_sent_unique.saturating_sub(statistics.flight_size.into())
        };
        // The smoothed round trip begins with what nobody measured: 100 ms (draft section 4.10).
        let fresh = own.acks_received > before.acks_received.max(SETTLED_ACKS);
        Sample {
            at: self.now - self.started,
            rtt: fresh.then(|| u32::try_from(own.rtt.as_micros()).unwrap_or(u32::MAX)),
            transit: None,
            received: acknowledged(own).saturating_sub(acknowledged(before)),
            lost: own.packets_retransmitted - before.packets_retransmitted,
            gaps: own.packets_retransmitted - before.packets_retransmitted,
            reordered: 0,
            backlog: self.backlog(),
        }
    }

    /// Time that it would take to send what waits in the sender.
    fn backlog(&self) -> Duration {
        if !matches!(self.phase, Phase::Sending { .. }) {
            return Duration::ZERO;
        }
        let waiting = self.own.send_buffer_packets.saturating_sub(self.own.flight_size);
        self.pace.interval.saturating_mul(waiting)
    }

    /// Learns how the peer's clock stands to this one: its first packets are the first that were
    /// sent.
    fn match_clocks(&mut self, elapsed: Duration, received: bool) {
        if self.far.offset.is_none() && received && !self.steps.is_empty() {
            let sent = self.steps[0].from;
            self.far.offset = Some(signed_micros(elapsed) - signed_micros(sent));
        }
    }

    fn own_time(&self, elapsed: Duration) -> Option<Duration> {
        let micros = signed_micros(elapsed) - self.far.offset?;
        u64::try_from(micros).ok().map(Duration::from_micros)
    }

    fn note_totals(&mut self, totals: &Totals) {
        self.far.totals = *totals;
        let Some(at) = self.own_time(Duration::from_micros(totals.elapsed_us)) else { return };
        if let Some(step) = self.steps.iter_mut().rev().find(|step| step.covers(at)) {
            let (_, last) = step.totals.get_or_insert((*totals, *totals));
            *last = *totals;
        }
    }
}

/// What is recommended where `usable` is usable: a quarter of the stream is left for
/// retransmissions.
pub(crate) fn recommended(usable: Bitrate) -> Bitrate {
    Bitrate::from_bits_per_sec(usable.as_bits_per_sec() / 5 * 4)
}

/// Payload sizes to try: whole MPEG-TS packets, and as much as there may be.
fn sizes(max_payload: usize) -> impl Iterator<Item = usize> {
    [188, 376, 564, 752, 940, 1_128, 1_316, 1_456]
        .into_iter()
        .filter(move |&size| size <= max_payload)
}

fn signed_micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

/// Beyond its latency, a Punctual listener makes itself known within this time.
const GREETING: Duration = Duration::from_millis(1_500);
/// How often each size of a message is sent.
const COPIES: usize = 4;
/// A sender that is later than that leaves messages out instead of sending a burst.
const MOST_BEHIND: Duration = Duration::from_millis(100);
/// After so many ACKs nothing is left of the round trip that a connection begins with: an eighth of
/// it goes with each.
const SETTLED_ACKS: u64 = 80;
const MOST_VARIANCES: usize = 100_000;
