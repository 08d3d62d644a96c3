//! Estimates as they are written in tables.

use crate::results::interval::Estimate;

/// The estimates of a column, all with as many decimals: those of a typical one, but no more than
/// any of them needs.
pub(super) fn column(estimates: &[Estimate]) -> usize {
    let mut needed: Vec<usize> = estimates.iter().map(needed).collect();
    needed.sort_unstable();
    needed.get(needed.len() / 2).copied().unwrap_or(0)
}

/// The number of decimals of an estimate: as many as its interval leaves certain, or four digits.
fn needed(estimate: &Estimate) -> usize {
    match estimate.interval.filter(|(low, high)| high > low) {
        Some((low, high)) => decimals_for((high - low) / 2.0, 2),
        None => {
            let text = four_digits(estimate.value);
            text.split_once('.').map_or(0, |(_, decimals)| decimals.len())
        }
    }
}

/// A value with its interval, with `decimals` decimals.
pub(super) fn estimate(estimate: &Estimate, decimals: usize) -> String {
    let value = estimate.value;
    let text = |number: f64| with_zeros(number, decimals);
    let Some((low, high)) = estimate.interval.filter(|(low, high)| high > low) else {
        return text(value);
    };
    let bound = |number: f64| rounded(number, decimals);
    let half = (high - low) / 2.0;
    // A mean lies in the middle of its interval; a share near zero does not, nor does the mean of a
    // count whose interval ends at zero.
    let lopsided =
        (high + low - 2.0 * value).abs() > 0.1 * half || (low >= 0.0 && half > value.abs());
    if lopsided {
        format!("{} ({} to {})", text(value), bound(low), bound(high))
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

/// Half the width of an interval, as it is written after the value.
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

/// The number of decimals that give `number` this number of significant digits.
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

/// Several values with equal decimals, so that the least value but zero has two
/// digits.
pub(super) fn alike<const N: usize>(values: [f64; N]) -> [String; N] {
    let decimals = values.iter().filter(|value| **value != 0.0);
    let decimals = decimals.map(|value| decimals_for(value.abs(), 2)).max().unwrap_or(0);
    values.map(|value| rounded(value, decimals))
}

/// A number with all its decimals, also where it is zero.
fn rounded(number: f64, decimals: usize) -> String {
    match written(number, decimals).as_str() {
        "0" => format!("{:.decimals$}", 0.0),
        text => text.to_owned(),
    }
}

/// A rounded number with all decimals, also if it is zero. One that is too small for them keeps a
/// digit, so that it is not taken for zero.
fn with_zeros(number: f64, decimals: usize) -> String {
    let text = rounded(number, decimals);
    if number == 0.0 {
        return text;
    }
    let is_zero = text.bytes().all(|byte| b"0.".contains(&byte));
    if is_zero { written(number, decimals_for(number.abs(), 1)) } else { text }
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
        let estimate = Estimate { value, interval, runs: 1 };
        super::estimate(&estimate, column(&[estimate]))
    }

    #[test]
    fn the_cells_of_a_column_have_equal_digits() {
        let cell = |value: f64, half: f64| {
            let interval = Some((value - half, value + half));
            Estimate { value, interval, runs: 3 }
        };
        let cells = [cell(9.411, 0.1), cell(12.0, 0.11), cell(0.5, 0.04), cell(0.0, 0.0)];
        let cells = cells.map(|cell| estimate(&cell, column(&cells)));
        assert_eq!(cells, ["9.41 ± 0.10", "12.00 ± 0.11", "0.50 ± 0.04", "0.00"]);
        let tiny = Estimate { value: 0.000_2, interval: None, runs: 1 };
        assert_eq!(estimate(&tiny, 2), "0.0002");
        let lopsided = Estimate { value: 0.002, interval: Some((0.000_004, 0.01)), runs: 1 };
        assert_eq!(estimate(&lopsided, 3), "0.002 (0.000 to 0.010)");
        let count = Estimate { value: 45.2, interval: Some((0.0, 91.2)), runs: 5 };
        assert_eq!(estimate(&count, 0), "45 (0 to 91)");
        assert_eq!(alike([-0.008_199, 3.398]), ["−0.0082", "3.3980"]);
        assert_eq!(alike([0.0, 121.5]), ["0", "122"]);
    }

    #[test]
    fn digits_end_where_the_interval_begins() {
        assert_eq!(shown(9.411_23, Some((9.31, 9.512))), "9.41 ± 0.10");
        assert_eq!(shown(0.0212, Some((0.0113, 0.0363))), "0.021 (0.011 to 0.036)");
        assert_eq!(shown(0.0, Some((0.0, 0.0065))), "0.0000 (0.0000 to 0.0065)");
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
