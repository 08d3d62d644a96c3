//! Pauses between calls that end by chance: callers that lose their server at the same time do not
//! all call it again at the same time.

use std::time::Duration;

/// This pause, or by chance up to half as long again.
pub(crate) fn spread(pause: Duration) -> Duration {
    // Without randomness there is no spread.
    let random = getrandom::u32().unwrap_or_default();
    pause + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn pauses_differ_and_are_up_to_half_as_long_again() {
        let pause = Duration::from_secs(1);
        let pauses: HashSet<_> = (0..50).map(|_| spread(pause)).collect();
        assert!(pauses.len() > 25, "{pauses:?}");
        assert!(pauses.iter().all(|it| (pause..=pause * 3 / 2).contains(it)), "{pauses:?}");
        assert_eq!(spread(Duration::ZERO), Duration::ZERO);
    }
}
