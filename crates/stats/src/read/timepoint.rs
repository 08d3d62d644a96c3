//! Points in time as the SRT tools write them.

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

#[cfg(test)]
mod tests {
    use super::*;

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
