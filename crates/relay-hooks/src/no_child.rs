//! Programs where there are no process groups: none run.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use crate::variables::Variables;

/// The end of a program.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum ChildEnd {
    /// It ended by itself, with this status.
    Exited(ExitStatus),
    /// It was ended, because its state had ended.
    Ended,
    /// It was ended, because it ran too long.
    TimedOut,
}

/// Fails, because without process groups a program could not be ended with all that it started.
pub(crate) async fn run(
    _: &[String],
    _: &Variables,
    _: &str,
    _: Option<Duration>,
    _: impl Future<Output = ()>,
) -> io::Result<ChildEnd> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "commands of hooks need Unix; use a URL"))
}
