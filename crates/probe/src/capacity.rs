//! Whether the capacity of a link that packet pairs tell is plausible.

use punctual_units::Bitrate;

use crate::measurement::{Limit, Unmeasured};

/// The capacity that pairs of packets told, or why it is not plausible. Pairs may have been kept
/// together on the way, for example by a radio link that repeats a packet and holds back the next
/// one, or by a host that hands over several packets at once; then they do not tell the capacity.
pub(crate) fn plausible(
    told: Bitrate,
    usable: Option<Bitrate>,
    limit: Limit,
) -> Result<Bitrate, Unmeasured> {
    let too_much = match limit {
        Limit::Congested { at, .. } => Some(at),
        Limit::MaxRate | Limit::Time | Limit::Stopped => None,
    };
    let twice = |rate: Bitrate| Bitrate::from_bits_per_sec(rate.as_bits_per_sec() * 2);
    let why = if told == Bitrate::ZERO {
        "no two packets that were sent together arrived apart"
    } else if told > TIMED {
        "packets that were sent together arrived closer to each other than can be timed"
    } else if too_much.is_some_and(|rate| told > twice(rate)) {
        "packets arrived in clusters: the pairs show more than twice the rate that was too much"
    } else if usable.is_some_and(|usable| told < usable) {
        "pairs were separated on the way: they show less than the rate that the link carried"
    } else {
        return Ok(told);
    };
    Err(Unmeasured { what: "capacity", why })
}

/// Above this rate the packets of a pair are less than about 20 µs apart, and a program that shares
/// its machine with others does not know their arrival more exactly.
const TIMED: Bitrate = Bitrate::from_mbps(600);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::Congestion;

    #[test]
    fn a_capacity_is_plausible_only_within_the_rates_that_were_tried() {
        let mbps = Bitrate::from_mbps;
        let congested =
            |at| Limit::Congested { at: mbps(at), sign: Congestion::Loss { share: 0.1 } };
        let tried = |told, usable, limit| {
            plausible(told, Some(mbps(usable)), limit).map_err(|missing| missing.why)
        };
        assert_eq!(tried(mbps(21), 16, congested(25)), Ok(mbps(21)));
        assert_eq!(tried(mbps(45), 16, Limit::MaxRate), Ok(mbps(45)));
        for (told, limit, part) in [
            (mbps(7_180), congested(25), "closer to each other than can be timed"),
            (mbps(7_180), Limit::MaxRate, "closer to each other than can be timed"),
            (mbps(80), congested(25), "arrived in clusters"),
            (mbps(10), congested(25), "separated"),
            (Bitrate::ZERO, Limit::Time, "arrived apart"),
        ] {
            let why = tried(told, 16, limit).unwrap_err();
            assert!(why.contains(part), "{told}: {why}");
        }
    }
}
