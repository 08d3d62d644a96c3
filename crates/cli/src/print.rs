//! The results of a command, on standard output.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};

use crate::exit::Failure;

/// Prints. A reader that ends early, as in `punctual uri | head`, is no failure.
pub(crate) fn print(text: impl Display) -> Result<(), Failure> {
    let mut out = io::stdout();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
