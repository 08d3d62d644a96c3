//! Reading quantities as people write them: a decimal number, perhaps a space, a unit.

use std::str::FromStr;
use std::time::Duration;

use crate::{Bitrate, ParseUnitError};

/// Reads a duration: a number with `ns`, `us` or `µs`, `ms`, `s`, `min` or `m`, `h`,
/// `d`, `day` or `days`.
///
/// Also `usec`, `msec` and `sec`. Rounded to a nanosecond; up to 2^64 - 1 ns, 584 years. A bare
/// number is an error, 0 excepted: see [`parse_duration_in`].
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    parse(text, &DURATION, None).map(Duration::from_nanos)
}

/// Like [`parse_duration`], but a bare number counts `default_unit`s: with 1 ms, `120` is 120 ms.
pub fn parse_duration_in(text: &str, default_unit: Duration) -> Result<Duration, ParseUnitError> {
    let nanos = u64::try_from(default_unit.as_nanos()).unwrap_or(u64::MAX);
    parse(text, &DURATION, Some(nanos)).map(Duration::from_nanos)
}

/// Reads a bit rate: a number with `bps`, `b/s` or `bit/s` and the prefix `k`, `M` or `G` (1000,
/// 1000² and 1000³, in either case), or with the prefix alone.
///
/// Bytes per second are written `B/s`, `kB/s`, `MB/s`, `GB/s`, `KiB/s`, `MiB/s`, `GiB/s`. `MBps` is
/// an error: some programs mean bits by it, others bytes. Rounded to 1 b/s. A bare number is an
/// error, 0 excepted: see [`parse_bitrate_in`].
pub fn parse_bitrate(text: &str) -> Result<Bitrate, ParseUnitError> {
    parse(text, &BITRATE, None).map(Bitrate::from_bits_per_sec)
}

/// Like [`parse_bitrate`], but a bare number counts `default_unit`s.
pub fn parse_bitrate_in(text: &str, default_unit: Bitrate) -> Result<Bitrate, ParseUnitError> {
    parse(text, &BITRATE, Some(default_unit.as_bits_per_sec())).map(Bitrate::from_bits_per_sec)
}

/// Like [`parse_bitrate`], but a bare number counts bits per second. One that is less than any
/// stream has, 1 to 999, is an error: it was meant in another unit.
pub fn parse_bitrate_in_bits(text: &str) -> Result<Bitrate, ParseUnitError> {
    let rate = parse_bitrate_in(text, Bitrate::from_bits_per_sec(1))?;
    match rate.as_bits_per_sec() {
        1..1_000 => parse_bitrate(text),
        _ => Ok(rate),
    }
}

/// Reads a number of bytes: a number with `B`, `kB` or `KB`, `MB`, `GB` (1000, 1000² and 1000³
/// bytes), `KiB`, `MiB` or `GiB` (1024, 1024² and 1024³ bytes).
///
/// Rounded to a byte. A bare number is an error, 0 excepted: see [`parse_bytes_in`].
pub fn parse_bytes(text: &str) -> Result<u64, ParseUnitError> {
    parse(text, &BYTES, None)
}

/// Like [`parse_bytes`], but a bare number counts `default_unit`s of bytes: 1 for bytes.
pub fn parse_bytes_in(text: &str, default_unit: u64) -> Result<u64, ParseUnitError> {
    parse(text, &BYTES, Some(default_unit))
}

/// Reads a number of things: a whole number, or a number with `k`, `M` or `G` that makes one.
pub fn parse_count(text: &str) -> Result<u64, ParseUnitError> {
    parse(text, &COUNT, Some(1))
}

/// Reads a share of a whole, 0 to 1: a percentage such as `2%`, or a bare number less than 1 such
/// as `0.02` or `1e-6`.
///
/// The result is the `f64` nearest to what is written. A bare `1` is an error, because it may mean
/// 1 % as well as 100 %.
pub fn parse_share(text: &str) -> Result<f64, ParseUnitError> {
    let (number, unit) = split(text, &SHARE)?;
    let (exponent, unit) = match unit {
        "%" => (-2, unit),
        _ => negative_power(unit).map_or((0, unit), |power| (power, "")),
    };
    if !matches!(unit, "" | "%") {
        return Err(unknown_unit(text, unit, &SHARE));
    }
    let Ok(share) = f64::from_str(&format!("{number}e{exponent}")) else {
        return Err(not_a_number(text, &SHARE));
    };
    match unit {
        "" if share >= 1.0 => Err(ParseUnitError::UnclearShare { text: number.to_owned() }),
        _ if share > 1.0 => Err(ParseUnitError::TooLarge { text: text.to_owned(), most: "100%" }),
        _ => Ok(share),
    }
}

/// The power of ten behind the `e` of `1e-6`, if it is one that makes numbers smaller.
fn negative_power(text: &str) -> Option<i32> {
    let digits = text.strip_prefix(['e', 'E'])?.strip_prefix('-')?;
    let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|c| c.is_ascii_digit());
    digits.parse::<i32>().ok().filter(|_| plain).map(|power| -power)
}

/// The notation of one quantity.
struct Notation {
    quantity: &'static str,
    example: &'static str,
    /// The unit that is proposed for a bare number.
    usual_unit: &'static str,
    /// Spellings of units, each with its size in base units. The most usual ones come first,
    /// because the first of the nearest is proposed for an unknown unit.
    units: &'static [(&'static str, u64)],
    /// Whether a value between two base units is rounded to the nearest one; otherwise it is an
    /// error.
    rounded: bool,
    least: &'static str,
    most: &'static str,
}

/// The number of base units in `text`.
fn parse(text: &str, scale: &Notation, default_unit: Option<u64>) -> Result<u64, ParseUnitError> {
    let (number, unit) = split(text, scale)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let zero = number.bytes().all(|c| matches!(c, b'0' | b'.'));
    let factor = match scale.units.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if !unit.is_empty() => return Err(unknown_unit(text, unit, scale)),
        None => match default_unit {
            Some(factor) => factor,
            None if zero => 1,
            None => {
                let suggestion = format!("{number}{}", scale.usual_unit);
                return Err(ParseUnitError::MissingUnit { text: text.to_owned(), suggestion });
            }
        },
    };
    let (fraction, one) = digits(&fraction[..fraction.len().min(MAX_FRACTION_DIGITS)]);
    let parts = fraction * u128::from(factor);
    if !scale.rounded && parts % one != 0 {
        return Err(ParseUnitError::NotWhole { text: text.to_owned() });
    }
    let too_large = || ParseUnitError::TooLarge { text: text.to_owned(), most: scale.most };
    let whole = whole.trim_start_matches('0');
    if whole.len() > MAX_WHOLE_DIGITS {
        return Err(too_large());
    }
    let sum = digits(whole).0.saturating_mul(factor.into()).saturating_add((parts + one / 2) / one);
    if sum == 0 && !zero && factor != 0 {
        return Err(ParseUnitError::TooSmall { text: text.to_owned(), least: scale.least });
    }
    u64::try_from(sum).map_err(|_| too_large())
}

/// A text's number, which is digits with at most one decimal point, and its unit.
fn split<'a>(text: &'a str, scale: &Notation) -> Result<(&'a str, &'a str), ParseUnitError> {
    let trimmed = text.trim();
    if trimmed.starts_with(['-', '−']) {
        let quantity = scale.quantity;
        return Err(ParseUnitError::Negative { text: text.to_owned(), quantity });
    }
    let end = trimmed
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))
        .unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(end);
    let points = number.bytes().filter(|c| !c.is_ascii_digit()).count();
    let well_formed = points <= 1 && number.len() > points && !number.contains(',');
    if well_formed { Ok((number, unit.trim_start())) } else { Err(not_a_number(text, scale)) }
}

/// The value of up to 20 digits, and ten to the power of their number.
fn digits(digits: &str) -> (u128, u128) {
    digits.bytes().fold((0, 1), |(value, power), c| (value * 10 + u128::from(c - b'0'), power * 10))
}

fn not_a_number(text: &str, scale: &Notation) -> ParseUnitError {
    let Notation { quantity, example, .. } = *scale;
    ParseUnitError::NotANumber { text: text.to_owned(), quantity, example }
}

fn unknown_unit(text: &str, unit: &str, scale: &Notation) -> ParseUnitError {
    let (text, unit) = (text.to_owned(), unit.to_owned());
    let nearest = scale.units.iter().min_by_key(|(name, _)| spelling_distance(&unit, name));
    match nearest {
        Some(&(name, _)) if spelling_distance(&unit, name) <= MAX_SPELLING_DISTANCE => {
            ParseUnitError::UnknownUnit { text, unit, suggestion: name }
        }
        _ => {
            let Notation { quantity, example, .. } = *scale;
            ParseUnitError::UnlikelyUnit { text, unit, quantity, example }
        }
    }
}

/// The distance from `b` to `a`: 2 for a letter that is added, dropped or replaced, 1 for
/// a letter in the wrong case (Levenshtein's distance with weights).
fn spelling_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).map(|n| 2 * n).collect();
    for c in a.chars() {
        let mut diagonal = row[0];
        row[0] += 2;
        for (i, d) in b.iter().enumerate() {
            let replaced = match c {
                _ if c == *d => 0,
                _ if c.eq_ignore_ascii_case(d) => 1,
                _ => 2,
            };
            let best = (diagonal + replaced).min(row[i] + 2).min(row[i + 1] + 2);
            diagonal = row[i + 1];
            row[i + 1] = best;
        }
    }
    row[b.len()]
}

/// Digits after the decimal point that count: far more than any unit resolves.
const MAX_FRACTION_DIGITS: usize = 18;
/// Digits before the decimal point, leading zeros aside: 2^64 has as many.
const MAX_WHOLE_DIGITS: usize = 20;
/// Two letters wrong in their case, or one letter altogether.
const MAX_SPELLING_DISTANCE: usize = 2;

const DURATION: Notation = Notation {
    quantity: "duration",
    example: "120ms",
    usual_unit: "ms",
    units: &[
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
        ("us", 1_000),
        ("\u{b5}s", 1_000),
        ("\u{3bc}s", 1_000),
        ("ns", 1),
        ("min", 60_000_000_000),
        ("m", 60_000_000_000),
        ("h", 3_600_000_000_000),
        ("d", 86_400_000_000_000),
        ("day", 86_400_000_000_000),
        ("days", 86_400_000_000_000),
        ("sec", 1_000_000_000),
        ("msec", 1_000_000),
        ("usec", 1_000),
    ],
    rounded: true,
    least: "1ns",
    most: "584 years",
};

const BITRATE: Notation = Notation {
    quantity: "bit rate",
    example: "5Mbps",
    usual_unit: "Mbps",
    units: &[
        ("Mbps", 1_000_000),
        ("kbps", 1_000),
        ("Gbps", 1_000_000_000),
        ("bps", 1),
        ("Mb/s", 1_000_000),
        ("kb/s", 1_000),
        ("Gb/s", 1_000_000_000),
        ("b/s", 1),
        ("Mbit/s", 1_000_000),
        ("kbit/s", 1_000),
        ("Gbit/s", 1_000_000_000),
        ("bit/s", 1),
        ("mbps", 1_000_000),
        ("Kbps", 1_000),
        ("gbps", 1_000_000_000),
        ("mb/s", 1_000_000),
        ("Kb/s", 1_000),
        ("gb/s", 1_000_000_000),
        ("mbit/s", 1_000_000),
        ("Kbit/s", 1_000),
        ("gbit/s", 1_000_000_000),
        ("M", 1_000_000),
        ("k", 1_000),
        ("K", 1_000),
        ("G", 1_000_000_000),
        ("MB/s", 8_000_000),
        ("kB/s", 8_000),
        ("KB/s", 8_000),
        ("GB/s", 8_000_000_000),
        ("B/s", 8),
        ("KiB/s", 8 << 10),
        ("MiB/s", 8 << 20),
        ("GiB/s", 8 << 30),
    ],
    rounded: true,
    least: "1b/s",
    most: "18446744073Gb/s",
};

const BYTES: Notation = Notation {
    quantity: "number of bytes",
    example: "64KiB",
    usual_unit: "B",
    units: &[
        ("B", 1),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("KB", 1_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
    ],
    rounded: true,
    least: "1B",
    most: "18446744073GB",
};

const COUNT: Notation = Notation {
    quantity: "number",
    example: "1000",
    usual_unit: "",
    units: &[("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000), ("K", 1_000)],
    rounded: false,
    least: "1",
    most: "18446744073709551615",
};

const SHARE: Notation = Notation {
    quantity: "share",
    example: "2%",
    usual_unit: "%",
    units: &[("%", 1)],
    rounded: true,
    least: "0%",
    most: "100%",
};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{DisplayBytes, DisplayDuration};

    fn message<T: std::fmt::Debug>(result: Result<T, ParseUnitError>) -> String {
        result.unwrap_err().to_string()
    }

    #[test]
    fn reads_durations_exactly() {
        let nanos = |text| parse_duration(text).unwrap().as_nanos();
        assert_eq!(nanos("120ms"), 120_000_000);
        assert_eq!(nanos("1.5s"), 1_500_000_000);
        assert_eq!(nanos("0.1ms"), 100_000);
        assert_eq!(nanos(".3 us"), 300);
        assert_eq!(nanos("20\u{b5}s"), 20_000);
        assert_eq!(nanos("20\u{3bc}s"), 20_000);
        assert_eq!(nanos(" 2min "), 120_000_000_000);
        assert_eq!(nanos("1h"), 3_600_000_000_000);
        assert_eq!(nanos("0"), 0);
        assert_eq!(nanos("0.0s"), 0);
        assert_eq!(nanos("0.33333333333333333333333s"), 333_333_333);
        assert_eq!(nanos("0.0000000005s"), 1, "rounds half up");
        assert_eq!(nanos("00000000000000000000001ns"), 1);
        assert_eq!(nanos("18446744073709551615ns"), u128::from(u64::MAX));
    }

    #[test]
    fn reads_bit_rates() {
        let bits = |text| parse_bitrate(text).unwrap().as_bits_per_sec();
        for text in ["5Mbps", "5Mb/s", "5 Mbit/s", "5mbps", "5M", "5000kbps", "0.005G"] {
            assert_eq!(bits(text), 5_000_000, "{text}");
        }
        assert_eq!(bits("1.2Gbps"), 1_200_000_000);
        assert_eq!(bits("5MB/s"), 40_000_000);
        assert_eq!(bits("1KiB/s"), 8_192);
        assert_eq!(bits("1.5b/s"), 2);
    }

    #[test]
    fn reads_bytes_counts_and_shares() {
        assert_eq!(parse_bytes("64KiB"), Ok(65_536));
        assert_eq!(parse_bytes("1MB"), Ok(1_000_000));
        assert_eq!(parse_bytes("1500B"), Ok(1_500));
        assert_eq!(parse_count("1500"), Ok(1_500));
        assert_eq!(parse_count("1.5k"), Ok(1_500));
        assert_eq!(parse_share("2%"), Ok(0.02));
        assert_eq!(parse_share("0.02"), Ok(0.02));
        assert_eq!(parse_share("1e-6"), Ok(1e-6));
        assert_eq!(parse_share(" 2.5E-04"), Ok(2.5e-4));
        assert_eq!(parse_share("100 %"), Ok(1.0));
        assert_eq!(parse_share("0"), Ok(0.0));
        assert_eq!(parse_share("99.9%"), Ok(0.999));
    }

    #[test]
    fn a_bare_number_of_bits_is_no_rate_if_it_is_too_small_for_one() {
        for (text, bits) in [("0", 0), ("1000", 1_000), ("5bps", 5), ("0.5kbps", 500)] {
            assert_eq!(parse_bitrate_in_bits(text), Ok(Bitrate::from_bits_per_sec(bits)), "{text}");
        }
        for text in ["5", "999", " 2.5 "] {
            let told = parse_bitrate_in_bits(text).unwrap_err().to_string();
            assert!(told.contains(&format!("did you mean `{}Mbps`?", text.trim())), "{told}");
        }
    }

    #[test]
    fn a_default_unit_takes_bare_numbers_only() {
        let ms = Duration::from_millis(1);
        assert_eq!(parse_duration_in("120", ms), Ok(Duration::from_millis(120)));
        assert_eq!(parse_duration_in("0.5", ms), Ok(Duration::from_micros(500)));
        assert_eq!(parse_duration_in("2s", ms), Ok(Duration::from_secs(2)));
        let kbps = Bitrate::from_bits_per_sec(1_000);
        assert_eq!(parse_bitrate_in("500", kbps), parse_bitrate("500kbps"));
        assert_eq!(parse_bytes_in("1316", 1), Ok(1_316));
    }

    #[test]
    fn errors_name_the_text_and_the_right_form() {
        assert_eq!(
            message(parse_duration("12mss")),
            "`12mss`: unknown unit `mss`; did you mean `ms`?"
        );
        assert_eq!(message(parse_duration("1S")), "`1S`: unknown unit `S`; did you mean `s`?");
        assert_eq!(
            message(parse_duration("5 parsecs")),
            "`5 parsecs`: unknown unit `parsecs`; a duration is written like `120ms`"
        );
        assert_eq!(
            message(parse_duration("120")),
            "`120`: the unit is missing; did you mean `120ms`?"
        );
        assert_eq!(
            message(parse_bitrate("5MBps")),
            "`5MBps`: unknown unit `MBps`; did you mean `Mbps`?"
        );
        assert_eq!(message(parse_bytes("64kb")), "`64kb`: unknown unit `kb`; did you mean `kB`?");
        assert_eq!(message(parse_duration("-1s")), "`-1s`: a duration is never negative");
        for text in ["", "ms", ".", "1.2.3s", "1,5s"] {
            let expected = format!("`{text}` is not a duration; write it like `120ms`");
            assert_eq!(message(parse_duration(text)), expected);
        }
        assert_eq!(
            message(parse_duration("18446744073709551616ns")),
            "`18446744073709551616ns`: at most 584 years is possible"
        );
        assert_eq!(
            message(parse_bitrate("0.4b/s")),
            "`0.4b/s`: less than 1b/s is not possible, except 0"
        );
        assert_eq!(message(parse_count("1.0005k")), "`1.0005k` is not a whole number");
        assert_eq!(message(parse_share("101%")), "`101%`: at most 100% is possible");
        assert_eq!(
            message(parse_share("1")),
            "`1`: the `%` is missing; did you mean `1%`? (a bare share is less than 1)"
        );
        for text in ["1e-", "1e--6", "1e-6%", "1e+6", "1e6", "1e-600"] {
            assert!(message(parse_share(text)).contains("is written like `2%`"), "{text}");
        }
        assert_eq!(
            message(parse_share("2pc")),
            "`2pc`: unknown unit `pc`; a share is written like `2%`"
        );
    }

    proptest! {
        #[test]
        fn printed_quantities_read_back(value: u64) {
            let duration = Duration::from_nanos(value);
            prop_assert_eq!(parse_duration(&DisplayDuration(duration).to_string()), Ok(duration));
            let rate = Bitrate::from_bits_per_sec(value);
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
            prop_assert_eq!(parse_bytes(&DisplayBytes(value).to_string()), Ok(value));
            prop_assert_eq!(parse_count(&value.to_string()), Ok(value));
        }

        #[test]
        fn shares_read_as_the_nearest_number(millionths in 0..1_000_000_u32) {
            let expected = f64::from(millionths) / 1e6;
            let percent = format!("{}.{:04}%", millionths / 10_000, millionths % 10_000);
            prop_assert_eq!(parse_share(&percent), Ok(expected));
            prop_assert_eq!(parse_share(&format!("0.{millionths:06}")), Ok(expected));
        }

        #[test]
        fn no_text_panics(text in "[0-9.,µkMGmsb/%B -]{0,30}|\\PC{0,20}") {
            let _ = (parse_duration(&text), parse_bitrate(&text), parse_bytes(&text));
            let _ = (parse_count(&text), parse_share(&text));
            let _ = (parse_bytes_in(&text, u64::MAX), parse_bytes_in(&text, 0));
        }
    }
}
