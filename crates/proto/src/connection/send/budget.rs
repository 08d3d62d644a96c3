use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::agreed_time::AgreedTime;
use crate::config::{Config, MaxBandwidth, RetransmitBandwidth};
use crate::handshake::Negotiated;

/// The largest burst after a pause, as a time at the given rate.
const BURST: Duration = Duration::from_millis(100);
/// The margin for errors of the peer's time base and drift.
const MARGIN: Duration = Duration::from_millis(20);
/// The automatic rate is at most the input's divided by this. A stream that loses a third of its
/// packets needs half its rate for retransmissions; a link that loses more for long has collapsed,
/// and retransmissions would displace originals.
const MOST: u64 = 2;
/// The automatic rate is at least the input's divided by this, even if the maximum bandwidth is not
/// above the input: a twentieth of the stream may be lost.
const LEAST: u64 = 20;

/// A limit on the rate of retransmissions alone (`maxrexmitbw`); a rate of zero allows none.
#[derive(Debug)]
pub(crate) struct RetransmitBudget {
    limit: BudgetLimit,
    next: Instant,
}

#[derive(Debug)]
enum BudgetLimit {
    /// Automatic, by the input's rate. The burst after an outage as long as the latency is allowed.
    Auto {
        latency: AgreedTime,
    },
    Rate(Bitrate),
}

/// The rate of the input, and the rate at which the sender may send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rates {
    /// `None` while it is unknown.
    pub(crate) input: Option<Bitrate>,
    /// The maximum bandwidth.
    pub(crate) limit: Bitrate,
}

impl RetransmitBudget {
    /// The limit by these options; `None` without one.
    pub(super) fn of(config: &Config, negotiated: &Negotiated) -> Option<Self> {
        Self::new(
            config.max_retransmit_bandwidth(),
            negotiated.peer.too_late_drop && config.max_bandwidth() != MaxBandwidth::Unlimited,
            &negotiated.latency.peer,
        )
    }

    /// The budget of the option; `None` for no limit. The automatic limit applies (`applies`) if
    /// there is a maximum bandwidth and the peer drops late packets; otherwise every packet must
    /// arrive, also late. `latency` is the peer's.
    pub(crate) fn new(
        option: RetransmitBandwidth,
        applies: bool,
        latency: &AgreedTime,
    ) -> Option<Self> {
        let limit = match option {
            RetransmitBandwidth::Auto if applies => BudgetLimit::Auto { latency: latency.clone() },
            RetransmitBandwidth::Auto | RetransmitBandwidth::Unlimited => return None,
            RetransmitBandwidth::Absolute(rate) => BudgetLimit::Rate(rate),
        };
        Some(Self { limit, next: Instant::ORIGIN })
    }

    /// Takes over the spending of `before`.
    pub(crate) const fn continue_from(&mut self, before: &Self) {
        self.next = before.next;
    }

    /// The instant at which the next retransmission may be sent; `None` for never.
    pub(crate) fn next(&self) -> Option<Instant> {
        match self.limit {
            BudgetLimit::Rate(Bitrate::ZERO) => None,
            BudgetLimit::Rate(_) | BudgetLimit::Auto { .. } => Some(self.next),
        }
    }

    /// Whether a packet of this origin would arrive too late to be played. A budget makes losses
    /// wait, and must not be spent on losses that have waited too long.
    pub(crate) fn is_wasted_on(&self, now: Instant, origin: Instant) -> bool {
        let BudgetLimit::Auto { latency } = &self.limit else { return false };
        now > latency.after(origin) + MARGIN
    }

    /// A retransmission of this number of bytes was sent at `now`.
    pub(crate) fn sent(&mut self, now: Instant, bytes: usize, rates: Rates) {
        let Some((rate, burst)) = self.allowance(rates) else { return };
        self.next = self.next.max(now - burst) + rate.time_for(bytes as u64);
    }

    /// The highest lasting rate of retransmissions; `None` for no limit.
    pub(crate) fn rate(&self, rates: Rates) -> Option<Bitrate> {
        self.allowance(rates).map(|(rate, _)| rate)
    }

    /// The rate, and the longest time for which it is saved up; `None` for no limit.
    fn allowance(&self, rates: Rates) -> Option<(Bitrate, Duration)> {
        let latency = match &self.limit {
            BudgetLimit::Rate(rate) => return Some((*rate, BURST)),
            BudgetLimit::Auto { latency } => latency,
        };
        let input = rates.input?.as_bits_per_sec();
        let above = rates.limit.as_bits_per_sec().saturating_sub(input);
        let rate = above.min(input / MOST).max(input / LEAST).max(1);
        // A latency's worth of input, at the rate.
        let burst = latency.get().mul_f64((input as f64 / rate as f64).min(LEAST as f64));
        Some((Bitrate::from_bits_per_sec(rate), burst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    const ORIGIN: Instant = Instant::from_millis(1_000);
    const NO_INPUT: Rates = Rates { input: None, limit: Bitrate::ZERO };

    fn mbps(input: u64, limit: u64) -> Rates {
        Rates { input: Some(Bitrate::from_mbps(input)), limit: Bitrate::from_mbps(limit) }
    }

    fn automatic(latency: Duration) -> RetransmitBudget {
        RetransmitBudget::new(RetransmitBandwidth::Auto, true, &AgreedTime::new(latency))
            .expect("a limit is known")
    }

    /// Bytes that go out in this time, in pieces of 1000.
    fn spent(budget: &mut RetransmitBudget, from: u64, to: u64, rates: Rates) -> usize {
        let mut bytes = 0;
        for ms in from..to {
            let now = Instant::from_millis(ms);
            while budget.next().is_some_and(|at| at <= now) {
                budget.sent(now, 1_000, rates);
                bytes += 1_000;
            }
        }
        bytes
    }

    #[test]
    fn a_second_of_retransmissions_stays_within_a_given_rate() {
        let rate = |rate| RetransmitBudget::new(rate, false, &AgreedTime::new(MS(120)));
        let given = RetransmitBandwidth::Absolute(Bitrate::from_bytes_per_sec(100_000));
        let bytes = spent(&mut rate(given).expect("a limit"), 1_000, 2_000, NO_INPUT);
        assert!((100_000..=111_000).contains(&bytes), "{bytes}");
        let none = rate(RetransmitBandwidth::Absolute(Bitrate::ZERO)).expect("a limit");
        assert_eq!(none.next(), None);
        assert!(rate(RetransmitBandwidth::Unlimited).is_none());
        assert!(rate(RetransmitBandwidth::Auto).is_none(), "no maximum bandwidth is known");
    }

    #[test]
    fn the_automatic_limit_is_what_is_left_within_bounds_by_the_input() {
        let rate = |rates| automatic(MS(120)).allowance(rates).expect("the input is known").0;
        assert_eq!(rate(mbps(8, 10)), Bitrate::from_mbps(2), "what the maximum leaves");
        assert_eq!(rate(mbps(8, 100)), Bitrate::from_mbps(4), "half the input at most");
        assert_eq!(rate(mbps(20, 20)), Bitrate::from_mbps(1), "a twentieth at least");
        assert!(automatic(MS(120)).allowance(Rates { input: None, ..mbps(8, 8) }).is_none());
    }

    #[test]
    fn an_outage_as_long_as_the_latency_is_made_up_for_at_once() {
        // 8 Mb/s are 1000 bytes a millisecond.
        for limit in [8, 10, 100] {
            let mut budget = automatic(MS(200));
            let rates = mbps(8, limit);
            let at_once = spent(&mut budget, 100_000, 100_001, rates);
            assert!((200_000..=202_000).contains(&at_once), "{at_once} at {limit} Mb/s");
        }
        let mut budget = automatic(MS(200));
        let long = spent(&mut budget, 100_000, 110_000, mbps(8, 100));
        assert!((5_200_000..=5_202_000).contains(&long), "200 ms, and half of ten seconds: {long}");
    }

    #[test]
    fn a_latency_that_changes_moves_the_age_of_wasted_retransmissions() {
        let latency = AgreedTime::new(MS(120));
        let budget = RetransmitBudget::new(RetransmitBandwidth::Auto, true, &latency);
        let budget = budget.expect("a limit is known");
        let is_wasted = |age: u64| budget.is_wasted_on(Instant::from_millis(1_000 + age), ORIGIN);
        assert!(!is_wasted(140) && is_wasted(141));
        latency.set(MS(300));
        assert!(!is_wasted(320) && is_wasted(321));
    }
}
