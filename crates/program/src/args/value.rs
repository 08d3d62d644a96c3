//! Values of options: quantities with units, as clap wants to read them.

use std::str::FromStr;
use std::time::Duration;

use punctual_units::{Bitrate, ParseUnitError, parse_bytes_in, parse_duration_in};

/// A duration whose bare numbers are seconds.
pub fn seconds(text: &str) -> Result<Duration, ParseUnitError> {
    parse_duration_in(text, Duration::from_secs(1))
}

/// A duration whose bare numbers are milliseconds.
pub fn milliseconds(text: &str) -> Result<Duration, ParseUnitError> {
    parse_duration_in(text, Duration::from_millis(1))
}

/// A period between two reports: at least 10 ms, bare numbers are milliseconds.
pub fn period(text: &str) -> Result<Duration, String> {
    let period = milliseconds(text).map_err(|error| error.to_string())?;
    if period < SHORTEST_PERIOD {
        return Err(format!("`{text}` is too short; it must be at least 10ms"));
    }
    Ok(period)
}

/// A time for which work may gather: 0 to 100 ms, bare numbers are milliseconds.
pub fn coalesce(text: &str) -> Result<Duration, String> {
    let time = milliseconds(text).map_err(|error| error.to_string())?;
    if time > LONGEST_COALESCE {
        return Err(format!("`{text}` is too long; it must be 0 to 100ms"));
    }
    Ok(time)
}

/// A bit rate whose bare numbers are bits per second, and large enough for that.
pub fn rate(text: &str) -> Result<Bitrate, ParseUnitError> {
    punctual_units::parse_bitrate_in_bits(text)
}

/// The size of a message: 1 to 1456 bytes.
pub fn message_size(text: &str) -> Result<usize, String> {
    let bytes = parse_bytes_in(text, 1).map_err(|error| error.to_string())?;
    usize::try_from(bytes)
        .ok()
        .filter(|size| (1..=LARGEST_MESSAGE).contains(size))
        .ok_or_else(|| format!("`{text}` is not the size of a message; it must be 1 to 1456 bytes"))
}

/// The size of a buffer of messages: at least 1 MiB.
pub fn buffer_size(text: &str) -> Result<u64, String> {
    let bytes = parse_bytes_in(text, 1).map_err(|error| error.to_string())?;
    if bytes < LEAST_BUFFER {
        return Err(format!("`{text}` is too small; it must be at least 1MiB"));
    }
    Ok(bytes)
}

/// A limit of a number: at least 1, or -1 for no limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limit(pub Option<u64>);

impl FromStr for Limit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, punctual_units::parse_count(text)) {
            ("-1", _) => Ok(Self(None)),
            (_, Ok(number @ 1..)) => Ok(Self(Some(number))),
            _ => Err(format!("`{text}` must be a whole number from 1 up, or -1 for no limit")),
        }
    }
}

/// The longest time that work may gather: with more, ACKs, which are due each 10 ms, would come too
/// late for any sender.
const LONGEST_COALESCE: Duration = Duration::from_millis(100);

const SHORTEST_PERIOD: Duration = Duration::from_millis(10);

/// The least size of a buffer of messages: the largest one fits several times.
const LEAST_BUFFER: u64 = 1 << 20;

/// The most bytes of a live message: an Ethernet frame less the headers of IP, UDP and SRT.
const LARGEST_MESSAGE: usize = 1_456;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bare_numbers_have_the_units_of_srt_xtransmit() {
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(seconds("1min"), Ok(Duration::from_secs(60)));
        assert_eq!(milliseconds("100"), Ok(Duration::from_millis(100)));
        assert_eq!(rate("5000000"), Ok(Bitrate::from_mbps(5)));
        assert_eq!(rate("5Mbps"), Ok(Bitrate::from_mbps(5)));
        assert_eq!(message_size("1316"), Ok(1316));
        assert_eq!("-1".parse(), Ok(Limit(None)));
        assert_eq!("10k".parse(), Ok(Limit(Some(10_000))));
    }

    #[test]
    fn values_out_of_range_name_the_range() {
        assert!(message_size("1457").unwrap_err().contains("1 to 1456"));
        assert!(message_size("0").unwrap_err().contains("1 to 1456"));
        assert!(period("1ms").unwrap_err().contains("at least 10ms"));
        assert_eq!(coalesce("200us"), Ok(Duration::from_micros(200)));
        assert!(coalesce("101").unwrap_err().contains("0 to 100ms"));
        for wrong in ["0", "-2", "1.5", "many"] {
            assert!(wrong.parse::<Limit>().unwrap_err().contains("-1 for no limit"));
        }
    }
}
