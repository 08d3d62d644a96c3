use std::fmt;
use std::time::Duration;

use punctual_units::{Bitrate, DisplayDuration};

/// The value of an option.
#[derive(Clone, PartialEq)]
pub enum OptionValue {
    /// On or off.
    Switch(bool),
    /// A whole number, in the option's unit.
    Number(i64),
    /// A time.
    Time(Duration),
    /// A rate.
    Rate(Bitrate),
    /// A share of packets, 0 to 1.
    Share(f64),
    /// Text, or a word for a special value, such as `auto`.
    Text(String),
    /// Bytes that need not be text.
    Bytes(Vec<u8>),
}

impl OptionValue {
    /// A switch, or the number 0 or 1; `None` for another value.
    pub const fn switch(&self) -> Option<bool> {
        match self {
            Self::Switch(on) => Some(*on),
            Self::Number(0) => Some(false),
            Self::Number(1) => Some(true),
            _ => None,
        }
    }

    /// A whole number in the range of `T`; `None` for another value.
    pub fn number<T: TryFrom<i64>>(&self) -> Option<T> {
        match self {
            Self::Number(number) => T::try_from(*number).ok(),
            _ => None,
        }
    }

    /// A time, or a number of milliseconds; `None` for another value.
    pub fn milliseconds(&self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(*time),
            _ => self.number().map(Duration::from_millis),
        }
    }

    /// A time, or a number of seconds; `None` for another value.
    pub fn seconds(&self) -> Option<Duration> {
        match self {
            Self::Time(time) => Some(*time),
            _ => self.number().map(Duration::from_secs),
        }
    }

    /// A rate, or a number of bytes per second; `None` for another value.
    pub fn rate(&self) -> Option<Bitrate> {
        match self {
            Self::Rate(rate) => Some(*rate),
            _ => self.number().map(Bitrate::from_bytes_per_sec),
        }
    }

    /// A share; `None` for another value.
    pub const fn share(&self) -> Option<f64> {
        match self {
            Self::Share(share) => Some(*share),
            _ => None,
        }
    }

    /// A text; `None` for another value.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes of a text, or other bytes; `None` for another value.
    pub fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Text(text) => Some(text.as_bytes()),
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// A text, or a number as text, for options whose values are words; `None` for another value.
    pub fn word(&self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.clone()),
            Self::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => DisplayDuration(*time).fmt(f),
            Self::Rate(rate) => rate.fmt(f),
            Self::Share(share) => write!(f, "{}%", share * 100.0),
            Self::Text(text) => f.write_str(text),
            Self::Bytes(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
        }
    }
}

impl fmt::Debug for OptionValue {
    /// Does not show text, which may be a passphrase.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "text of {} bytes", text.len()),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            other => write!(f, "{other}"),
        }
    }
}

impl From<bool> for OptionValue {
    fn from(on: bool) -> Self {
        Self::Switch(on)
    }
}

impl From<i64> for OptionValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<Duration> for OptionValue {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl From<Bitrate> for OptionValue {
    fn from(rate: Bitrate) -> Self {
        Self::Rate(rate)
    }
}

impl From<f64> for OptionValue {
    fn from(share: f64) -> Self {
        Self::Share(share)
    }
}

impl From<&str> for OptionValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}
