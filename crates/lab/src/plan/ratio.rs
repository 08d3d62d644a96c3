//! Exact numbers: a plan computes the same on every machine.

use std::fmt;

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ratio {
    numerator: i128,
    /// More than zero.
    denominator: i128,
}

impl Ratio {
    /// `numerator` / `denominator`; `None` for a denominator of zero.
    pub(crate) fn new(numerator: i128, denominator: i128) -> Option<Self> {
        let (numerator, denominator) = match denominator {
            0 => return None,
            1.. => (numerator, denominator),
            _ => (numerator.checked_neg()?, denominator.checked_neg()?),
        };
        let divisor = gcd(numerator.unsigned_abs(), denominator.unsigned_abs());
        let divisor = i128::try_from(divisor).ok()?.max(1);
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// A whole number.
    pub(crate) const fn whole(number: i128) -> Self {
        Self { numerator: number, denominator: 1 }
    }

    /// Reads `12`, `0.5` or `1.5e6`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (sign, digits) = match mantissa.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, mantissa.strip_prefix('+').unwrap_or(mantissa)),
        };
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let all = format!("{whole}{fraction}").replace('_', "");
        if all.is_empty() || !all.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let decimals = i32::try_from(fraction.len()).ok()? - exponent;
        let number = all.parse::<i128>().ok()?.checked_mul(sign)?;
        let power = 10_i128.checked_pow(decimals.unsigned_abs())?;
        match decimals {
            0.. => Self::new(number, power),
            _ => Some(Self::whole(number.checked_mul(power)?)),
        }
    }

    pub(crate) fn plus(self, other: Self) -> Option<Self> {
        let left = self.numerator.checked_mul(other.denominator)?;
        let right = other.numerator.checked_mul(self.denominator)?;
        Self::new(left.checked_add(right)?, self.denominator.checked_mul(other.denominator)?)
    }

    pub(crate) fn minus(self, other: Self) -> Option<Self> {
        self.plus(Self { numerator: other.numerator.checked_neg()?, ..other })
    }

    pub(crate) fn times(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.numerator)?,
            self.denominator.checked_mul(other.denominator)?,
        )
    }

    /// `None` when divided by zero, or too large.
    pub(crate) fn over(self, other: Self) -> Option<Self> {
        Self::new(
            self.numerator.checked_mul(other.denominator)?,
            self.denominator.checked_mul(other.numerator)?,
        )
    }

    pub(crate) fn is_negative(self) -> bool {
        self.numerator < 0
    }

    /// Rounded half up.
    pub(crate) fn round(self) -> i128 {
        let doubled = self.numerator.saturating_mul(2).saturating_add(self.denominator);
        doubled.div_euclid(self.denominator.saturating_mul(2))
    }

    /// Whether it is a whole number.
    pub(crate) fn is_whole(self) -> bool {
        self.denominator == 1
    }

    /// The nearest floating-point number, or one beside it.
    #[expect(clippy::cast_precision_loss, reason = "for results: 53 bits are plenty")]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.minus(*other)?.numerator.cmp(&0))
    }
}

impl fmt::Display for Ratio {
    /// As a decimal number, with up to nine decimals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scaled = self.times(Self::whole(SCALE)).map_or(i128::MAX, Self::round);
        let sign = if scaled < 0 { "-" } else { "" };
        let scaled = scaled.unsigned_abs();
        let scale = SCALE.unsigned_abs();
        let (whole, fraction) = (scaled / scale, scaled % scale);
        let fraction = format!("{fraction:09}");
        match fraction.trim_end_matches('0') {
            "" => write!(f, "{sign}{whole}"),
            digits => write!(f, "{sign}{whole}.{digits}"),
        }
    }
}

fn gcd(a: u128, b: u128) -> u128 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

const SCALE: i128 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Ratio {
        Ratio::parse(text).unwrap()
    }

    #[test]
    fn decimals_are_exact() {
        assert_eq!(ratio("0.5"), Ratio::new(1, 2).unwrap());
        assert_eq!(ratio("1.5e6"), Ratio::whole(1_500_000));
        assert_eq!(ratio("25e-2"), ratio("0.25"));
        assert_eq!(ratio("0.1").plus(ratio("0.2")), Some(ratio("0.3")));
        for wrong in ["", ".", "1.2.3", "x", "-", "1e", "--1"] {
            assert_eq!(Ratio::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn printed_ratios_read_back() {
        for text in ["0", "-1", "0.5", "45000000", "-0.125", "0.000000001"] {
            assert_eq!(ratio(text).to_string(), text);
        }
        assert_eq!(Ratio::new(1, 3).unwrap().to_string(), "0.333333333");
    }

    #[test]
    fn halves_round_up() {
        assert_eq!(ratio("0.5").round(), 1);
        assert_eq!(ratio("-0.5").round(), 0);
        assert_eq!(ratio("-0.6").round(), -1);
        assert_eq!(ratio("2.4").round(), 2);
    }

    #[test]
    fn division_by_zero_and_overflow_give_nothing() {
        assert_eq!(ratio("1").over(ratio("0")), None);
        assert_eq!(Ratio::whole(i128::MAX).times(ratio("2")), None);
        assert_eq!(Ratio::parse("1e400"), None);
    }
}
