//! The reasons of a refusal: libsrt's numbers and our words.

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

const TEXTS: [&str; 18] = [
    "no reason is known",
    "a system call failed",
    "the peer refused",
    "out of resources",
    "the handshake is malformed",
    "the listener's backlog is full",
    "an internal error",
    "the socket is closing",
    "the peer's version is too old",
    "the cookies of the rendezvous collide",
    "the passphrases differ",
    "one end wants encryption, the other does not",
    "message mode and stream mode do not mix",
    "the ends have different congestion controls",
    "the packet filters do not fit",
    "the groups do not fit",
    "no answer came in time",
    "the ciphers differ",
];

/// The reason with this number in words. All reasons of applications have one text, and an unknown
/// number has that of 0.
pub fn reason_text(number: i32) -> &'static str {
    match usize::try_from(number) {
        Ok(number) if number < TEXTS.len() => TEXTS[number],
        _ if number >= FIRST_OF_APPLICATION => "the application refused",
        _ => TEXTS[0],
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

    #[test]
    fn every_number_has_a_text() {
        assert_eq!(reason_text(5), "the listener's backlog is full");
        assert_eq!(reason_text(2_000), "the application refused");
        for number in [-1, 18, 999, i32::MIN] {
            assert_eq!(reason_text(number), reason_text(0), "{number}");
        }
    }
}
