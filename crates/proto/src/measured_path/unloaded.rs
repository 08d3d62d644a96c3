use std::time::Duration;

use punctual_units::Instant;

use super::least_round_trip::LeastRoundTrip;

/// The round trip of a path without a queue, also of a path that becomes longer.
///
/// It is the least round trip of ten minutes, unless the path has become longer: then the
/// difference looks like a queue that never ends. A queue of others moves, and senders by delay of
/// this implementation empty theirs every ten seconds. So the least round trips of successive
/// seconds tell the path: if they have been long for twelve seconds, and have either hardly moved
/// or moved slowly, there is no queue.
///
/// A queue that stays full hardly moves, too, but it loses packets as long as it is full.
#[derive(Debug, Default)]
pub(super) struct UnloadedRoundTrip {
    least: LeastRoundTrip,
    /// The round trip without a queue since the path became longer.
    longer: Option<Duration>,
    second: Option<CurrentSecond>,
    steady: Option<SteadySeconds>,
    /// The packets of seconds without a queue.
    calm: Packets,
}

/// Packets that were sent, and those among them that were reported lost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Packets {
    sent: u64,
    lost: u64,
}

/// The second under way.
#[derive(Clone, Copy, Debug)]
struct CurrentSecond {
    began: Instant,
    least: Duration,
    /// The totals when it began.
    before: Packets,
}

/// A time in which there seems to be no queue that moves.
#[derive(Clone, Copy, Debug)]
struct SteadySeconds {
    seconds: u32,
    least: Duration,
    most: Duration,
    /// The least round trip of the last second.
    last: Duration,
    /// Whether each second's round trip was close to that of the one before.
    moves_slowly: bool,
    packets: Packets,
}

const SECOND: Duration = Duration::from_secs(1);
/// The duration of a steady round trip in seconds: longer than the time between two drains of the
/// queue by a sender by delay.
const STEADY: u32 = 12;
/// A path wanders by less than this in a second. The queue of a connection of TCP grows by a packet
/// in a round trip at least: by 1.2 ms in a second at 50 Mb/s and 200 ms.
const SLOW: Duration = Duration::from_micros(500);
/// A round trip hardly moves if it moves by less than this share of the apparent queueing delay.
const SPREAD: u32 = 8;
/// There is no queue in a second whose least round trip is longer by less than this.
const SHORT: Duration = Duration::from_millis(2);
/// The share of lost packets varies by this multiple, and by one in this number.
const LOSS_FACTOR: u64 = 2;
const LOSS_MARGIN: u64 = 200;
/// Packets after which the losses of seconds without a queue have half the weight.
const CALM_PACKETS: u64 = 8_192;

impl UnloadedRoundTrip {
    /// Takes in a round trip; `totals` counts since the connection began.
    pub(super) fn sample(&mut self, now: Instant, rtt: Duration, totals: Packets) {
        self.least.sample(now, rtt);
        self.longer = self.longer.map(|longer| longer.min(rtt));
        let begins = CurrentSecond { began: now, least: rtt, before: totals };
        let second = self.second.get_or_insert(begins);
        if now < second.began + SECOND {
            second.least = second.least.min(rtt);
            return;
        }
        let ended = std::mem::replace(second, begins);
        if now >= ended.began + 2 * SECOND {
            // Samples are missing: the stream has paused.
            self.steady = None;
            return;
        }
        let packets = Packets {
            sent: totals.sent - ended.before.sent,
            lost: totals.lost - ended.before.lost,
        };
        self.follow(ended.least, packets);
        // The path may have become shorter just now.
        self.longer = self.longer.map(|longer| longer.min(rtt));
    }

    /// The least round trip of the last ten minutes with samples; zero before the first.
    pub(super) fn least(&self) -> Duration {
        self.least.get()
    }

    /// The round trip without a queue; zero before the first sample.
    pub(super) fn get(&self) -> Duration {
        let least = self.least.get();
        self.longer.map_or(least, |longer| longer.max(least))
    }

    /// A second with this least round trip has ended.
    fn follow(&mut self, rtt: Duration, packets: Packets) {
        let base = self.get();
        if rtt <= base + SHORT {
            self.calm.add(packets);
            if self.calm.sent > CALM_PACKETS {
                self.calm = Packets { sent: self.calm.sent / 2, lost: self.calm.lost / 2 };
            }
        }
        let begins = SteadySeconds {
            seconds: 1,
            least: rtt,
            most: rtt,
            last: rtt,
            moves_slowly: true,
            packets,
        };
        let Some(mut steady) = self.steady.replace(begins) else { return };
        steady.moves_slowly &= rtt.abs_diff(steady.last) <= SLOW;
        steady.least = steady.least.min(rtt);
        steady.most = steady.most.max(rtt);
        let spread = steady.most - steady.least;
        let hardly_moves = spread <= steady.least.saturating_sub(base) / SPREAD;
        if !steady.moves_slowly && !hardly_moves {
            return;
        }
        steady.seconds += 1;
        steady.last = rtt;
        steady.packets.add(packets);
        let loses_more = steady.packets.lost_beyond(self.calm);
        if steady.seconds >= STEADY && !loses_more {
            self.longer = Some(if steady.moves_slowly { rtt } else { steady.least });
        }
        if steady.seconds >= STEADY {
            // Losses of long ago say nothing of the present queue.
            steady.seconds = STEADY - 1;
            steady.packets = steady.packets.less(steady.packets.sent / u64::from(STEADY));
        }
        self.steady = Some(steady);
    }
}

impl Packets {
    /// This number of packets, of which `lost` were reported lost.
    pub(crate) const fn new(sent: u64, lost: u64) -> Self {
        Self { sent, lost }
    }

    const fn add(&mut self, packets: Self) {
        self.sent += packets.sent;
        self.lost += packets.lost;
    }

    /// Without this number of packets, with the same share of losses.
    fn less(self, sent: u64) -> Self {
        let left = self.sent - sent;
        let lost = (self.lost * left).checked_div(self.sent).unwrap_or(0);
        Self { sent: left, lost }
    }

    /// Whether a larger share of packets is lost than is usual.
    const fn lost_beyond(self, usual: Self) -> bool {
        let usual_sent = if usual.sent == 0 { 1 } else { usual.sent };
        self.lost * usual_sent * LOSS_MARGIN
            > self.sent * (LOSS_FACTOR * usual.lost * LOSS_MARGIN + usual_sent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The round trip without a queue after this time, by the round trip in microseconds and the
    /// packets of a hundred that are lost, at each millisecond.
    fn after(seconds: u64, path: impl Fn(u64) -> (u64, u64)) -> Duration {
        let mut unloaded = UnloadedRoundTrip::default();
        let mut totals = Packets::default();
        for ms in (0..=seconds * 1_000).step_by(10) {
            let (micros, lost) = path(ms);
            totals.add(Packets { sent: 100, lost });
            let rtt = Duration::from_micros(micros);
            unloaded.sample(Instant::from_millis(ms), rtt, totals);
        }
        unloaded.get()
    }

    #[test]
    fn a_path_that_became_longer_is_found_after_13_seconds() {
        let longer = |ms| (if ms < 5_500 { 40_000 } else { 55_000 + ms % 7 * 100 }, 1);
        assert_eq!(after(17, longer), MS(40));
        assert_eq!(after(20, longer), MS(55));
    }

    #[test]
    fn a_path_that_became_shorter_is_found_at_once() {
        let shorter = |ms| (if ms < 30_000 { 55_000 } else { 40_000 }, 1);
        assert_eq!(after(30, shorter), MS(40));
    }

    #[test]
    fn a_path_that_wanders_slowly_is_followed() {
        let wander = |ms| (40_000 + 450 * ms / 1_000, 2);
        let found = after(60, wander);
        assert!(MS(40 + 27) - found < MS(1), "{found:?}");
    }

    #[test]
    fn a_queue_that_moves_stays_a_queue() {
        let of_tcp = |ms| (50_000 + ms % 20_000 * 2, 0);
        let of_bursts = |ms| (if ms % 5_000 < 4_500 { 40_000 } else { 90_000 }, 0);
        assert_eq!(after(120, |ms| if ms == 0 { (40_000, 0) } else { of_tcp(ms) }), MS(40));
        assert_eq!(after(120, of_bursts), MS(40));
    }

    #[test]
    fn a_queue_that_stays_full_stays_a_queue() {
        let full = |ms| (if ms < 3_000 { 40_000 } else { 140_000 }, if ms < 3_000 { 1 } else { 4 });
        assert_eq!(after(300, full), MS(40));
    }
}
