//! The way of every call over the border: errors and panics become results that C programs know.

use std::panic::{AssertUnwindSafe, catch_unwind};

use punctual_sockets::{Code, Failure};

use crate::errors;

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
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
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
    catch_unwind(AssertUnwindSafe(call)).unwrap_or(failed)
}

/// A number as C programs get it.
pub(crate) fn int(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}
