//! explorer
