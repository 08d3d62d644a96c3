//! Numbers as they are written at axes and in tooltips.

/// A value at an axis whose numbers lie `step` apart and reach up to `largest`.
pub(crate) fn tick(value: f64, largest: f64, step: f64) -> String {
    if !(1e-6..1e15).contains(&largest) {
        return signed(&exponential(value));
    }
    let (unit, suffix) = match largest {
        _ if largest >= 1e12 => (1e12, "T"),
        _ if largest >= 1e9 => (1e9, "G"),
        _ if largest >= 1e6 => (1e6, "M"),
        _ if largest >= 1e4 => (1e3, "k"),
        _ => (1.0, ""),
    };
    if value == 0.0 || value.abs() < step / 1e3 {
        return "0".to_owned();
    }
    signed(&format!("{:.*}{suffix}", decimals(step / unit), value / unit))
}

/// A power of ten, or a value of one digit, at a logarithmic axis.
pub(crate) fn plain(value: f64) -> String {
    match value {
        _ if !(1e-5..1e16).contains(&value) => exponential(value),
        _ if value >= 1e4 => tick(value, value, value),
        _ => format!("{value:.*}", decimals(value * 1.001)),
    }
}

/// A time in seconds at an axis that reaches up to `largest` seconds.
pub(crate) fn time(value: f64, largest: f64, step: f64) -> String {
    if largest < 180.0 {
        return tick(value, largest, step);
    }
    let sign = if value < 0.0 { "−" } else { "" };
    // Axes of time reach over years at most; beyond that the minutes do not matter.
    let seconds = value.abs().round().min(1e15);
    let (upper, lower) = if largest < 10_800.0 { (60.0, 1.0) } else { (3600.0, 60.0) };
    format!("{sign}{:.0}:{:02.0}", (seconds / upper).floor(), ((seconds % upper) / lower).floor())
}

/// The unit of the numbers of [`time`].
pub(crate) fn time_unit(largest: f64) -> &'static str {
    match largest {
        _ if largest < 180.0 => "s",
        _ if largest < 10_800.0 => "min:s",
        _ => "h:min",
    }
}

/// A value to read, with four significant digits.
pub(crate) fn reading(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&value.abs()) {
        return signed(&exponential(value));
    }
    let digits = format!("{:.3e}", value.abs());
    let exponent: i32 = digits.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    let decimals = usize::try_from(3 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    signed(text)
}

/// Decimals that tell apart values which lie `step` apart, `step` being 1, 2 or 5 times a power of
/// ten.
fn decimals(step: f64) -> usize {
    let mut decimals = 0;
    let mut scaled = step;
    while scaled < 0.999 && decimals < 12 {
        scaled *= 10.0;
        decimals += 1;
    }
    decimals
}

fn exponential(value: f64) -> String {
    let text = format!("{value:.2e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    format!("{}e{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
}

/// With the true minus sign in front.
fn signed(text: &str) -> String {
    text.strip_prefix('-').map_or_else(|| text.to_owned(), |rest| format!("−{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_have_four_digits_and_no_empty_zeros() {
        let values = [0.0, 9.66, 0.0066, 1_234_567.0, -0.5, 1e-7, 19.184_93, 100.0];
        let read = ["0", "9.66", "0.0066", "1234567", "−0.5", "1e-7", "19.18", "100"];
        assert_eq!(values.map(reading), read);
    }

    #[test]
    fn powers_of_ten_are_written_out_where_that_is_short() {
        let values = [0.0001, 0.01, 0.05, 1.0, 200.0, 10_000.0, 5e6, 1e-9];
        assert_eq!(values.map(plain), ["0.0001", "0.01", "0.05", "1", "200", "10k", "5M", "1e-9"]);
    }

    #[test]
    fn long_times_have_minutes_and_hours() {
        assert_eq!(time(90.0, 120.0, 30.0), "90");
        assert_eq!(time(90.0, 600.0, 30.0), "1:30");
        assert_eq!(time(5400.0, 86_400.0, 1800.0), "1:30");
        assert_eq!(time(-60.0, 600.0, 30.0), "−1:00");
    }
}
