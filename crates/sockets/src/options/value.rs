//! The values of options as libsrt's calls carry them.

/// The type of an option's values.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A switch: one byte, or a whole number.
    Bool,
    /// A whole number of 32 bits.
    Int,
    /// A whole number of 64 bits.
    Long,
    /// Bytes of any number.
    Text,
    /// libsrt's `struct linger`: a switch and a time in seconds.
    Linger,
}

/// The value of an option.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Value {
    /// A switch.
    Bool(bool),
    /// A whole number of 32 bits.
    Int(i32),
    /// A whole number of 64 bits.
    Long(i64),
    /// Bytes.
    Text(Vec<u8>),
    /// A linger time in seconds; `None` if it is off.
    Linger {
        /// Whether to linger.
        on: i32,
        /// The time in seconds.
        seconds: i32,
    },
}

impl Value {
    /// The number of a switch or of a whole number; 0 for others.
    pub fn number(&self) -> i64 {
        match self {
            Self::Bool(on) => i64::from(*on),
            Self::Int(number) => i64::from(*number),
            Self::Long(number) => *number,
            Self::Text(_) | Self::Linger { .. } => 0,
        }
    }

    /// The bytes of a text; none for others.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            _ => &[],
        }
    }

    /// The same value as text, for the options of our own.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Text(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => other.number().to_string(),
        }
    }
}
