//! Estimates how much one link of a balancing group can carry, from what it acknowledges.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use super::link::LinkStatus;

/// What a link is taken to carry before anything is known of it: 2 Mb/s. Only the ratio to the
/// other links matters.
const FIRST_RATE: f64 = 250_000.0;
/// What no estimate falls below, bytes per second.
const LEAST_RATE: f64 = 5_000.0;
/// The rate is looked at no more often than this, and than once a round trip.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);
/// Share of a new measurement in the mean.
const GAIN: f64 = 0.3;
/// A link that delivers this share of what it is taken to carry may carry more.
const BUSY: f64 = 0.8;
/// So much more than what it delivers a link is taken to carry while it shows no queue.
const HEADROOM: f64 = 1.25;
/// So much of what it delivers a link with a queue is given, so that the queue goes.
const DRAIN: f64 = 0.9;
/// A longer queue than this, and a quarter of the round trip, shows that the link is full.
const LONG_QUEUE: Duration = Duration::from_millis(30);
/// A shorter one shows that it is not.
const SHORT_QUEUE: Duration = Duration::from_millis(10);
/// A larger share of losses shows that it is full, and that its buffer is small.
const HEAVY_LOSS: f64 = 0.1;
/// How long the least round trip is remembered, at least; twice that at most.
const MEMORY: Duration = Duration::from_secs(10);
/// After this time without being full, a link may be given as much as the others are.
const TRUST: Duration = Duration::from_secs(5);
/// By how much at once.
const LEVELLING: f64 = 1.05;

/// A message on its way over the link.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) msgno: MsgNo,
    pub(super) at: Instant,
    size: usize,
    /// The peer reported it lost, and it went back to the group.
    pub(super) lost: bool,
}

/// The packets in flight over one link, and an estimate of the rate that the link can carry.
///
/// The link's own numbers count what goes over it. An acknowledgement says what was delivered since
/// the last one, and how long the newest packet of it took. From that follow the rate of delivery,
/// and the queue: what a round trip takes longer than the least one. As long as there is hardly a
/// queue, the link can carry what it delivers and some more; when there is a long one, or much is
/// lost, it delivers what it can.
#[derive(Debug)]
pub(super) struct LinkCapacityEstimator {
    /// The number of the next packet.
    next: SeqNo,
    /// Bytes of the headers of a packet.
    overhead: usize,
    flight: VecDeque<Sent>,
    /// How many at the front of the flight had their time for an answer.
    looked_at: usize,
    /// What it is taken to carry, bytes per second.
    rate: f64,
    /// Mean of what it delivers, bytes per second; `None` before the first measurement.
    delivered: Option<f64>,
    /// Mean share of losses.
    loss: f64,
    /// When it was last full.
    full: Option<Instant>,
    measuring: Option<Measurement>,
    least: Least,
    /// The virtual time that it has been given messages up to.
    pub(super) served: f64,
}

/// What was acknowledged since `from`.
#[derive(Debug)]
struct Measurement {
    from: Instant,
    delivered: usize,
    lost: usize,
    round_trip: Option<Duration>,
}

/// The least round trip of the last while.
#[derive(Debug, Default)]
struct Least {
    since: Instant,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl LinkCapacityEstimator {
    /// For a link whose packets begin with `next` and have `overhead` bytes of headers.
    pub(super) fn new(next: SeqNo, served: f64, overhead: usize) -> Self {
        Self {
            next,
            overhead,
            flight: VecDeque::new(),
            looked_at: 0,
            rate: FIRST_RATE,
            delivered: None,
            loss: 0.0,
            full: None,
            measuring: None,
            least: Least::default(),
            served,
        }
    }

    /// The size of a packet with `payload` bytes, headers included.
    pub(super) const fn size_of(&self, payload: usize) -> usize {
        payload + self.overhead
    }

    /// Notes a message that goes over the link now; the number of its packet.
    pub(super) fn send(&mut self, now: Instant, msgno: MsgNo, size: usize) -> SeqNo {
        let seq = self.next;
        self.next = seq.next();
        if self.flight.is_empty() {
            // A pause is no slow delivery.
            self.measuring = None;
        }
        self.flight.push_back(Sent { msgno, at: now, size, lost: false });
        seq
    }

    /// The peer has acknowledged all numbers before that in `status`; tells `delivered` of each
    /// message that arrived. `level` is the most that a link of the group is taken to carry.
    pub(super) fn acknowledge(
        &mut self,
        status: &LinkStatus,
        level: f64,
        mut delivered: impl FnMut(MsgNo),
    ) {
        let now = status.last_response;
        let mut newest = None;
        while let Some(sent) = self.flight.front() {
            let first = self.next.minus(u32::try_from(self.flight.len()).unwrap_or(u32::MAX));
            if !first.is_before(status.acknowledged) {
                break;
            }
            let measuring = self.measuring.get_or_insert(Measurement {
                from: now,
                delivered: 0,
                lost: 0,
                round_trip: None,
            });
            if sent.lost {
                measuring.lost += sent.size;
            } else {
                measuring.delivered += sent.size;
                newest = Some(sent.at);
                delivered(sent.msgno);
            }
            self.flight.pop_front();
            self.looked_at = self.looked_at.saturating_sub(1);
        }
        if let (Some(at), Some(measuring)) = (newest, &mut self.measuring) {
            let sample = now.saturating_since(at);
            measuring.round_trip =
                Some(measuring.round_trip.map_or(sample, |least| least.min(sample)));
            self.least.take(now, sample);
        }
        self.measure(now, status.rtt.smoothed, level);
    }

    /// The packet `seq` was reported lost; its message, if it is on its way.
    pub(super) fn lose(&mut self, seq: SeqNo) -> Option<MsgNo> {
        let first = self.next.minus(u32::try_from(self.flight.len()).ok()?);
        let sent = self.flight.get_mut(usize::try_from(seq.distance_from(first)).ok()?)?;
        (!std::mem::replace(&mut sent.lost, true)).then_some(sent.msgno)
    }

    /// The oldest message whose time for an answer nobody has looked at, and when it was sent.
    pub(super) fn waiting(&self) -> Option<&Sent> {
        self.flight.get(self.looked_at)
    }

    /// The next one.
    pub(super) const fn look_on(&mut self) {
        self.looked_at += 1;
    }

    /// The messages on their way.
    pub(super) fn flight(&self) -> impl Iterator<Item = MsgNo> {
        self.flight.iter().filter(|sent| !sent.lost).map(|sent| sent.msgno)
    }

    /// What the link is taken to carry, bytes per second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// After an outage it begins anew, with little.
    pub(super) fn restart(&mut self, served: f64) {
        self.rate = self.rate.min(FIRST_RATE);
        self.delivered = None;
        self.loss = 0.0;
        self.full = None;
        self.measuring = None;
        self.served = served;
    }

    /// Takes the measurement in if it is long enough.
    #[expect(clippy::cast_precision_loss, reason = "bytes of an interval")]
    fn measure(&mut self, now: Instant, round_trip: Duration, level: f64) {
        let Some(measured) = &self.measuring else { return };
        let time = now.saturating_since(measured.from);
        if time < LEAST_INTERVAL.max(round_trip) {
            return;
        }
        let delivered = measured.delivered as f64 / time.as_secs_f64();
        let mean = self.delivered.map_or(delivered, |mean| mean + (delivered - mean) * GAIN);
        let all = (measured.delivered + measured.lost).max(1);
        self.loss += (measured.lost as f64 / all as f64 - self.loss) * GAIN;
        let least = self.least.get();
        let queue = measured.round_trip.map(|sample| sample.saturating_sub(least));
        let is_full =
            self.loss > HEAVY_LOSS || queue.is_some_and(|queue| queue > LONG_QUEUE + least / 4);
        if is_full {
            self.rate = self.rate.min(mean * DRAIN);
            self.full = Some(now);
        } else if queue.is_some_and(|queue| queue < SHORT_QUEUE) {
            if mean > self.rate * BUSY {
                self.rate = mean * HEADROOM;
            } else if self.full.is_none_or(|at| now.saturating_since(at) > TRUST) {
                self.rate = self.rate.max(level.min(self.rate * LEVELLING));
            }
        }
        self.rate = self.rate.max(LEAST_RATE);
        self.delivered = Some(mean);
        self.measuring = Some(Measurement { from: now, delivered: 0, lost: 0, round_trip: None });
    }
}

impl Least {
    fn take(&mut self, now: Instant, sample: Duration) {
        if now.saturating_since(self.since) > MEMORY {
            self.before = self.now.take();
            self.since = now;
        }
        self.now = Some(self.now.map_or(sample, |least| least.min(sample)));
    }

    fn get(&self) -> Duration {
        self.now.into_iter().chain(self.before).min().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use punctual_rtt::Rtt;

    use super::*;

    /// Sends a packet of 1,250 bytes each `interval` for two seconds over a link that takes
    /// `delay` and carries one each `service`; an ACK comes each 10 ms, and each `lossy`th is lost.
    fn run(interval: u64, service: u64, delay: u64, lossy: usize) -> LinkCapacityEstimator {
        let mut capacity = LinkCapacityEstimator::new(SeqNo::new(5), 0.0, 44);
        let mut free = 0;
        let mut arrivals = VecDeque::new();
        let mut arrived = 0u32;
        for ms in 0..2_000 {
            let now = Instant::from_millis(1_000 + ms);
            if ms % interval == 0 {
                let seq = capacity.send(now, MsgNo::FIRST, 1_250);
                free = ms.max(free) + service;
                arrivals.push_back(free + delay);
                if (seq.value() as usize).is_multiple_of(lossy) {
                    assert_eq!(capacity.lose(seq), Some(MsgNo::FIRST));
                    assert_eq!(capacity.lose(seq), None, "reported again");
                }
            }
            while arrivals.front().is_some_and(|&at| at <= ms) {
                arrivals.pop_front();
                arrived += 1;
            }
            if ms % 10 == 0 {
                let status = LinkStatus {
                    acknowledged: SeqNo::new(5).plus(arrived),
                    last_response: now,
                    waiting_since: None,
                    room: 100,
                    max_payload: 1_316,
                    rtt: Rtt { smoothed: Duration::from_millis(delay), variance: Duration::ZERO },
                    drift: 0,
                };
                capacity.acknowledge(&status, 0.0, |_| {});
            }
        }
        capacity
    }

    #[test]
    fn a_link_that_shows_no_queue_may_carry_more_than_it_does() {
        // 5 Mb/s go over it.
        let rate = run(2, 1, 20, usize::MAX).rate() * 8.0;
        assert!((5_500_000.0..8_000_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_link_with_a_queue_is_full() {
        // 10 Mb/s are to go over it, and 5 do.
        let capacity = run(1, 2, 20, usize::MAX);
        let rate = capacity.rate() * 8.0;
        assert!((3_500_000.0..5_200_000.0).contains(&rate), "{rate}");
        assert!(capacity.full.is_some());
    }

    #[test]
    fn a_link_that_loses_much_is_full() {
        let capacity = run(2, 1, 20, 5);
        assert!(capacity.full.is_some());
        assert!(capacity.rate() * 8.0 < 4_000_000.0);
    }
}
