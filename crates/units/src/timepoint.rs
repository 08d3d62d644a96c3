//! Points in time as people and the SRT tools write them, and the calendar behind them.

use std::fmt;
use std::ops::Add;
use std::str::FromStr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use thiserror::Error;

/// A point in time by the clock of the day, in microseconds since 1970-01-01 UTC.
///
/// Its text is ISO 8601 in UTC: `2026-11-27T20:15:00.123456Z`. [`parse_timepoint`] says which other
/// forms are read. The years are those from 1970 to 9999.
///
/// ```
/// use punctual_units::UtcTime;
///
/// let time: UtcTime = "2026-11-27T21:15:00+01:00".parse()?;
/// assert_eq!(time.to_string(), "2026-11-27T20:15:00.000000Z");
/// # Ok::<(), punctual_units::NotATime>(())
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct UtcTime(u64);

/// A text that is no point in time.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "`{0}` is no time; write it like `2026-11-27T20:15:00`, in UTC, or with its zone: `+01:00`"
)]
pub struct NotATime(String);

/// A point in time by the Gregorian calendar.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Calendar {
    /// The year.
    pub year: u64,
    /// The month, 1 to 12.
    pub month: u64,
    /// The day of the month, 1 to 31.
    pub day: u64,
    /// The hour, 0 to 23.
    pub hour: u64,
    /// The minute, 0 to 59.
    pub minute: u64,
    /// The second, 0 to 59.
    pub second: u64,
    /// The microsecond, 0 to 999,999.
    pub micros: u64,
}

impl UtcTime {
    /// The time this number of microseconds after 1970-01-01 UTC; at most the end of 9999.
    pub const fn from_micros(micros: u64) -> Self {
        Self(if micros < LATEST { micros } else { LATEST })
    }

    /// Microseconds since 1970-01-01 UTC.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// The time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }

    /// The time by the calendar, in UTC.
    pub fn calendar(self) -> Calendar {
        let seconds = self.0 / 1_000_000;
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        Calendar { year, month, day, hour, minute, second, micros: self.0 % 1_000_000 }
    }
}

impl From<SystemTime> for UtcTime {
    fn from(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for UtcTime {
    type Output = Self;

    fn add(self, later: Duration) -> Self {
        let micros = u64::try_from(later.as_micros()).unwrap_or(u64::MAX);
        Self::from_micros(self.0.saturating_add(micros))
    }
}

impl fmt::Display for UtcTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Z", self.calendar())
    }
}

impl FromStr for UtcTime {
    type Err = NotATime;

    fn from_str(text: &str) -> Result<Self, NotATime> {
        let micros = parse_timepoint(text).and_then(|micros| u64::try_from(micros).ok());
        let time = micros.filter(|micros| *micros <= LATEST).map(Self);
        time.ok_or_else(|| NotATime(crate::one_line(text).into_owned()))
    }
}

impl fmt::Display for Calendar {
    /// ISO 8601 with microseconds, without a zone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { year, month, day, hour, minute, second, micros } = self;
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}")
    }
}

/// Reads ISO 8601 with a zone, as `2022-04-14T17:46:13.441614+0200`: microseconds since 1970-01-01
/// UTC. The fraction may be missing or longer, the zone `Z`, `+02:00` or missing, which is UTC. The
/// date may be `14.04.2022`, as libsrt 1.4.2 writes it.
pub fn parse_timepoint(text: &str) -> Option<i64> {
    let (date, rest) = text.trim().split_once(['T', ' '])?;
    let [year, month, day] = numbers(date.split('-')).or_else(|| {
        let [day, month, year] = numbers(date.split('.'))?;
        Some([year, month, day])
    })?;
    let (clock, offset) = match rest.find(['Z', 'z', '+', '-']) {
        Some(at) => (rest[..at].trim_end(), zone(&rest[at..])?),
        None => (rest, 0),
    };
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, ""));
    let [hour, minute, second] = numbers(clock.split(':'))?;
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && year <= 9_999
        && (hour, minute, second) <= (23, 59, 60)
        && minute <= 59
        && second <= 60;
    if !in_range {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second - offset;
    Some(seconds * 1_000_000 + micros(fraction)?)
}

/// Exactly three numbers of digits only.
fn numbers<'a>(mut parts: impl Iterator<Item = &'a str>) -> Option<[i64; 3]> {
    let mut next = || parts.next().and_then(digits);
    let found = [next()?, next()?, next()?];
    parts.next().is_none().then_some(found)
}

fn digits(text: &str) -> Option<i64> {
    let short = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    if short { text.parse().ok() } else { None }
}

/// Seconds east of UTC.
fn zone(text: &str) -> Option<i64> {
    let sign = match text.as_bytes().first()? {
        b'Z' | b'z' => return (text.len() == 1).then_some(0),
        b'-' => -1,
        _ => 1,
    };
    let hours_and_minutes = text[1..].replace(':', "");
    let number = digits(&hours_and_minutes)?;
    match hours_and_minutes.len() {
        2 => Some(sign * number * 3_600),
        4 => Some(sign * (number / 100 * 3_600 + number % 100 * 60)),
        _ => None,
    }
}

/// Microseconds of a decimal fraction; finer digits are cut off.
fn micros(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let six: String = fraction.chars().chain("000000".chars()).take(6).collect();
    six.parse().ok()
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years from March on, so that a leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The Gregorian date `days` days after 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    // Counted from 0000-03-01, so that a leap day is the last day of its year: cycles of 400 years
    // have 146,097 days, and from March on the months have (153 m + 2) / 5 days before them.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next_year) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next_year, month, day)
}

/// The last microsecond of the year 9999.
const LATEST: u64 = 253_402_300_799_999_999;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn times_are_written_as_iso_8601_in_utc() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000Z"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001Z"),
            (1_649_951_173_441_614, "2022-04-14T15:46:13.441614Z"),
            (1_735_689_599_999_999, "2024-12-31T23:59:59.999999Z"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000Z"),
            (u64::MAX, "9999-12-31T23:59:59.999999Z"),
        ] {
            assert_eq!(UtcTime::from_micros(micros).to_string(), expected);
        }
    }

    #[test]
    fn a_text_that_is_no_time_is_named_in_the_error() {
        let error = "20:15".parse::<UtcTime>().unwrap_err().to_string();
        assert!(error.starts_with("`20:15` is no time; write it like"), "{error}");
        assert!("1969-12-31T00:00:00Z".parse::<UtcTime>().is_err());
    }

    proptest! {
        #[test]
        fn a_time_is_read_as_it_is_written(micros in 0..=LATEST) {
            let time = UtcTime::from_micros(micros);
            prop_assert_eq!(time.to_string().parse(), Ok(time));
        }
    }

    #[test]
    fn times_are_read_in_every_form_that_the_tools_write() {
        for (text, expected) in [
            ("1970-01-01T00:00:00.000000+0000", 0),
            ("2022-04-14T17:46:13.441614+0200", 1_649_951_173_441_614),
            ("2022-04-14T15:46:13.441614Z", 1_649_951_173_441_614),
            ("2022-04-14T12:16:13.441614-03:30", 1_649_951_173_441_614),
            ("2022-04-14 15:46:13.4416149", 1_649_951_173_441_614),
            ("14.04.2022 17:46:13.441614 +0200", 1_649_951_173_441_614),
            ("10.02.2020 17:34:30.002211 +0000", 1_581_356_070_002_211),
            ("2000-02-29T00:00:00+00", 951_782_400_000_000),
            ("2024-12-31T23:59:59.999999+0000", 1_735_689_599_999_999),
            ("2100-03-01T00:00:00Z", 4_107_542_400_000_000),
        ] {
            assert_eq!(parse_timepoint(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_a_time_is_refused() {
        for text in [
            "",
            "12:30:00",
            "2022-04-14",
            "2022-13-14T00:00:00Z",
            "2022.04.14 12:00:00",
            "14.13.2022 12:00:00",
            "2022-04-14T25:00:00Z",
            "2022-04-14T12:00",
            "2022-04-14T12:00:00Zulu",
            "2022-04-14T12:00:00.12x4Z",
            "2022-04-14T12:00:00+é0",
            "T",
        ] {
            assert_eq!(parse_timepoint(text), None, "{text}");
        }
    }
}
