use std::io;

use thiserror::Error;

/// Why the two sides cannot be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TunError {
    /// The process may not make network namespaces or devices.
    #[error(
        "network namespaces need root, or CAP_SYS_ADMIN and CAP_NET_ADMIN ({0}): run it by sudo; \
         in a container allow both; or emulate for UDP alone, which needs no privilege"
    )]
    Privilege(#[source] io::Error),
    /// The system has no TUN devices.
    #[error(
        "there is no /dev/net/tun ({0}): load the driver by `modprobe tun`; start a container \
         with --device /dev/net/tun"
    )]
    NoTun(#[source] io::Error),
    /// The kernel makes no network namespace.
    #[error("a network namespace cannot be made: {0}")]
    Namespace(#[source] io::Error),
    /// A namespace was made, but not what belongs into it.
    #[error("a network namespace cannot be set up: {0}")]
    SetUp(#[source] io::Error),
    /// The system has no thread to give.
    #[error("a thread cannot be started: {0}")]
    Thread(#[source] io::Error),
}

impl TunError {
    pub(super) fn namespace(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege(error),
            _ => Self::Namespace(error),
        }
    }

    pub(super) fn device(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::Privilege(error),
            // No file, or a file without a driver behind it.
            io::ErrorKind::NotFound => Self::NoTun(error),
            _ if error.raw_os_error() == Some(NO_DEVICE) => Self::NoTun(error),
            _ => Self::SetUp(error),
        }
    }
}

/// `ENODEV`
const NO_DEVICE: i32 = 19;
