//! Long times for people.

use std::fmt;

/// Prints seconds as `33.5 s`, `24.6 min`, `6.2 h`, `24.4 days` or `1.2 years`, with three digits;
/// `over 1e6 years` and `never` for infinity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DisplayMeanTime(pub f64);

impl fmt::Display for DisplayMeanTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0;
        if seconds.is_infinite() {
            return f.pad("never");
        }
        let (value, unit) = match seconds {
            ..120.0 => (seconds, "s"),
            ..7_200.0 => (seconds / 60.0, "min"),
            ..172_800.0 => (seconds / 3_600.0, "h"),
            ..YEARS_FROM => (seconds / 86_400.0, "days"),
            _ => (seconds / YEAR, "years"),
        };
        if value >= 1e6 {
            return f.pad("over 1e6 years");
        }
        let decimals = match value {
            ..10.0 => 2,
            ..100.0 => 1,
            _ => 0,
        };
        let number = format!("{value:.decimals$}");
        let short = if decimals == 0 { &number } else { number.trim_end_matches('0') };
        f.pad(&format!("{} {unit}", short.trim_end_matches('.')))
    }
}

const YEAR: f64 = 365.25 * 86_400.0;
const YEARS_FROM: f64 = 2.0 * YEAR;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_people_would_use() {
        let shown = |seconds| DisplayMeanTime(seconds).to_string();
        assert_eq!([0.5, 33.53, 90.0].map(shown), ["0.5 s", "33.5 s", "90 s"]);
        assert_eq!(shown(1_473.0), "24.6 min");
        assert_eq!(shown(37_080.0), "10.3 h");
        assert_eq!(shown(24.36 * 86_400.0), "24.4 days");
        assert_eq!(shown(800.0 * 86_400.0), "2.19 years");
        assert_eq!(shown(5e8 * YEAR), "over 1e6 years");
        assert_eq!(shown(f64::INFINITY), "never");
        assert_eq!(format!("{:>8}|", DisplayMeanTime(2.0)), "     2 s|");
    }
}
