use crate::config::option::range::OptionRange;

/// An option as the C library has it: libsrt's number, type, default and rules, or a number of our
/// own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct COption {
    /// The number: libsrt's in `SRT_SOCKOPT`, or one from [`OWN`](Self::OWN) on. Programs hold the
    /// numbers, so that none is used again.
    pub number: i32,
    /// The default, which also determines the type; `None` if these are Punctual's.
    pub default: Option<CDefault>,
    /// The numbers that are accepted although they lie outside the range.
    pub takes: Takes,
}

/// libsrt's default of an option, in libsrt's type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CDefault {
    /// A switch.
    Bool(bool),
    /// A whole number of 32 bits.
    Int(i32),
    /// A whole number of 64 bits.
    Long(i64),
    /// Bytes.
    Text(&'static str),
    /// A `struct linger` that is off.
    NoLinger,
    /// A number that stands for a word: the words from 0 on, and the default's number.
    Word(&'static [&'static str], i32),
}

/// The numbers that libsrt accepts although Punctual's range does not have them: they stand for the
/// nearest number of the range.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Takes {
    /// None: a value outside the range is refused.
    Range,
    /// Larger ones.
    Larger,
    /// All from this one on.
    From(i64),
    /// Positive ones; 0 stands for a number of its own.
    Positive {
        /// The number that 0 stands for.
        zero: i64,
    },
    /// All values; invalid ones have no effect.
    All,
}

impl CDefault {
    /// Whether it is -1, which stands for no limit or no value.
    pub const fn is_minus_one(self) -> bool {
        matches!(self, Self::Int(-1) | Self::Long(-1))
    }
}

impl COption {
    /// The least number of an option of our own.
    pub const OWN: i32 = 1_001;

    /// An option of libsrt.
    pub const fn of_libsrt(number: i32, default: CDefault, takes: Takes) -> Self {
        Self { number, default: Some(default), takes }
    }

    /// An option that only Punctual has.
    pub const fn own(number: i32) -> Self {
        Self { number, default: None, takes: Takes::Range }
    }
}

impl Takes {
    /// The number of `range` that `number` stands for; `None` if it is refused.
    pub fn number(self, number: i64, range: OptionRange) -> Option<i64> {
        let nearest = range.nearest(number);
        match self {
            Self::Range => Some(number),
            Self::Larger => (nearest <= number).then_some(nearest),
            Self::From(least) => (number >= least).then_some(nearest),
            Self::Positive { zero } if number == 0 => Some(zero),
            Self::Positive { .. } => (number > 0).then_some(nearest),
            Self::All => Some(nearest),
        }
    }
}
