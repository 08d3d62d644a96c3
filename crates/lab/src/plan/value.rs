//! Values of parameters, and how they are read.

use std::fmt;
use std::time::Duration;

use punctual_units::{Bitrate, parse_bitrate_in, parse_bytes_in, parse_duration_in, parse_share};

use crate::plan::expression::Expression;
use crate::plan::quantity::{Dimension, Quantity};
use crate::plan::ratio::Ratio;

/// The value of a parameter in one run.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub enum ParameterValue {
    /// A number, perhaps with a unit.
    Quantity(Quantity),
    /// Any other value: a name, a switch, a special form.
    Text(String),
    /// A passphrase, which is shown nowhere and written into no result.
    Secret(SecretText),
}

/// A text that only those who use it see.
#[derive(Clone, Eq, Hash, PartialEq)]
pub struct SecretText(String);

impl SecretText {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// A form that may be shown: it only says whether there is a value.
    fn shown(&self) -> &'static str {
        if self.0.is_empty() { "" } else { "…" }
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl ParameterValue {
    /// The quantity that it is, if it is one.
    pub fn quantity(&self) -> Option<Quantity> {
        match self {
            Self::Quantity(quantity) => Some(*quantity),
            Self::Text(_) | Self::Secret(_) => None,
        }
    }

    /// The value as it is written in results: a bare number in the unit of the column, or the text.
    pub fn plain(&self) -> String {
        match self {
            Self::Quantity(quantity) => quantity.plain().to_string(),
            Self::Text(text) => text.clone(),
            Self::Secret(secret) => secret.shown().to_owned(),
        }
    }

    /// As it is set at an end: with a unit, and secrets as they are.
    pub(crate) fn exact(&self) -> String {
        match self {
            Self::Secret(SecretText(text)) => text.clone(),
            other => other.to_string(),
        }
    }
}

impl fmt::Display for ParameterValue {
    /// The value with a unit, as it could be written in a plan.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Quantity(quantity) => quantity.fmt(f),
            Self::Text(text) => f.write_str(text),
            Self::Secret(secret) => f.write_str(secret.shown()),
        }
    }
}

/// The unit of bare numbers, where a parameter has a dimension.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measure {
    pub(crate) dimension: Dimension,
    /// In the dimension's unit: 1,000,000 for bare milliseconds.
    pub(crate) bare: u64,
}

impl Measure {
    pub(crate) const MILLISECONDS: Self = Self { dimension: Dimension::Time, bare: 1_000_000 };
    pub(crate) const SECONDS: Self = Self { dimension: Dimension::Time, bare: 1_000_000_000 };
    pub(crate) const BITS_PER_SECOND: Self = Self { dimension: Dimension::Rate, bare: 1 };
    pub(crate) const BYTES_PER_SECOND: Self = Self { dimension: Dimension::Rate, bare: 8 };
    pub(crate) const BYTES: Self = Self { dimension: Dimension::Bytes, bare: 1 };
    pub(crate) const SHARE: Self = Self { dimension: Dimension::Share, bare: 1 };

    /// Reads a text as the program's options do; `None` if it is no such quantity.
    fn read(self, text: &str) -> Option<Quantity> {
        let Self { dimension, bare } = self;
        let number = match dimension {
            Dimension::Time => {
                let time = parse_duration_in(text, Duration::from_nanos(bare)).ok()?;
                Ratio::whole(i128::try_from(time.as_nanos()).ok()?)
            }
            Dimension::Rate => {
                let rate = parse_bitrate_in(text, Bitrate::from_bits_per_sec(bare)).ok()?;
                Ratio::whole(rate.as_bits_per_sec().into())
            }
            Dimension::Bytes => Ratio::whole(parse_bytes_in(text, bare).ok()?.into()),
            Dimension::Share => {
                parse_share(text).ok()?;
                match text.strip_suffix('%') {
                    Some(percent) => Ratio::parse(percent.trim_end())?.over(Ratio::whole(100))?,
                    None => Ratio::parse(text)?,
                }
            }
            Dimension::Number => Ratio::parse(text)?,
        };
        Some(Quantity::new(number, dimension))
    }
}

/// Reads a text that is no expression over other parameters: a quantity if it is one, as the
/// parameter's `measure` has it or by its own unit, else a text.
pub(crate) fn literal(text: &str, measure: Option<Measure>) -> ParameterValue {
    let text = text.trim();
    if let Some(quantity) = measure.and_then(|measure| measure.read(text)) {
        return ParameterValue::Quantity(quantity);
    }
    match (measure, Expression::parse(text)) {
        // A bare number where a unit is wanted, such as -1 for no limit, is kept as it is.
        (Some(_), Ok(_)) => ParameterValue::Text(text.to_owned()),
        (None, Ok(Expression::Quantity(quantity))) => ParameterValue::Quantity(quantity),
        (None, Ok(Expression::Negative(inner))) => match *inner {
            Expression::Quantity(quantity) => negative(quantity, text),
            _ => ParameterValue::Text(text.to_owned()),
        },
        _ => ParameterValue::Text(text.to_owned()),
    }
}

fn negative(quantity: Quantity, text: &str) -> ParameterValue {
    match Ratio::whole(0).minus(quantity.number) {
        Some(number) => ParameterValue::Quantity(Quantity { number, ..quantity }),
        None => ParameterValue::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_value_reads_the_same_however_it_is_written() {
        let milliseconds = Some(Measure::MILLISECONDS);
        for text in ["120", "120ms", "120 ms", "0.12s"] {
            assert_eq!(literal(text, milliseconds).to_string(), "120 ms");
        }
        for text in ["5%", "0.05", "5.0 %"] {
            assert_eq!(literal(text, Some(Measure::SHARE)).to_string(), "5%");
        }
        let rate = Some(Measure::BYTES_PER_SECOND);
        assert_eq!(literal("1250000", rate), literal("10Mbps", rate));
        assert_eq!(literal("-1", rate), ParameterValue::Text("-1".to_owned()));
    }

    #[test]
    fn a_value_that_is_no_quantity_stays_a_text() {
        for text in ["aggressive", "2%:8", "4g-stationary", "uniform:4ms", "true", "a/b.csv"] {
            assert_eq!(literal(text, None), ParameterValue::Text(text.to_owned()));
        }
        assert_eq!(literal("-3", None).plain(), "-3");
        assert_eq!(literal("300ms", None).plain(), "300");
    }
}
