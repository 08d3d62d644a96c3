//! Estimates as they are written in tables.

use crate::results::Estimate;

/// A value with its interval, to as many digits as the interval leaves certain.
pub(super) fn estimate(estimate: &Estimate) -> String {
    let value = estimate.value;
    let Some((low, high)) = estimate.interval.filter(|(low, high)| high > low) else {
        return four_digits(value);
    };
    let half = (high - low) / 2.0;
    let decimals = decimals_for(half, 2);
    let text = |number: f64| written(number, decimals);
    // A mean lies in the middle of its interval, a share near zero does not.
    let lopsided = (high + low - 2.0 * value).abs() > 0.1 * half;
    if lopsided {
        format!("{} ({} to {})", text(value), text(low), text(high))
    } else {
        format!("{} ± {}", text(value), text(half))
    }
}

/// A value alone. Zeros at its end would claim digits that were perhaps never printed.
pub(super) fn four_digits(value: f64) -> String {
    let text = written(value, decimals_for(value.abs(), 4));
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Half the width of an interval, as it stands behind the value.
pub(super) fn half(estimate: &Estimate) -> Option<String> {
    let (low, high) = estimate.interval.filter(|(low, high)| high > low)?;
    let half = (high - low) / 2.0;
    Some(written(half, decimals_for(half, 2)))
}

/// The value of an estimate, to as many digits as its interval leaves certain.
pub(super) fn value(estimate: &Estimate) -> String {
    match estimate.interval.filter(|(low, high)| high > low) {
        Some((low, high)) => written(estimate.value, decimals_for((high - low) / 2.0, 2)),
        None => four_digits(estimate.value),
    }
}

/// Decimals that give `number` so many significant digits.
fn decimals_for(number: f64, digits: usize) -> usize {
    if number == 0.0 || !number.is_finite() {
        return 0;
    }
    let mut decimals = digits - 1;
    let mut scaled = number;
    while scaled < 0.9999 && decimals < 9 {
        scaled *= 10.0;
        decimals += 1;
    }
    while scaled >= 10.0 && decimals > 0 {
        scaled /= 10.0;
        decimals -= 1;
    }
    decimals
}

fn written(number: f64, decimals: usize) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{number:.decimals$}");
    // Minus zero is zero.
    let is_zero = text.bytes().all(|byte| b"-0.".contains(&byte));
    let text = if is_zero { text.trim_start_matches('-').to_owned() } else { text };
    text.strip_prefix('-').map_or_else(|| text.clone(), |rest| format!("−{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: f64, interval: Option<(f64, f64)>) -> String {
        estimate(&Estimate { value, interval, runs: 1 })
    }

    #[test]
    fn digits_end_where_the_interval_begins() {
        assert_eq!(shown(9.411_23, Some((9.31, 9.512))), "9.41 ± 0.10");
        assert_eq!(shown(0.0212, Some((0.0113, 0.0363))), "0.021 (0.011 to 0.036)");
        assert_eq!(shown(0.0, Some((0.0, 0.0065))), "0 (0 to 0.0065)");
        assert_eq!(shown(-0.5, Some((-0.6, -0.4))), "−0.50 ± 0.10");
        assert_eq!(shown(120_000.0, Some((119_000.0, 121_000.0))), "120000 ± 1000");
    }

    #[test]
    fn a_value_alone_has_four_digits() {
        assert_eq!(shown(9.445, None), "9.445");
        assert_eq!(shown(0.0088, None), "0.0088");
        assert_eq!(shown(0.0, None), "0");
        assert_eq!(shown(1234.5, Some((3.0, 3.0))), "1234");
    }
}
