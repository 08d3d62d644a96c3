//! How much a viewer's connection may have on its way.

use std::collections::VecDeque;
use std::time::Duration;

use punctual_units::{Bitrate, Instant};

/// The state of a viewer's link, by the viewer's connection.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ViewerLink {
    /// Bytes that were sent, or wait to be sent, and that the viewer has not acknowledged.
    pub unacknowledged: u64,
    /// Bytes that were given up since the start because they would have come too late.
    pub dropped: u64,
    /// The age of the oldest of them.
    pub oldest: Duration,
    /// The round trip that packets take at present.
    pub round_trip: Duration,
    /// The viewer's latency.
    pub latency: Duration,
    /// Packets since the start that the viewer has to do without: they were lost, and it was too
    /// late to send them again.
    pub missed: u64,
}

/// Limits what is on its way to one viewer while the viewer's link carries less than the stream.
///
/// A live stream is sent at its own rate, whatever the link carries. On a link that carries less, a
/// queue grows until each packet comes too late, and the viewer sees no whole picture. So there is
/// a limit from the moment when the oldest packet is older than a round trip and the latency, or
/// when the viewer misses a packet for good while the round trip shows a queue. The limit grows
/// with what the viewer acknowledges, until the round trip shows a queue of a third of the latency;
/// then it becomes what the link carries in the least round trip and that time.
#[derive(Debug, Default)]
pub(super) struct ViewerFlow {
    link: ViewerLink,
    /// The least round trip: that without a queue.
    least: Lately<Duration>,
    /// The largest rate: that of the link, unless less was to be sent.
    best: Lately<Bitrate>,
    /// Bytes that were handed over since the start.
    handed: u64,
    /// When the link was looked at last.
    looked: Option<Instant>,
    /// The time in which something was on its way: the link's rate shows in no other time.
    busy: Duration,
    /// After how much of this time how many bytes were acknowledged: the looks of its last second.
    looks: VecDeque<(Duration, u64)>,
    /// The limit of unacknowledged bytes, while there is one.
    limit: Option<u64>,
}

impl ViewerFlow {
    /// Notes a look at the link. Returns whether a limited viewer has to do without a packet.
    pub(super) fn observe(&mut self, now: Instant, link: ViewerLink) -> bool {
        let least = self.least.note(now, link.round_trip, Duration::min);
        if self.link.unacknowledged > 0 {
            self.busy += self.looked.map_or(Duration::ZERO, |looked| now.saturating_since(looked));
        }
        self.looked = Some(now);
        let acknowledged = self.handed.saturating_sub(link.unacknowledged + link.dropped);
        let before = self.looks.back().map_or(0, |look| look.1);
        match self.looks.back_mut() {
            Some(look) if look.0 == self.busy => look.1 = acknowledged,
            _ => self.looks.push_back((self.busy, acknowledged)),
        }
        while self.looks.front().is_some_and(|(at, _)| self.busy.saturating_sub(*at) > SPAN) {
            self.looks.pop_front();
        }
        let has_missed = link.missed > self.link.missed;
        let was_limited = self.limit.is_some();
        let was_full = !self.has_room();
        self.link = link;
        if has_missed || link.round_trip > least + link.latency {
            // The link carries less than before.
            self.best = Lately::default();
        }
        let rate = self.rate();
        let rate = rate.map_or(Bitrate::ZERO, |rate| self.best.note(now, rate, Bitrate::max));
        let queue = (link.latency.saturating_sub(least) / 3).max(LEAST_QUEUE);
        let has_queue = link.round_trip > least + queue;
        // Packets that are missed without a queue are lost on a link that carries the stream.
        let is_slow = link.oldest > least + link.latency + MARGIN || has_missed && has_queue;
        match self.limit {
            Some(limit) if !has_queue => {
                let more = if was_full { acknowledged.saturating_sub(before) } else { 0 };
                self.limit = Some(limit + more / GROWTH);
            }
            limit if limit.is_some() || is_slow => {
                let way = nanos(least + queue);
                let carried = rate.as_bytes_per_sec().saturating_mul(way) / 1_000_000_000;
                self.limit = Some(carried.max(LEAST));
            }
            _ => {}
        }
        has_missed && was_limited
    }

    /// The viewer has all of the stream again: its link carries the stream.
    pub(super) fn caught_up(&mut self) {
        self.limit = None;
    }

    /// Whether there is a limit.
    pub(super) const fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// Whether a message may be handed over.
    pub(super) fn has_room(&self) -> bool {
        self.limit.is_none_or(|limit| self.link.unacknowledged < limit)
    }

    /// The time by which messages reach the viewer later than by its latency. A limited viewer has
    /// its latency once more, since a lost packet passes the queue again when it is sent again.
    pub(super) const fn delay(&self) -> Duration {
        if self.is_limited() { self.link.latency } else { Duration::ZERO }
    }

    /// Whether the viewer has acknowledged all, as far as its link is known and limited.
    pub(super) const fn is_settled(&self) -> bool {
        self.limit.is_none() || self.link.unacknowledged == 0
    }

    /// Notes a message that was handed over.
    pub(super) fn hand(&mut self, bytes: usize) {
        self.handed += bytes as u64;
        self.link.unacknowledged += bytes as u64;
    }

    /// Bytes that were handed over since the start.
    pub(super) const fn handed(&self) -> u64 {
        self.handed
    }

    /// The rate at which the viewer acknowledged bytes in the last second in which it got any.
    fn rate(&self) -> Option<Bitrate> {
        let (first, last) = (self.looks.front()?, self.looks.back()?);
        let span = last.0.saturating_sub(first.0);
        (span >= SPAN / 2).then(|| Bitrate::of(last.1.saturating_sub(first.1), span))
    }
}

/// The least or the largest value of the last 5 to 10 s.
#[derive(Debug)]
struct Lately<T> {
    since: Instant,
    current: Option<T>,
    before: Option<T>,
}

impl<T> Default for Lately<T> {
    fn default() -> Self {
        Self { since: Instant::ORIGIN, current: None, before: None }
    }
}

impl<T: Copy> Lately<T> {
    /// Takes a value, and gives that of all which `choose` prefers.
    fn note(&mut self, now: Instant, value: T, choose: fn(T, T) -> T) -> T {
        if now.saturating_since(self.since) > LATELY {
            (self.since, self.before) = (now, self.current.take());
        }
        let current = self.current.map_or(value, |current| choose(current, value));
        self.current = Some(current);
        self.before.map_or(current, |before| choose(before, current))
    }
}

/// Half the time for which a round trip and a rate count, so that a longer path and a slower link
/// are noticed.
const LATELY: Duration = Duration::from_secs(5);

/// A time in nanoseconds; of a link it is far from the largest number.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The time over which the rate of the link is measured.
const SPAN: Duration = Duration::from_secs(1);

/// The age beyond a round trip and the latency at which a packet counts as late: the receiver's
/// ACKs come every 10 ms, and looks are some way apart.
const MARGIN: Duration = Duration::from_millis(50);

/// The least queue that a limit allows.
const LEAST_QUEUE: Duration = Duration::from_millis(20);

/// Without a queue the limit grows by the acknowledged bytes divided by this.
const GROWTH: u64 = 8;

/// The least limit, in bytes: one packet. Two would take longer than the usual latency on a link of
/// 160 kb/s.
const LEAST: u64 = 1_316;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_at_an_idle_link_are_not_kept() {
        let mut flow = ViewerFlow::default();
        for at in 0..1_000 {
            flow.observe(Instant::from_millis(at * 50), ViewerLink::default());
        }
        assert_eq!(flow.looks.len(), 1);
    }
}
