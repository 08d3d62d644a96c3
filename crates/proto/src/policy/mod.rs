//! The decisions that an application may replace by its own: a trait for each, with the facts that
//! it gets. The trait of round-trip times is that of the crate `punctual-rtt`.

pub(crate) mod congestion;
pub(crate) mod nak;
pub(crate) mod retransmit;
