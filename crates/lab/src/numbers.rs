//! Counts as the numbers of results.

/// A column of results that runs fill, and its number in one of them.
pub type NamedNumber = (String, f64);

/// A count as a number of a result.
#[expect(clippy::cast_precision_loss, reason = "for results: 53 bits are plenty")]
pub(crate) const fn number(count: u64) -> f64 {
    count as f64
}

/// The size of a collection as a number of a result.
#[expect(clippy::cast_precision_loss, reason = "for results: 53 bits are plenty")]
pub(crate) const fn number_of(items: usize) -> f64 {
    items as f64
}
