//! The punctual program.

fn main() {}
