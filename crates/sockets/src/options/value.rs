//! The values of options as libsrt's calls carry them.

use punctual::{CDefault, OptionKind};

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

impl Kind {
    /// The type of a default.
    pub(crate) const fn of(default: CDefault) -> Self {
        match default {
            CDefault::Bool(_) => Self::Bool,
            CDefault::Int(_) | CDefault::Word(..) => Self::Int,
            CDefault::Long(_) => Self::Long,
            CDefault::Text(_) => Self::Text,
            CDefault::NoLinger => Self::Linger,
        }
    }
}

/// The type of an option of our own: times are 32 bits wide, rates 64, and all others are texts.
pub(crate) const fn of_kind(kind: OptionKind) -> Kind {
    match kind {
        OptionKind::Switch => Kind::Bool,
        OptionKind::Milliseconds | OptionKind::Seconds => Kind::Int,
        OptionKind::Rate => Kind::Long,
        OptionKind::Number | OptionKind::Share | OptionKind::Text => Kind::Text,
    }
}

impl From<CDefault> for SocketOptionValue {
    fn from(default: CDefault) -> Self {
        match default {
            CDefault::Bool(on) => Self::Bool(on),
            CDefault::Int(number) | CDefault::Word(_, number) => Self::Int(number),
            CDefault::Long(number) => Self::Long(number),
            CDefault::Text(text) => Self::Text(text.into()),
            CDefault::NoLinger => Self::Linger { on: 0, seconds: 0 },
        }
    }
}

/// The value of an option.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SocketOptionValue {
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

impl SocketOptionValue {
    /// The number of a switch or of a whole number; 0 for others.
    pub fn number(&self) -> i64 {
        match self {
            Self::Bool(on) => i64::from(*on),
            Self::Int(number) => i64::from(*number),
            Self::Long(number) => *number,
            Self::Text(_) | Self::Linger { .. } => 0,
        }
    }

    /// The type.
    #[cfg(test)]
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Int,
            Self::Long(_) => Kind::Long,
            Self::Text(_) => Kind::Text,
            Self::Linger { .. } => Kind::Linger,
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
