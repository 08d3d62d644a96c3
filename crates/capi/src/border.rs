//! The way of every call over the border: errors and panics become results that C programs know.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_sockets::{Code, Failure};

use crate::{errors, log};

/// The result of a function that can fail.
pub(crate) trait Answer {
    /// The value for a failure.
    const FAILED: Self;
}

impl Answer for i32 {
    const FAILED: Self = -1;
}

impl Answer for i64 {
    const FAILED: Self = -1;
}

/// Makes a call. A failure is kept as the last error of the thread, and so is a panic.
pub(crate) fn answer<R: Answer>(call: impl FnOnce() -> Result<R, Failure>) -> R {
    let failure = match log::during(|| catch_unwind(AssertUnwindSafe(call))) {
        Ok(Ok(done)) => return done,
        Ok(Err(failure)) => failure,
        Err(_) => Code::Unknown.into(),
    };
    errors::set(failure);
    R::FAILED
}

/// Makes a call whose only result is whether it failed.
pub(crate) fn done(call: impl FnOnce() -> Result<(), Failure>) -> i32 {
    answer(|| call().map(|()| 0))
}

/// Makes a call that does not set the last error; `failed` is its result after a panic.
pub(crate) fn quietly<R>(failed: R, call: impl FnOnce() -> R) -> R {
    log::during(|| catch_unwind(AssertUnwindSafe(call))).unwrap_or(failed)
}

/// A number as C programs get it.
pub(crate) fn int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::errors::{srt_clearlasterror, srt_getlasterror};

    fn last() -> i32 {
        // SAFETY: null is allowed.
        unsafe { srt_getlasterror(ptr::null_mut()) }
    }

    #[test]
    fn a_failure_and_a_panic_become_the_last_error_and_success_does_not() {
        srt_clearlasterror();
        assert_eq!((answer(|| Ok(7)), last()), (7, 0));
        let failed: i64 = answer(|| Err(Code::Timeout.into()));
        assert_eq!((failed, last()), (-1, 6_003));
        assert_eq!((done(|| Ok(())), last()), (0, 6_003));
        assert_eq!((done(|| panic!("a bug")), last()), (-1, -1));
        assert_eq!(quietly(5, || panic!("a bug")), 5);
    }

    #[test]
    fn a_number_that_does_not_fit_stops_at_the_largest() {
        assert_eq!((int(7), int(usize::MAX)), (7, i32::MAX));
    }
}
