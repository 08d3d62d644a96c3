use thiserror::Error;

/// Why a text is not a quantity. The message names the text, what is wrong with it and what would
/// be right.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ParseUnitError {
    /// There is a number but no unit.
    #[error("`{text}`: the unit is missing; did you mean `{suggestion}`?")]
    MissingUnit {
        /// The text that was parsed.
        text: String,
        /// The same number with the usual unit.
        suggestion: String,
    },
    /// There is a minus sign.
    #[error("`{text}`: a {quantity} is never negative")]
    Negative {
        /// The text that was parsed.
        text: String,
        /// The name of the quantity: "duration", "bit rate" and so on.
        quantity: &'static str,
    },
    /// There is no number where one should be.
    #[error("`{text}` is not a {quantity}; write it like `{example}`")]
    NotANumber {
        /// The text that was parsed.
        text: String,
        /// The name of the quantity: "duration", "bit rate" and so on.
        quantity: &'static str,
        /// Such a quantity, well written.
        example: &'static str,
    },
    /// A count of things has a fraction.
    #[error("`{text}` is not a whole number")]
    NotWhole {
        /// The text that was parsed.
        text: String,
    },
    /// The quantity is too large, or a share is more than everything.
    #[error("`{text}`: at most {most} is possible")]
    TooLarge {
        /// The text that was parsed.
        text: String,
        /// The largest possible quantity.
        most: &'static str,
    },
    /// The quantity is not zero but would be rounded to it.
    #[error("`{text}`: less than {least} is not possible, except 0")]
    TooSmall {
        /// The text that was parsed.
        text: String,
        /// The smallest possible quantity.
        least: &'static str,
    },
    /// A share without a percent sign that may as well be meant as a percentage.
    #[error("`{text}`: the `%` is missing; did you mean `{text}%`? (a bare share is less than 1)")]
    UnclearShare {
        /// The text that was parsed.
        text: String,
    },
    /// The unit is unknown and one that is known looks alike.
    #[error("`{text}`: unknown unit `{unit}`; did you mean `{suggestion}`?")]
    UnknownUnit {
        /// The text that was parsed.
        text: String,
        /// The unit in it.
        unit: String,
        /// The known unit that looks most like it.
        suggestion: &'static str,
    },
    /// The unit is unknown and looks like none that is known.
    #[error("`{text}`: unknown unit `{unit}`; a {quantity} is written like `{example}`")]
    UnlikelyUnit {
        /// The text that was parsed.
        text: String,
        /// The unit in it.
        unit: String,
        /// The name of the quantity: "duration", "bit rate" and so on.
        quantity: &'static str,
        /// Such a quantity, well written.
        example: &'static str,
    },
}
