//! Points in time as the SRT tools write them.

use std::time::SystemTime;

use punctual_units::UtcTime;

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
    let micros = UtcTime::from(time).micros();
    let local = UtcTime::from_micros(micros.saturating_add_signed(i64::from(offset) * 1_000_000));
    let sign = if offset < 0 { '-' } else { '+' };
    let (hours, minutes) = (offset.abs() / 3_600, offset.abs() / 60 % 60);
    format!("{}{sign}{hours:02}{minutes:02}", local.calendar())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

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
