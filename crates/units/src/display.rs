//! Printing quantities for people.

use std::fmt::{self, Alignment, Formatter};
use std::time::Duration;

/// Prints a duration as `63 µs`, `20.5 ms` or `2 s`: in ns, µs, ms or s. `{:#}`, for people, goes
/// on with minutes and hours: `2 min 5 s`, `3 h 20 min`. No time at all is `0 s`.
///
/// See the crate's documentation for what precision and `#` do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DisplayDuration(pub Duration);

impl fmt::Display for DisplayDuration {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() && f.precision().is_none() {
            return pad(f, "0 s");
        }
        if f.alternate() && self.0 >= FROM_HERE_IN_MINUTES {
            return pad(f, &in_minutes(self.0));
        }
        write_quantity(f, self.0.as_nanos(), &["ns", "µs", "ms", "s"])
    }
}

/// Minutes and seconds, or hours and minutes.
fn in_minutes(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_millis() >= 500);
    let (larger, unit, smaller, least) = match seconds {
        0..3_600 => (seconds / 60, "min", seconds % 60, "s"),
        _ => (seconds / 3_600, "h", seconds / 60 % 60, "min"),
    };
    match smaller {
        0 => format!("{larger} {unit}"),
        _ => format!("{larger} {unit} {smaller} {least}"),
    }
}

/// Fewer seconds than that are understood as they are.
const FROM_HERE_IN_MINUTES: Duration = Duration::from_secs(120);

/// Prints a number of bytes as `188 B`, `1.316 kB` or `64 MB`: in B, kB, MB or GB, 1000 each.
///
/// See the crate's documentation for what precision and `#` do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DisplayBytes(pub u64);

impl fmt::Display for DisplayBytes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write_quantity(f, self.0.into(), &["B", "kB", "MB", "GB"])
    }
}

/// `part` of `whole` in percent, with as many digits as say something.
#[expect(clippy::cast_precision_loss, reason = "for people: 53 bits are plenty")]
#[must_use]
pub fn percent(part: u64, whole: u64) -> String {
    share_in_percent(if whole == 0 { 0.0 } else { part as f64 / whole as f64 })
}

/// A share in percent, with as many digits as say something: `25.0 %`, `0.0035 %`.
#[must_use]
pub fn share_in_percent(share: f64) -> String {
    let percent = share * 100.0;
    let decimals = match percent {
        ..=0.0 => return "0 %".to_owned(),
        ..LEAST_PERCENT => return format!("less than {LEAST_PERCENT} %"),
        // Two digits behind the zeros.
        ..0.1 => (1_u32..).find(|decimals| percent * libm::exp10((*decimals).into()) >= 10.0),
        ..10.0 => Some(2),
        _ => Some(1),
    };
    let text = format!("{percent:.0$}", decimals.unwrap_or(1) as usize);
    match percent {
        ..0.1 => format!("{} %", text.trim_end_matches('0')),
        _ => format!("{text} %"),
    }
}

/// Smaller shares are not told apart, in percent.
const LEAST_PERCENT: f64 = 0.000_000_01;

/// A count with a comma between each three digits: `4,212`.
#[must_use]
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Writes `value` in one of `units`, each of which is 1000 of the one before it.
pub(crate) fn write_quantity(f: &mut Formatter<'_>, value: u128, units: &[&str]) -> fmt::Result {
    let mut place = 0;
    while place + 1 < units.len() && value >= thousand_to(place + 1) {
        place += 1;
    }
    let mut decimals = decimals(f, value, place);
    let mut rounded = round(value, place, decimals);
    if rounded >= 1_000 * ten_to(decimals) && place + 1 < units.len() {
        // 999.96 ms with one decimal is 1.0 s.
        place += 1;
        decimals = self::decimals(f, value, place);
        rounded = round(value, place, decimals);
    }
    let (whole, fraction) = (rounded / ten_to(decimals), rounded % ten_to(decimals));
    let mut number = whole.to_string();
    if decimals > 0 {
        number += &format!(".{fraction:0decimals$}");
        if f.precision().is_none() {
            number.truncate(number.trim_end_matches('0').trim_end_matches('.').len());
        }
    }
    pad(f, &format!("{number} {}", units[place]))
}

/// How many decimals to compute: those asked for, or those of three digits, or all there are.
fn decimals(f: &Formatter<'_>, value: u128, place: usize) -> usize {
    let all = 3 * place;
    match f.precision() {
        Some(precision) => precision.min(MAX_DECIMALS),
        None if f.alternate() => match value / thousand_to(place) {
            0..10 => all.min(2),
            10..100 => all.min(1),
            _ => 0,
        },
        None => all,
    }
}

/// `value` in the unit at `place`, times ten to the power of `decimals`, rounded half up.
fn round(value: u128, place: usize, decimals: usize) -> u128 {
    let unit = thousand_to(place);
    let (whole, part) = (value / unit, value % unit);
    whole * ten_to(decimals) + (part * ten_to(decimals) + unit / 2) / unit
}

/// Right-aligned unless the format says otherwise, so that columns of quantities line up.
fn pad(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    let width = f.width().unwrap_or(0);
    match f.align() {
        Some(Alignment::Left) => write!(f, "{text:<width$}"),
        Some(Alignment::Center) => write!(f, "{text:^width$}"),
        Some(Alignment::Right) | None => write!(f, "{text:>width$}"),
    }
}

fn thousand_to(power: usize) -> u128 {
    ten_to(3 * power)
}

fn ten_to(power: usize) -> u128 {
    (0..power).fold(1, |product, _| product * 10)
}

/// More decimals than that are not printed: no unit has more.
const MAX_DECIMALS: usize = 9;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bitrate;

    fn ns(nanos: u64) -> DisplayDuration {
        DisplayDuration(Duration::from_nanos(nanos))
    }

    #[test]
    fn counts_have_a_comma_between_each_three_digits() {
        let cases = [(0, "0"), (999, "999"), (1_000, "1,000"), (142_836, "142,836")];
        for (count, text) in cases {
            assert_eq!(grouped(count), text);
        }
        assert_eq!(grouped(u64::MAX), "18,446,744,073,709,551,615");
    }

    #[test]
    fn prints_every_digit_by_default() {
        assert_eq!(ns(0).to_string(), "0 s");
        assert_eq!(ns(63_000).to_string(), "63 µs");
        assert_eq!(ns(20_500_000).to_string(), "20.5 ms");
        assert_eq!(ns(120_000_000).to_string(), "120 ms");
        assert_eq!(ns(999_999_999).to_string(), "999.999999 ms");
        assert_eq!(ns(2_000_000_001).to_string(), "2.000000001 s");
        assert_eq!(Bitrate::from_mbps(5).to_string(), "5 Mb/s");
        assert_eq!(Bitrate::from_mbps(1_250).to_string(), "1.25 Gb/s");
        assert_eq!(Bitrate::from_bits_per_sec(999).to_string(), "999 b/s");
        assert_eq!(DisplayBytes(65_536).to_string(), "65.536 kB");
        assert_eq!(DisplayDuration(Duration::MAX).to_string(), "18446744073709551615.999999999 s");
    }

    #[test]
    fn precision_gives_that_many_decimals() {
        assert_eq!(format!("{:.1}", ns(2_000_000_000)), "2.0 s");
        assert_eq!(format!("{:.1}", ns(20_449_999)), "20.4 ms");
        assert_eq!(format!("{:.1}", ns(20_450_000)), "20.5 ms");
        assert_eq!(format!("{:.0}", ns(63_499)), "63 µs");
        assert_eq!(format!("{:.1}", ns(999_960_000)), "1.0 s");
        assert_eq!(format!("{:.3}", ns(7)), "7.000 ns");
        assert_eq!(format!("{:.2}", Bitrate::from_bits_per_sec(4_987_654)), "4.99 Mb/s");
    }

    #[test]
    fn the_alternate_form_has_three_digits() {
        assert_eq!(format!("{:#}", ns(1_234_567)), "1.23 ms");
        assert_eq!(format!("{:#}", ns(12_345_678)), "12.3 ms");
        assert_eq!(format!("{:#}", ns(123_456_789)), "123 ms");
        assert_eq!(format!("{:#}", ns(999_600_000)), "1 s");
        assert_eq!(format!("{:#}", ns(120_000_000)), "120 ms");
        assert_eq!(format!("{:#}", ns(7)), "7 ns");
        assert_eq!(format!("{:#}", ns(0)), "0 s");
        assert_eq!(format!("{:#}", ns(5_000_069_897)), "5 s");
        let people = |seconds| format!("{:#}", DisplayDuration(Duration::from_secs(seconds)));
        assert_eq!([119, 125, 300].map(people), ["119 s", "2 min 5 s", "5 min"]);
        assert_eq!([3_599, 3_600, 12_000].map(people), ["59 min 59 s", "1 h", "3 h 20 min"]);
        assert_eq!(format!("{:#}", DisplayBytes(1_316)), "1.32 kB");
    }

    #[test]
    fn pads_to_the_width() {
        assert_eq!(format!("{:8}|", ns(63_000)), "   63 µs|");
        assert_eq!(format!("{:<8}|", ns(63_000)), "63 µs   |");
        assert_eq!(format!("{:^9.1}|", ns(63_000)), " 63.0 µs |");
    }

    #[test]
    fn shares_have_as_many_digits_as_say_something() {
        assert_eq!(percent(0, 5), "0 %");
        assert_eq!(percent(2, 56_500), "0.0035 %");
        assert_eq!(percent(598, 10_000), "5.98 %");
        assert_eq!(percent(1, 4), "25.0 %");
        assert_eq!(percent(1, 0), "0 %");
        for (share, text) in [
            (1e-3, "0.10 %"),
            (5e-4, "0.05 %"),
            (1e-6, "0.0001 %"),
            (1.26e-7, "0.000013 %"),
            (1e-9, "0.0000001 %"),
            (1e-10, "0.00000001 %"),
            (9e-11, "less than 0.00000001 %"),
        ] {
            assert_eq!(share_in_percent(share), text, "{share}");
        }
    }
}
