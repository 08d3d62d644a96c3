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
}

/// Limits what is on its way to one viewer while the viewer's link carries less than the stream.
///
/// A live stream is sent at its own rate, whatever the link carries. On a link that carries less, a
/// queue grows until each packet comes too late, and the viewer sees no whole picture. So from the
/// moment when the oldest packet is older than a round trip and the latency, there is a limit: what
/// the link has carried lately in half the latency and the least round trip. A queue then stays
/// below half the latency, so that packets that are sent have time to arrive.
#[derive(Debug, Default)]
pub(super) struct ViewerFlow {
    link: ViewerLink,
    least: LinkRoundTrip,
    /// Bytes that were handed over since the start.
    handed: u64,
    /// When, and how many bytes were acknowledged by then: the looks of the last second.
    looks: VecDeque<(Instant, u64)>,
    /// The limit of unacknowledged bytes, while there is one.
    limit: Option<u64>,
}

impl ViewerFlow {
    /// Notes a look at the link.
    pub(super) fn observe(&mut self, now: Instant, link: ViewerLink) {
        let least = self.least.observe(now, link, self.limit.is_some());
        let acknowledged = self.handed.saturating_sub(link.unacknowledged + link.dropped);
        self.looks.push_back((now, acknowledged));
        while self.looks.front().is_some_and(|(at, _)| now.saturating_since(*at) > SPAN) {
            self.looks.pop_front();
        }
        self.link = link;
        let is_late = link.oldest > least + link.latency + MARGIN;
        if is_late || self.limit.is_some() {
            let way = least + (link.latency / 2).max(LEAST_QUEUE);
            let carried = self.rate().as_bytes_per_sec().saturating_mul(nanos(way)) / 1_000_000_000;
            self.limit = Some((carried + carried / GROWTH).max(LEAST));
        }
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

    /// Notes a message that was handed over.
    pub(super) fn hand(&mut self, bytes: usize) {
        self.handed += bytes as u64;
        self.link.unacknowledged += bytes as u64;
    }

    /// Bytes that were handed over since the start.
    pub(super) const fn handed(&self) -> u64 {
        self.handed
    }

    /// The rate at which the viewer acknowledged bytes in the last second.
    fn rate(&self) -> Bitrate {
        let (Some(first), Some(last)) = (self.looks.front(), self.looks.back()) else {
            return Bitrate::ZERO;
        };
        let span = last.0.saturating_since(first.0);
        Bitrate::of(last.1.saturating_sub(first.1), span)
    }
}

/// The round trip without the queue.
#[derive(Debug, Default)]
struct LinkRoundTrip {
    since: Instant,
    current: Option<Duration>,
    before: Option<Duration>,
}

impl LinkRoundTrip {
    /// Takes a measured round trip. While nothing is on its way there is no queue, so that the
    /// round trip is the least. Otherwise the least of the last 5 to 10 s counts, so that a longer
    /// path is noticed; but not while the link `is_full`, because the queue then never becomes
    /// empty.
    fn observe(&mut self, now: Instant, link: ViewerLink, is_full: bool) -> Duration {
        if link.unacknowledged == 0 {
            *self = Self { since: now, ..Self::default() };
        } else if !is_full && now.saturating_since(self.since) > LEAST_SPAN {
            (self.since, self.before) = (now, self.current.take());
        }
        let current = self.current.map_or(link.round_trip, |least| least.min(link.round_trip));
        self.current = Some(current);
        self.before.map_or(current, |before| before.min(current))
    }
}

/// Half the time for which a least round trip counts.
const LEAST_SPAN: Duration = Duration::from_secs(5);

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

/// The limit is larger than what the link carried by one part of so many, so that it grows with the
/// link.
const GROWTH: u64 = 4;

/// The least limit, in bytes: one packet. Two would take longer than the usual latency on a link of
/// 160 kb/s.
const LEAST: u64 = 1_316;

#[cfg(test)]
mod tests {
    use super::*;

    /// A link of this rate, in bytes a second, without losses and with a round trip of 20 ms, and a
    /// stream of 625,000 bytes a second to a viewer with 120 ms of latency, in steps of 10 ms.
    /// Returns the flow, and the longest wait in the link's queue in the last half.
    fn run(rate: f64, seconds: u64) -> (ViewerFlow, f64) {
        let (mut flow, mut queue, mut backlog, mut longest) =
            (ViewerFlow::default(), 0.0, 0.0, 0.0_f64);
        let steps = seconds * 100;
        let round_trip = Duration::from_millis(20);
        flow.observe(Instant::ORIGIN, ViewerLink { round_trip, ..ViewerLink::default() });
        for step in 0..steps {
            let now = Instant::from_millis(step * 10);
            backlog += 6_250.0;
            while backlog >= 1_250.0 && flow.has_room() {
                flow.hand(1_250);
                queue += 1_250.0;
                backlog -= 1_250.0;
            }
            // A relay skips what it cannot send.
            backlog = f64::min(backlog, 625_000.0);
            queue = f64::max(queue - rate / 100.0, 0.0);
            let wait = queue / rate;
            let link = ViewerLink {
                unacknowledged: bytes_of(queue),
                dropped: 0,
                oldest: Duration::from_secs_f64(wait),
                round_trip: Duration::from_secs_f64(0.02 + wait),
                latency: Duration::from_millis(120),
            };
            flow.observe(now, link);
            if step > steps / 2 {
                longest = longest.max(wait);
            }
        }
        (flow, longest)
    }

    #[expect(clippy::cast_possible_truncation, reason = "numbers in tests are small")]
    fn bytes_of(queue: f64) -> u64 {
        queue as u64
    }

    #[test]
    fn a_link_that_carries_the_stream_has_no_limit() {
        let (flow, wait) = run(700_000.0, 10);
        assert!(!flow.is_limited());
        assert!(wait < 0.01);
    }

    #[test]
    fn a_link_that_carries_the_stream_is_free_again_after_a_pause() {
        let latency = Duration::from_millis(120);
        let round_trip = Duration::from_millis(1);
        let idle = ViewerLink { round_trip, latency, ..ViewerLink::default() };
        let mut flow = ViewerFlow::default();
        flow.observe(Instant::ORIGIN, idle);
        let stalled =
            ViewerLink { unacknowledged: 50_000, oldest: Duration::from_millis(400), ..idle };
        flow.observe(Instant::from_millis(400), stalled);
        assert!(flow.is_limited());
        let mut handed = 0;
        for now in (410..4_000).step_by(10) {
            flow.observe(Instant::from_millis(now), idle);
            // A viewer waits a second for a place to start.
            let mut wanted = if now < 1_500 { 0 } else { 6_250_u32 };
            while wanted >= 1_250 && flow.has_room() {
                flow.hand(1_250);
                wanted -= 1_250;
                handed += u64::from(now >= 3_000) * 1_250;
            }
        }
        assert!(handed >= 620_000, "{handed} bytes in the last second");
    }

    #[test]
    fn a_link_of_a_tenth_is_filled_and_its_queue_stays_below_the_latency() {
        let (flow, wait) = run(62_500.0, 60);
        assert!(flow.is_limited());
        assert!(wait < 0.120, "{wait}");
        assert!(flow.rate() > Bitrate::from_bytes_per_sec(56_250), "{}", flow.rate());
    }
}
