//! The reasons of a refusal, with libsrt's numbers.

use punctual::{CloseReason, RejectReason};

/// The wire's numbers are 1,000 above those of libsrt's interface.
const WIRE_OFFSET: i32 = 1_000;
/// The first reason that an application can give.
pub(crate) const FIRST_OF_APPLICATION: i32 = 1_000;
/// No answer came in time.
pub(crate) const TIMEOUT: i32 = 16;
/// The socket was closed meanwhile.
const CLOSE: i32 = 7;

/// The number of a refusal in libsrt's interface.
pub(crate) fn number(reason: RejectReason) -> i32 {
    i32::try_from(reason.code()).unwrap_or(i32::MAX) - WIRE_OFFSET
}

/// The reason that an application gives by this number, 1,000 and up; otherwise the fallback.
pub(crate) fn of_application(number: i32) -> RejectReason {
    let number = u32::try_from(number).ok();
    number.and_then(RejectReason::from_api).unwrap_or(RejectReason::FALLBACK)
}

/// The number for the end of a call that failed.
pub(crate) fn of_close(reason: &CloseReason) -> i32 {
    match reason {
        CloseReason::Rejected(reason) | CloseReason::Incompatible(reason) => number(*reason),
        CloseReason::ConnectTimeout(_) | CloseReason::ConclusionTimeout(_) => TIMEOUT,
        CloseReason::Local => CLOSE,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_of_the_wire_have_libsrts_numbers() {
        assert_eq!(number(RejectReason::BACKLOG), 5);
        assert_eq!(number(of_application(1_403)), 1_403);
        assert_eq!(of_close(&CloseReason::Rejected(RejectReason::BACKLOG)), 5);
        assert_eq!(of_close(&CloseReason::ConnectTimeout(std::time::Duration::ZERO)), TIMEOUT);
        assert_eq!(of_close(&CloseReason::Local), CLOSE);
        assert_eq!(of_close(&CloseReason::Peer), 0);
    }

    #[test]
    fn a_number_that_no_application_can_give_becomes_the_fallback() {
        for number in [999, 0, -1, i32::MIN, i32::MAX] {
            assert_eq!(of_application(number), RejectReason::FALLBACK, "{number}");
        }
    }
}
