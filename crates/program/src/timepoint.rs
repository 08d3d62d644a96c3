//! Points in time as the SRT tools write them.

use std::time::{SystemTime, UNIX_EPOCH};

/// ISO 8601 with microseconds in UTC, as statistics and metrics have it:
/// `2026-01-02T03:04:05.678901+0000`.
///
/// libsrt's tools write local time with its offset; readers of the one read the other.
pub fn timepoint(time: SystemTime) -> String {
    at_offset(time, 0)
}

/// The same in local time, as messages have it: `2026-01-02T04:04:05.678901+0100`.
pub fn local_timepoint(time: SystemTime) -> String {
    at_offset(time, punctual_io::utc_offset(time))
}

/// The time where it is this number of seconds later than in UTC.
fn at_offset(time: SystemTime, offset: i32) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().saturating_add_signed(offset.into());
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let micros = since.subsec_micros();
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 3_600, offset.abs() / 60 % 60);
    format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}\
         {sign}{hours:02}{minutes:02}"
    )
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn writes_iso_8601_with_microseconds() {
        for (micros, expected) in [
            (0, "1970-01-01T00:00:00.000000+0000"),
            (951_782_400_000_001, "2000-02-29T00:00:00.000001+0000"),
            (1_649_951_173_441_614, "2022-04-14T15:46:13.441614+0000"),
            (1_735_689_599_999_999, "2024-12-31T23:59:59.999999+0000"),
            (4_107_542_400_000_000, "2100-03-01T00:00:00.000000+0000"),
        ] {
            assert_eq!(timepoint(UNIX_EPOCH + Duration::from_micros(micros)), expected);
        }
    }

    #[test]
    fn local_time_has_the_offset_of_its_zone() {
        let time = UNIX_EPOCH + Duration::from_micros(1_735_689_599_999_999);
        assert_eq!(at_offset(time, 3_600), "2025-01-01T00:59:59.999999+0100");
        assert_eq!(at_offset(time, -12_600), "2024-12-31T20:29:59.999999-0330");
        assert_eq!(at_offset(time, 20_700), "2025-01-01T05:44:59.999999+0545");
    }
}
