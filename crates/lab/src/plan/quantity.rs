//! Quantities of a plan: numbers with a dimension.

use std::fmt;
use std::time::Duration;

use punctual_units::{Bitrate, DisplayBytes, DisplayDuration};

use crate::plan::ratio::Ratio;

/// The dimension of a number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Dimension {
    /// Nanoseconds.
    Time,
    /// Bits a second.
    Rate,
    /// Bytes.
    Bytes,
    /// A share of a whole: 1 is all of it. Printed in percent.
    Share,
    /// Things, or a factor.
    Number,
}

/// A number with its dimension.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Quantity {
    /// In the unit of the dimension.
    pub number: Ratio,
    /// Its dimension.
    pub dimension: Dimension,
}

impl Dimension {
    /// With an article, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Time => "a time",
            Self::Rate => "a bit rate",
            Self::Bytes => "a number of bytes",
            Self::Share => "a share",
            Self::Number => "a number",
        }
    }

    /// The suffix of a column of such quantities; see [`Quantity::plain`].
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Time => "_ms",
            Self::Rate => "_mbps",
            Self::Bytes => "_bytes",
            Self::Share | Self::Number => "",
        }
    }

    /// How people abbreviate the unit of [`Quantity::plain`]; empty for none.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Time => "ms",
            Self::Rate => "Mb/s",
            Self::Bytes => "B",
            Self::Share | Self::Number => "",
        }
    }

    /// The number of the dimension's units in one of [`Quantity::plain`].
    fn plain_unit(self) -> i128 {
        match self {
            Self::Time | Self::Rate => 1_000_000,
            Self::Bytes | Self::Share | Self::Number => 1,
        }
    }
}

impl Quantity {
    pub(crate) fn new(number: Ratio, dimension: Dimension) -> Self {
        Self { number, dimension }
    }

    /// The number as it is written in results: milliseconds, megabits a second, bytes, a share of
    /// 1.
    pub fn plain(&self) -> Ratio {
        let unit = Ratio::whole(self.dimension.plain_unit());
        self.number.over(unit).unwrap_or(self.number)
    }

    /// The time that it is, if it is one.
    pub fn time(&self) -> Option<Duration> {
        self.of(Dimension::Time).map(Duration::from_nanos)
    }

    /// The rate that it is, if it is one.
    pub fn rate(&self) -> Option<Bitrate> {
        self.of(Dimension::Rate).map(Bitrate::from_bits_per_sec)
    }

    /// The number of bytes that it is, if it is one.
    pub fn bytes(&self) -> Option<u64> {
        self.of(Dimension::Bytes)
    }

    /// The whole number that it is, if it is one.
    pub fn count(&self) -> Option<u64> {
        if self.number.is_whole() { self.of(Dimension::Number) } else { None }
    }

    fn of(&self, dimension: Dimension) -> Option<u64> {
        if self.dimension != dimension {
            return None;
        }
        u64::try_from(self.number.round()).ok()
    }
}

impl fmt::Display for Quantity {
    /// With a unit, so that it reads back: `10 ms`, `5 Mb/s`, `64 kB`, `5%`, `3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let magnitude = u64::try_from(self.number.round().unsigned_abs()).unwrap_or(u64::MAX);
        let unsigned =
            matches!(self.dimension, Dimension::Time | Dimension::Rate | Dimension::Bytes);
        if unsigned && self.number.is_negative() {
            f.write_str("-")?;
        }
        match self.dimension {
            Dimension::Time => DisplayDuration(Duration::from_nanos(magnitude)).fmt(f),
            Dimension::Rate => Bitrate::from_bits_per_sec(magnitude).fmt(f),
            Dimension::Bytes => DisplayBytes(magnitude).fmt(f),
            Dimension::Share => {
                let percent = self.number.times(Ratio::whole(100)).unwrap_or(self.number);
                write!(f, "{percent}%")
            }
            Dimension::Number => write!(f, "{}", self.number),
        }
    }
}

/// The longest unit at the start of `text`, with its length.
pub(crate) fn leading_unit(text: &str) -> Option<(Dimension, Ratio, usize)> {
    let (name, dimension, factor) = UNITS
        .iter()
        .filter(|(name, ..)| text.starts_with(name) && ends_a_word(&text[name.len()..], name))
        .max_by_key(|(name, ..)| name.len())?;
    Some((*dimension, Ratio::parse(factor)?, name.len()))
}

fn ends_a_word(rest: &str, name: &str) -> bool {
    name == "%" || !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_')
}

/// Units, their dimensions, and their values in the dimension's unit.
const UNITS: &[(&str, Dimension, &str)] = &[
    ("ns", Dimension::Time, "1"),
    ("us", Dimension::Time, "1e3"),
    ("usec", Dimension::Time, "1e3"),
    ("µs", Dimension::Time, "1e3"),
    ("μs", Dimension::Time, "1e3"),
    ("ms", Dimension::Time, "1e6"),
    ("msec", Dimension::Time, "1e6"),
    ("s", Dimension::Time, "1e9"),
    ("sec", Dimension::Time, "1e9"),
    ("m", Dimension::Time, "60e9"),
    ("min", Dimension::Time, "60e9"),
    ("h", Dimension::Time, "3600e9"),
    ("bps", Dimension::Rate, "1"),
    ("b/s", Dimension::Rate, "1"),
    ("bit/s", Dimension::Rate, "1"),
    ("kbps", Dimension::Rate, "1e3"),
    ("kb/s", Dimension::Rate, "1e3"),
    ("kbit/s", Dimension::Rate, "1e3"),
    ("Mbps", Dimension::Rate, "1e6"),
    ("Mb/s", Dimension::Rate, "1e6"),
    ("Mbit/s", Dimension::Rate, "1e6"),
    ("Gbps", Dimension::Rate, "1e9"),
    ("Gb/s", Dimension::Rate, "1e9"),
    ("Gbit/s", Dimension::Rate, "1e9"),
    ("B/s", Dimension::Rate, "8"),
    ("kB/s", Dimension::Rate, "8e3"),
    ("MB/s", Dimension::Rate, "8e6"),
    ("GB/s", Dimension::Rate, "8e9"),
    ("KiB/s", Dimension::Rate, "8192"),
    ("MiB/s", Dimension::Rate, "8388608"),
    ("GiB/s", Dimension::Rate, "8589934592"),
    ("B", Dimension::Bytes, "1"),
    ("kB", Dimension::Bytes, "1e3"),
    ("KB", Dimension::Bytes, "1e3"),
    ("MB", Dimension::Bytes, "1e6"),
    ("GB", Dimension::Bytes, "1e9"),
    ("KiB", Dimension::Bytes, "1024"),
    ("MiB", Dimension::Bytes, "1048576"),
    ("GiB", Dimension::Bytes, "1073741824"),
    ("%", Dimension::Share, "0.01"),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(number: i128, dimension: Dimension) -> Quantity {
        Quantity::new(Ratio::whole(number), dimension)
    }

    #[test]
    fn the_longest_unit_counts_and_a_word_is_not_a_unit() {
        let unit =
            |text: &str| leading_unit(text).map(|(dimension, _, length)| (dimension, length));
        assert_eq!(unit("Mb/s + 1"), Some((Dimension::Rate, 4)));
        assert_eq!(unit("MB/s"), Some((Dimension::Rate, 4)));
        assert_eq!(unit("MB"), Some((Dimension::Bytes, 2)));
        assert_eq!(unit("µs"), Some((Dimension::Time, 3)));
        assert_eq!(unit("msx"), None);
        assert_eq!(unit("%"), Some((Dimension::Share, 1)));
        assert_eq!(unit("g-stationary"), None);
    }

    #[test]
    fn quantities_print_with_units_and_plainly_in_results() {
        let share = Quantity::new(Ratio::parse("0.05").unwrap(), Dimension::Share);
        for (quantity, text, plain) in [
            (quantity(10_500_000, Dimension::Time), "10.5 ms", "10.5"),
            (quantity(5_000_000, Dimension::Rate), "5 Mb/s", "5"),
            (quantity(125_000_000, Dimension::Bytes), "125 MB", "125000000"),
            (share, "5%", "0.05"),
            (quantity(-3, Dimension::Number), "-3", "-3"),
            (quantity(-3_000_000, Dimension::Time), "-3 ms", "-3"),
        ] {
            assert_eq!(quantity.to_string(), text);
            assert_eq!(quantity.plain().to_string(), plain);
        }
    }
}
