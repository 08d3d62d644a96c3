//! x
pub mod expression;
pub mod quantity;
pub mod ratio;
