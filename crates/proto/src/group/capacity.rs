//! Estimates the capacity of one link of a balancing group, from its ACKs.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::Instant;
use punctual_wire::{MsgNo, SeqNo};

use super::link::LinkStatus;

/// The estimate before the first measurement, bytes per second: 2 Mb/s. Only the ratio between
/// links matters.
const FIRST_RATE: f64 = 250_000.0;
/// The lower bound of the estimate, bytes per second.
const LEAST_RATE: f64 = 5_000.0;
/// The shortest measurement. It also lasts for a round trip at least.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);
/// The weight of a new measurement in the mean.
const GAIN: f64 = 0.3;
/// A link that delivers this share of its estimate may be able to carry more.
const BUSY: f64 = 0.8;
/// The estimate of a link without a queue, as a multiple of what it delivers.
const GROWTH: f64 = 1.25;
/// The estimate of a link with a queue, as a share of what it delivers, so that the queue drains.
const DRAIN: f64 = 0.9;
/// A queueing delay above this plus a quarter of the least round trip means that the link is full.
const LONG_QUEUE: Duration = Duration::from_millis(30);
/// A queueing delay below this means that the link is not full.
const SHORT_QUEUE: Duration = Duration::from_millis(10);
/// A larger share of losses means that the link is full and has a small buffer.
const HEAVY_LOSS: f64 = 0.1;
/// The least round trip is remembered at least for this time, and at most for twice as long.
const MEMORY: Duration = Duration::from_secs(10);
/// A link that was not full for this time approaches the highest estimate in its group.
const NOT_FULL_FOR: Duration = Duration::from_secs(5);
/// The largest growth in one such step.
const LEVELLING_STEP: f64 = 1.05;

/// A message in flight over the link.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) msgno: MsgNo,
    pub(super) at: Instant,
    size: usize,
    /// Whether the peer reported it lost. The group has sent it again then.
    pub(super) lost: bool,
}

/// The packets in flight over one link, and an estimate of the rate that the link can carry.
///
/// The link has its own sequence numbers. An ACK shows which packets were delivered since the last
/// one, and the time that the newest of them took. From these follow the rate of delivery and the
/// queueing delay, which is the excess of a round trip over the least one. Without a considerable
/// queue, the link can carry what it delivers and somewhat more. With a long queue or heavy loss,
/// it delivers what it can carry.
#[derive(Debug)]
pub(super) struct LinkCapacityEstimator {
    /// The number of the next packet.
    next: SeqNo,
    /// Bytes of the headers of a packet.
    overhead: usize,
    flight: VecDeque<Sent>,
    /// The number of messages at the front of `flight` whose overdue ACK was handled.
    handled: usize,
    /// The estimate of the capacity, bytes per second.
    rate: f64,
    /// The mean rate of delivery, bytes per second; `None` before the first measurement.
    delivered: Option<f64>,
    /// The mean share of lost bytes.
    loss: f64,
    /// When the link was last full.
    full: Option<Instant>,
    measuring: Option<CapacitySample>,
    least: Least,
    /// The virtual time: seconds of its capacity that the link has been given.
    pub(super) served: f64,
}

/// Bytes that were acknowledged, or lost, since `from`.
#[derive(Debug)]
struct CapacitySample {
    from: Instant,
    delivered: usize,
    lost: usize,
    round_trip: Option<Duration>,
}

/// The least round trip of the last ten to twenty seconds.
#[derive(Debug, Default)]
struct Least {
    since: Instant,
    now: Option<Duration>,
    before: Option<Duration>,
}

impl LinkCapacityEstimator {
    /// An estimator for a link whose packets begin with `next` and have `overhead` bytes of
    /// headers.
    pub(super) fn new(next: SeqNo, served: f64, overhead: usize) -> Self {
        Self {
            next,
            overhead,
            flight: VecDeque::new(),
            handled: 0,
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

    /// Notes a message that is sent over the link now. Returns the sequence number of its packet.
    pub(super) fn send(&mut self, now: Instant, msgno: MsgNo, size: usize) -> SeqNo {
        let seq = self.next;
        self.next = seq.next();
        if self.flight.is_empty() {
            // A pause of the sender must not count as slow delivery.
            self.measuring = None;
        }
        self.flight.push_back(Sent { msgno, at: now, size, lost: false });
        seq
    }

    /// Takes in an ACK of all numbers before the one in `status`. Calls `delivered` for each
    /// message that arrived. `level` is the highest estimate in the group.
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
            let measuring = self.measuring.get_or_insert(CapacitySample {
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
            self.handled = self.handled.saturating_sub(1);
        }
        if let (Some(at), Some(measuring)) = (newest, &mut self.measuring) {
            let sample = now.saturating_since(at);
            measuring.round_trip =
                Some(measuring.round_trip.map_or(sample, |least| least.min(sample)));
            self.least.take(now, sample);
        }
        self.measure(now, status.rtt.smoothed, level);
    }

    /// The packet `seq` was reported lost. Returns its message, if it was in flight and not
    /// reported before.
    pub(super) fn lose(&mut self, seq: SeqNo) -> Option<MsgNo> {
        let first = self.next.minus(u32::try_from(self.flight.len()).ok()?);
        let sent = self.flight.get_mut(usize::try_from(seq.distance_from(first)).ok()?)?;
        (!std::mem::replace(&mut sent.lost, true)).then_some(sent.msgno)
    }

    /// The oldest message in flight whose overdue ACK was not handled yet.
    pub(super) fn waiting(&self) -> Option<&Sent> {
        self.flight.get(self.handled)
    }

    /// Marks the overdue ACK of the message that `waiting` returns as handled.
    pub(super) const fn pass_over(&mut self) {
        self.handled += 1;
    }

    /// The messages in flight.
    pub(super) fn flight(&self) -> impl Iterator<Item = MsgNo> {
        self.flight.iter().filter(|sent| !sent.lost).map(|sent| sent.msgno)
    }

    /// The estimate of the capacity, bytes per second.
    pub(super) const fn rate(&self) -> f64 {
        self.rate
    }

    /// Starts over after an outage, with a low estimate.
    pub(super) fn restart(&mut self, served: f64) {
        self.rate = self.rate.min(FIRST_RATE);
        self.delivered = None;
        self.loss = 0.0;
        self.full = None;
        self.measuring = None;
        self.served = served;
    }

    /// Evaluates the measurement if it is long enough.
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
                self.rate = mean * GROWTH;
            } else if self.full.is_none_or(|at| now.saturating_since(at) > NOT_FULL_FOR) {
                self.rate = self.rate.max(level.min(self.rate * LEVELLING_STEP));
            }
        }
        self.rate = self.rate.max(LEAST_RATE);
        self.delivered = Some(mean);
        self.measuring =
            Some(CapacitySample { from: now, delivered: 0, lost: 0, round_trip: None });
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

    /// Sends a packet of 1,250 bytes every `interval` ms for two seconds over a link with a delay
    /// of `delay` ms that carries a packet every `service` ms. An ACK comes every 10 ms, and every
    /// `lossy`th packet is lost.
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
    fn a_link_without_a_queue_is_estimated_above_its_delivery_rate() {
        // It delivers 5 Mb/s.
        let rate = run(2, 1, 20, usize::MAX).rate() * 8.0;
        assert!((5_500_000.0..8_000_000.0).contains(&rate), "{rate}");
    }

    #[test]
    fn a_link_with_a_queue_is_full() {
        // It is offered 10 Mb/s and delivers 5.
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
