//! The end of the program: exit codes.

pub use punctual_ends::{Failure, FailureKind};

/// The exit code after a second Ctrl-C: 128 and the number of the signal, as in shells.
pub const INTERRUPTED: u8 = 130;

/// The exit code of a command that ends with this failure.
pub fn code(failure: &Failure) -> u8 {
    match failure.kind() {
        FailureKind::Runtime | FailureKind::Unwritable | FailureKind::NoClock => 1,
        FailureKind::Usage | FailureKind::Exists => 2,
        FailureKind::Rejected(_) => 3,
        FailureKind::NoAnswer => 4,
        FailureKind::Interrupted => INTERRUPTED,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use punctual::{CloseReason, RejectReason};

    use super::*;

    #[test]
    fn each_end_has_its_exit_code() {
        let of = |reason: CloseReason| code(&Failure::from(reason));
        assert_eq!(of(CloseReason::Peer), 1);
        assert_eq!(of(CloseReason::Idle(Duration::from_secs(5))), 1);
        assert_eq!(code(&Failure::usage("")), 2);
        assert_eq!(of(CloseReason::Rejected(RejectReason::NOT_FOUND)), 3);
        assert_eq!(of(CloseReason::ConnectTimeout(Duration::from_secs(3))), 4);
        assert_eq!(of(CloseReason::ConclusionTimeout(Duration::from_secs(3))), 4);
    }
}
