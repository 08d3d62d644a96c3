//! `4 × RTT`, `1.25 * bitrate`: values computed from other values.

use crate::plan::quantity::{Dimension, Quantity, leading_unit};
use crate::plan::ratio::Ratio;

/// A sum of products of quantities and names.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expression {
    Quantity(Quantity),
    Name(String),
    Negative(Box<Expression>),
    Binary(Box<Expression>, Operator, Box<Expression>),
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    Over,
}

impl Expression {
    /// Reads a text as an expression.
    ///
    /// # Errors
    ///
    /// Says where it ceases to be one.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { tokens: tokens(text)?, at: 0 };
        let expression = parser.sum()?;
        match parser.tokens.get(parser.at) {
            None => Ok(expression),
            Some(token) => Err(format!("`{}` is not expected there", token.text())),
        }
    }

    /// The names in it, in their order.
    pub(crate) fn names(&self) -> Vec<&str> {
        match self {
            Self::Quantity(_) => Vec::new(),
            Self::Name(name) => vec![name],
            Self::Negative(inner) => inner.names(),
            Self::Binary(left, _, right) => {
                let mut names = left.names();
                names.extend(right.names());
                names
            }
        }
    }

    /// Whether it contains a quantity.
    pub(crate) fn has_quantity(&self) -> bool {
        match self {
            Self::Quantity(_) => true,
            Self::Name(_) => false,
            Self::Negative(inner) => inner.has_quantity(),
            Self::Binary(left, _, right) => left.has_quantity() || right.has_quantity(),
        }
    }

    /// Its exact value, with the values that `lookup` gives to names.
    ///
    /// # Errors
    ///
    /// The error of `lookup`, or the operation that is impossible.
    pub(crate) fn value(
        &self,
        lookup: &dyn Fn(&str) -> Result<Quantity, String>,
    ) -> Result<Quantity, String> {
        match self {
            Self::Quantity(quantity) => Ok(*quantity),
            Self::Name(name) => lookup(name),
            Self::Negative(inner) => {
                let inner = inner.value(lookup)?;
                let zero = Quantity::new(Ratio::whole(0), inner.dimension);
                combine(zero, Operator::Minus, inner)
            }
            Self::Binary(left, operator, right) => {
                combine(left.value(lookup)?, *operator, right.value(lookup)?)
            }
        }
    }

    /// Its value as a floating-point number, with quantities as they are written in results (see
    /// [`Quantity::plain`]); `None` where `lookup` has none, or for a division by zero.
    pub(crate) fn number(&self, lookup: &dyn Fn(&str) -> Option<f64>) -> Option<f64> {
        let number = match self {
            Self::Quantity(quantity) => quantity.plain().to_f64(),
            Self::Name(name) => lookup(name)?,
            Self::Negative(inner) => -inner.number(lookup)?,
            Self::Binary(left, operator, right) => {
                let (left, right) = (left.number(lookup)?, right.number(lookup)?);
                match operator {
                    Operator::Plus => left + right,
                    Operator::Minus => left - right,
                    Operator::Times => left * right,
                    Operator::Over => left / right,
                }
            }
        };
        number.is_finite().then_some(number)
    }
}

/// One operation on exact quantities.
fn combine(left: Quantity, operator: Operator, right: Quantity) -> Result<Quantity, String> {
    let impossible = || {
        let verb = match operator {
            Operator::Plus => "be added to",
            Operator::Minus => "be subtracted from",
            Operator::Times => "be multiplied with",
            Operator::Over => "divide",
        };
        format!("{} cannot {verb} {}", right.dimension.name(), left.dimension.name())
    };
    let dimension = dimension(left.dimension, operator, right.dimension).ok_or_else(impossible)?;
    // A rate is bits a second, and times are nanoseconds: bytes come by their quotient or product.
    let number = match (left.dimension, operator, right.dimension) {
        (Dimension::Time, Operator::Times, Dimension::Rate)
        | (Dimension::Rate, Operator::Times, Dimension::Time) => {
            left.number.times(right.number).and_then(|bits| bits.over(BIT_NANOSECONDS_A_BYTE))
        }
        (Dimension::Bytes, Operator::Over, Dimension::Rate | Dimension::Time) => {
            left.number.times(BIT_NANOSECONDS_A_BYTE).and_then(|bits| bits.over(right.number))
        }
        (_, Operator::Plus, _) => left.number.plus(right.number),
        (_, Operator::Minus, _) => left.number.minus(right.number),
        (_, Operator::Times, _) => left.number.times(right.number),
        (_, Operator::Over, _) => left.number.over(right.number),
    };
    number
        .map(|number| Quantity::new(number, dimension))
        .ok_or_else(|| "the result is too large, or something is divided by zero".to_owned())
}

fn dimension(left: Dimension, operator: Operator, right: Dimension) -> Option<Dimension> {
    use Dimension::{Bytes, Number, Rate, Share, Time};
    let is_factor = |dimension| matches!(dimension, Number | Share);
    match operator {
        Operator::Plus | Operator::Minus => match (left, right) {
            _ if left == right => Some(left),
            (Number, Share) | (Share, Number) => Some(Share),
            _ => None,
        },
        Operator::Times => match (left, right) {
            (Time, Rate) | (Rate, Time) => Some(Bytes),
            (Number, Number) => Some(Number),
            (Number, Share) | (Share, Number) => Some(Share),
            _ if is_factor(left) => Some(right),
            _ if is_factor(right) => Some(left),
            _ => None,
        },
        Operator::Over => match (left, right) {
            (Bytes, Rate) => Some(Time),
            (Bytes, Time) => Some(Rate),
            _ if left == right => Some(Number),
            _ if is_factor(right) => Some(left),
            _ => None,
        },
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Quantity(Quantity, String),
    Name(String),
    Operator(Operator, char),
    Open,
    Close,
}

impl Token {
    fn text(&self) -> String {
        match self {
            Self::Quantity(_, text) | Self::Name(text) => text.clone(),
            Self::Operator(_, sign) => sign.to_string(),
            Self::Open => "(".to_owned(),
            Self::Close => ")".to_owned(),
        }
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let after_value = matches!(tokens.last(), Some(Token::Quantity(..) | Token::Close));
        let (token, length) = match first {
            '+' => (Token::Operator(Operator::Plus, first), 1),
            '-' | '−' => (Token::Operator(Operator::Minus, first), first.len_utf8()),
            '*' | '×' | '·' => (Token::Operator(Operator::Times, first), first.len_utf8()),
            '/' | '÷' => (Token::Operator(Operator::Over, first), first.len_utf8()),
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '0'..='9' | '.' => quantity(rest)?,
            // `4 x RTT` and `4xRTT`, as people type it.
            'x' if after_value => (Token::Operator(Operator::Times, first), 1),
            _ if first.is_alphabetic() || first == '_' => {
                let length = name_length(rest);
                (Token::Name(rest[..length].to_owned()), length)
            }
            _ => return Err(format!("`{first}` has no meaning there")),
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

fn quantity(text: &str) -> Result<(Token, usize), String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
    let digits = digits.unwrap_or(text.len());
    let number = Ratio::parse(&text[..digits])
        .ok_or_else(|| format!("`{}` is not a number", &text[..digits]))?;
    let rest = &text[digits..];
    let space = rest.len() - rest.trim_start().len();
    if let Some((dimension, factor, unit)) = leading_unit(rest.trim_start()) {
        let length = digits + space + unit;
        let number = number.times(factor).ok_or("a number is too large")?;
        let token = Token::Quantity(Quantity::new(number, dimension), text[..length].to_owned());
        return Ok((token, length));
    }
    if space == 0 && rest.starts_with(|c: char| c.is_alphabetic() && c != 'x') {
        let word = &rest[..name_length(rest)];
        return Err(format!(
            "`{word}` is no unit; a product is written `{} * {word}`",
            &text[..digits]
        ));
    }
    let quantity = Quantity::new(number, Dimension::Number);
    Ok((Token::Quantity(quantity, text[..digits].to_owned()), digits))
}

/// Letters, digits, `_`, `.`, and `-` before a letter or digit: `burst-loss`, `sender.pktSent`.
fn name_length(text: &str) -> usize {
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        let joins = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
        let inside = character.is_alphanumeric()
            || character == '_'
            || (matches!(character, '.' | '-') && joins(next));
        if !inside {
            return at;
        }
    }
    text.len()
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn sum(&mut self) -> Result<Expression, String> {
        let mut left = self.product()?;
        while let Some(operator) = self.operator(&[Operator::Plus, Operator::Minus]) {
            left = Expression::Binary(Box::new(left), operator, Box::new(self.product()?));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expression, String> {
        let mut left = self.factor()?;
        while let Some(operator) = self.operator(&[Operator::Times, Operator::Over]) {
            left = Expression::Binary(Box::new(left), operator, Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expression, String> {
        let token = self.tokens.get(self.at).cloned();
        self.at += 1;
        match token {
            Some(Token::Quantity(quantity, _)) => Ok(Expression::Quantity(quantity)),
            Some(Token::Name(name)) => Ok(Expression::Name(name)),
            Some(Token::Operator(Operator::Minus, _)) => {
                Ok(Expression::Negative(Box::new(self.factor()?)))
            }
            Some(Token::Open) => {
                let inner = self.sum()?;
                match self.tokens.get(self.at) {
                    Some(Token::Close) => {
                        self.at += 1;
                        Ok(inner)
                    }
                    _ => Err("a `)` is missing".to_owned()),
                }
            }
            Some(other) => Err(format!("`{}` is not expected there", other.text())),
            None => Err("something is missing at its end".to_owned()),
        }
    }

    fn operator(&mut self, wanted: &[Operator]) -> Option<Operator> {
        match self.tokens.get(self.at) {
            Some(Token::Operator(operator, _)) if wanted.contains(operator) => {
                self.at += 1;
                Some(*operator)
            }
            _ => None,
        }
    }
}

/// Bits times nanoseconds in a second, of one byte.
const BIT_NANOSECONDS_A_BYTE: Ratio = Ratio::whole(8_000_000_000);

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> Result<String, String> {
        let lookup = |name: &str| {
            let text = match name {
                "RTT" => "20ms",
                "bitrate" => "5Mbps",
                "loss" => "5%",
                other => return Err(format!("no `{other}`")),
            };
            Expression::parse(text)?.value(&|_| Err(String::new()))
        };
        Expression::parse(text)?.value(&lookup).map(|value| value.to_string())
    }

    #[test]
    fn products_come_before_sums_and_units_are_kept() {
        for (text, expected) in [
            ("4 × RTT", "80 ms"),
            ("4xRTT", "80 ms"),
            ("0.5 * RTT", "10 ms"),
            ("2.5 x RTT + 10ms", "60 ms"),
            ("10 ms + RTT * 2.5", "60 ms"),
            ("(10ms + RTT) / 2", "15 ms"),
            ("1.25 * bitrate", "6.25 Mb/s"),
            ("bitrate + 25% * bitrate", "6.25 Mb/s"),
            ("bitrate * RTT", "12.5 kB"),
            ("12.5 kB / bitrate", "20 ms"),
            ("12.5 kB / RTT", "5 Mb/s"),
            ("2 * loss", "10%"),
            ("RTT / 1ms", "20"),
            ("1 - -2 * 3", "7"),
            ("7 - 2 - 1", "4"),
            ("5 Mb/s / 2", "2.5 Mb/s"),
            ("RTT - 30ms", "-10 ms"),
        ] {
            assert_eq!(value(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        for (text, expected) in [
            ("RTT + bitrate", "a bit rate cannot be added to a time"),
            ("RTT * RTT", "a time cannot be multiplied with a time"),
            ("4 * RTX", "no `RTX`"),
            ("4RTT", "`RTT` is no unit; a product is written `4 * RTT`"),
            ("RTT / 0", "divided by zero"),
            ("(RTT", "`)` is missing"),
            ("RTT *", "something is missing"),
            ("RTT 4", "`4` is not expected there"),
            ("* 4", "`*` is not expected there"),
            ("2%:8", "`:` has no meaning there"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn names_may_have_dots_and_hyphens_inside() {
        let expression = Expression::parse("sender.pktSent - burst-loss").unwrap();
        assert_eq!(expression.names(), ["sender.pktSent", "burst-loss"]);
    }

    #[test]
    fn formulas_over_numbers_have_no_value_without_their_columns() {
        let formula = Expression::parse("a / b + 10ms").unwrap();
        let number = |a: f64, b: f64| {
            formula.number(&|name| match name {
                "a" => Some(a),
                "b" => Some(b),
                _ => None,
            })
        };
        assert_eq!(number(1.0, 2.0), Some(10.5));
        assert_eq!(number(1.0, 0.0), None);
        assert_eq!(Expression::parse("c").unwrap().number(&|_| None), None);
    }
}
