use std::time::Duration;

/// The valid values of an option.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OptionRange {
    /// Numbers in the option's unit, or times.
    Numbers {
        /// The least one.
        least: i64,
        /// The largest one.
        most: i64,
        /// The range in words.
        text: &'static str,
    },
    /// Shares from zero on.
    Shares {
        /// The largest one.
        most: f64,
        /// The range in words.
        text: &'static str,
    },
    /// Values of this form.
    Form(&'static str),
}

impl OptionRange {
    /// The range in words, such as `0 to 65535 ms`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Numbers { text, .. } | Self::Shares { text, .. } | Self::Form(text) => text,
        }
    }

    /// The valid number that is nearest to this one.
    pub fn nearest(self, number: i64) -> i64 {
        match self {
            Self::Numbers { least, most, .. } => number.clamp(least, most),
            _ => number,
        }
    }

    pub(crate) fn contains(self, value: Measured) -> bool {
        match (self, value) {
            (Self::Numbers { least, most, .. }, Measured::Number(number)) => {
                (least..=most).contains(&number)
            }
            (Self::Numbers { least, most, .. }, Measured::Time(time)) => {
                (milliseconds(least)..=milliseconds(most)).contains(&time)
            }
            (Self::Shares { most, .. }, Measured::Share(share)) => (0.0..=most).contains(&share),
            _ => true,
        }
    }
}

fn milliseconds(number: i64) -> Duration {
    Duration::from_millis(u64::try_from(number).unwrap_or(0))
}

/// A value that has a place in a range.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Measured {
    Number(i64),
    /// Ranges of times are in milliseconds.
    Time(Duration),
    Share(f64),
}

impl From<usize> for Measured {
    fn from(number: usize) -> Self {
        Self::Number(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Measured {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<Duration> for Measured {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl From<f64> for Measured {
    fn from(share: f64) -> Self {
        Self::Share(share)
    }
}

/// A range of numbers: its text is made of the same literals.
macro_rules! numbers {
    ($least:literal, $most:literal) => {
        OptionRange::Numbers { least: $least, most: $most, text: concat!($least, " to ", $most) }
    };
    ($least:literal, $most:literal, $unit:literal) => {
        OptionRange::Numbers {
            least: $least,
            most: $most,
            text: concat!($least, " to ", $most, " ", $unit),
        }
    };
}
pub(crate) use numbers;
