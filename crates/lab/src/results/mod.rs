//! What runs gave: rows, summaries with intervals, and published figures to lay beside.

mod columns;

pub use columns::{NamedNumber, full_name, result_columns};
pub(crate) use columns::{link, quantiles, report, statistics};
