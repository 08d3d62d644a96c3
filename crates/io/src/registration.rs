//! File descriptors in tokio's reactor.

use std::io;
use std::os::fd::OwnedFd;

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Registers `fd` with the reactor of the current tokio runtime, for `interest` alone.
///
/// # Errors
///
/// Whatever the system says, for example that there are too many.
#[expect(unsafe_code, reason = "tokio offers no other way to register a file descriptor")]
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: `fd` is open and owned; it stays inside the `AsyncFd`, whose `OwnedFd` is never
    // replaced, until both are dropped, and `OwnedFd::as_raw_fd` always returns the same number.
    let registered = unsafe { AsyncFd::register_with_interest(fd, interest) };
    Ok(registered?)
}
