//! A limit on retransmissions while retransmitted packets are lost again, against storms.

use std::collections::BTreeSet;
use std::time::Duration;

use punctual_units::{Bitrate, Instant};
use punctual_wire::SeqNo;

use crate::config::{Config, RetransmitBandwidth};
use crate::handshake::Negotiated;

/// The limit of retransmissions while packets are lost again (`maxrexmitbw=auto`).
///
/// If a link has become too slow for the stream, each retransmission is lost as well and is
/// reported again, for as long as the latency: a storm. So further retransmissions and copies keep
/// to the rate of the stream, or to that of the packets that arrive if the peer reports it, the
/// oldest first. While some wait for that, first retransmissions wait with them: they would be lost
/// as well. After an outage nothing waits, and all losses are retransmitted at once.
#[derive(Debug)]
pub(super) struct RepeatLimit {
    /// The instant at which the rate allows the next packet.
    next: Instant,
    /// The packets that wait for that, with their origins.
    waiting: BTreeSet<(Instant, u32)>,
}

/// The rates that limit retransmissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamRates {
    /// The input's rate; `None` while it is unknown.
    pub(super) input: Option<Bitrate>,
    /// The rate that arrives at the peer; `None` if the peer does not report it.
    pub(super) arriving: Option<Bitrate>,
}

/// The least time whose packets may be sent at once. It is a round trip if that is longer, since
/// the peer reports all losses of a round trip together.
const BURST: Duration = Duration::from_millis(100);
/// The number of packets that may be sent at once at any rate.
const LEAST_BURST: u32 = 32;
/// The most packets that wait. Others have to be reported again.
const WAITING: usize = 8_192;
/// The least rate is the input's divided by this, so that a link that carries the stream again is
/// noticed.
const LEAST: u64 = 20;

impl RepeatLimit {
    /// The limit by these options; `None` without one. If the peer drops no late packets, all of
    /// them must arrive.
    pub(super) fn of(config: &Config, negotiated: &Negotiated) -> Option<Self> {
        let is_auto = config.max_retransmit_bandwidth() == RetransmitBandwidth::Auto;
        (is_auto && negotiated.peer.too_late_drop).then(Self::new)
    }

    const fn new() -> Self {
        Self { next: Instant::ORIGIN, waiting: BTreeSet::new() }
    }

    /// A packet of this origin waits until it may be retransmitted.
    pub(super) fn wait(&mut self, origin: Instant, seq: SeqNo) {
        if self.waiting.len() < WAITING {
            self.waiting.insert((origin, seq.value()));
        }
    }

    /// The instant at which a packet that waits may be retransmitted.
    pub(super) fn next(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next)
    }

    /// The oldest packet that waits, if one may be retransmitted at `now`.
    pub(super) fn take(&mut self, now: Instant) -> Option<SeqNo> {
        self.next().filter(|&at| at <= now)?;
        self.waiting.pop_first().map(|(_, seq)| SeqNo::new(seq))
    }

    /// Whether a packet may be retransmitted once more.
    pub(super) fn permits(&self, now: Instant) -> bool {
        self.next <= now
    }

    /// A packet of `bytes` was retransmitted once more over a path with the round trip `rtt`.
    pub(super) fn sent(&mut self, now: Instant, bytes: usize, rates: StreamRates, rtt: Duration) {
        let Some(input) = rates.input else { return };
        let least = Bitrate::from_bits_per_sec((input.as_bits_per_sec() / LEAST).max(1));
        let rate = rates.arriving.unwrap_or(input).max(least);
        let each = rate.time_for(bytes as u64);
        let burst = BURST.max(rtt).max(each.saturating_mul(LEAST_BURST));
        self.next = self.next.max(now - burst) + each;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// Packets of 1000 bytes in the second from `from` on; the input has 8 Mb/s, a packet each
    /// millisecond.
    fn sent(limit: &mut RepeatLimit, from: u64, arriving: Option<u64>, rtt: Duration) -> usize {
        let rates = StreamRates {
            input: Some(Bitrate::from_mbps(8)),
            arriving: arriving.map(Bitrate::from_mbps),
        };
        let mut packets = 0;
        for ms in from..from + 1_000 {
            let now = Instant::from_millis(ms);
            while limit.permits(now) {
                limit.sent(now, 1_000, rates, rtt);
                packets += 1;
            }
        }
        packets
    }

    #[test]
    fn repeats_keep_to_the_rate_of_the_stream_or_of_the_arrivals() {
        // The packets of a second, and those of the burst.
        let cases =
            [(None, 1_100), (Some(16), 2_200), (Some(4), 550), (Some(1), 157), (Some(0), 82)];
        for (arriving, expected) in cases {
            let mut limit = RepeatLimit::new();
            let first = sent(&mut limit, 10_000, arriving, MS(20));
            assert!(first.abs_diff(expected) <= 2, "{first} at {arriving:?} Mb/s");
        }
    }

    #[test]
    fn the_oldest_packet_is_repeated_first() {
        let mut limit = RepeatLimit::new();
        let at = Instant::from_millis;
        limit.next = at(100);
        for ms in [30, 10, 20] {
            limit.wait(at(u64::from(ms)), SeqNo::new(ms));
        }
        assert_eq!((limit.next(), limit.take(at(99))), (Some(at(100)), None));
        let order = [10, 20, 30].map(|ms| Some(SeqNo::new(ms)));
        assert_eq!([limit.take(at(100)), limit.take(at(100)), limit.take(at(100))], order);
        assert_eq!(limit.next(), None);
    }

    #[test]
    fn the_losses_of_a_long_round_trip_are_repeated_at_once() {
        let mut limit = RepeatLimit::new();
        let packets = sent(&mut limit, 10_000, None, MS(600));
        assert!((1_599..=1_602).contains(&packets), "{packets}");
    }
}
