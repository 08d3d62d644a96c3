//! The limit on new callers a second.

use std::collections::BTreeMap;
use std::time::Duration;

use punctual_units::Instant;

use super::allowance::CallAllowance;
use crate::path::Host;

/// The new callers that a listener admits a second, limited so that a flood of them cannot keep it
/// from its connections. A caller that is not admitted repeats its request, and may be admitted
/// then.
///
/// A network of which several callers were admitted cannot use up a reserve for other networks.
#[derive(Debug)]
pub(super) struct Admission {
    allowance: CallAllowance,
    reserve: u32,
    /// The start of the present period.
    since: Instant,
    /// Callers that were admitted in this period, by network. Bounded by the allowance.
    taken: BTreeMap<Host, u32>,
}

impl Admission {
    /// A limit of `per_second` callers, a quarter of them at once.
    pub(super) fn new(now: Instant, per_second: u32) -> Self {
        let burst = (per_second / 4).max(1);
        let allowance = CallAllowance::new(now, per_second, burst);
        Self { allowance, reserve: burst / 2, since: now, taken: BTreeMap::new() }
    }

    /// Whether a caller from `host` is admitted now.
    pub(super) fn admits(&mut self, now: Instant, host: Host) -> bool {
        if now.saturating_since(self.since) >= PERIOD {
            self.since = now;
            self.taken.clear();
        }
        let network = host.network();
        let taken = self.taken.get(&network).copied().unwrap_or_default();
        let reserve = if taken < FEW { 0 } else { self.reserve };
        let admitted = self.allowance.take(now, reserve);
        if admitted {
            self.taken.insert(network, taken + 1);
        }
        admitted
    }
}

/// The period over which the callers of a network are counted.
const PERIOD: Duration = Duration::from_secs(1);
/// Callers of one network in that period that may use the reserve.
const FEW: u32 = 8;

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const START: Instant = Instant::from_millis(9_000);

    fn from(host: u8) -> Host {
        Host::Ip([192, 0, 2, host].into())
    }

    /// Callers taken of a flood from one address, 20 a millisecond, and of callers from other
    /// addresses, one each 20 ms.
    fn flood(millis: u64) -> (u32, u32) {
        let mut admission = Admission::new(START, 1_000);
        let (mut taken, mut others) = (0, 0);
        for millis in 0..millis {
            let now = START + Duration::from_millis(millis);
            for _ in 0..20 {
                taken += u32::from(admission.admits(now, from(1)));
            }
            if millis % 20 == 0 {
                let host = u8::try_from(2 + millis / 20 % 50).expect("it is below 52");
                others += u32::from(admission.admits(now, from(host)));
            }
        }
        (taken, others)
    }

    #[test]
    fn of_a_flood_no_more_callers_are_taken_than_allowed() {
        let (taken, others) = flood(10_000);
        assert!((9_000..=10_250).contains(&(taken + others)), "{taken} and {others}");
    }

    #[test]
    fn a_flood_from_one_address_does_not_keep_others_out() {
        let (_, others) = flood(10_000);
        assert_eq!(others, 500);
    }

    #[test]
    fn many_callers_of_one_address_come_in_within_a_second() {
        let mut admission = Admission::new(START, 1_000);
        let mut left = 700;
        // All repeat their requests at the same times.
        for millis in [0, 20, 60, 140, 300, 550, 800, 1_050] {
            let now = START + Duration::from_millis(millis);
            left = (0..left).filter(|_| !admission.admits(now, from(1))).count();
        }
        assert_eq!(left, 0);
    }

    #[test]
    fn the_number_of_addresses_in_memory_is_bounded() {
        let mut admission = Admission::new(START, 1_000);
        for number in 0..200_000_u32 {
            let now = START + Duration::from_micros(50 * u64::from(number));
            admission.admits(now, Host::Ip(Ipv4Addr::from(number).into()));
            assert!(admission.taken.len() <= 1_250);
        }
    }
}
