//! Calls of the program's functions, which may throw C++ exceptions.

/// Calls a function of the program. `None` if it throws an exception, which ends here.
///
/// Without the part in C++ (`build.rs`), an exception ends the program.
pub(crate) fn call<R>(hook: impl FnOnce() -> R) -> Option<R> {
    #[cfg(all(catches_exceptions, not(miri)))]
    return caught::call(hook);
    #[cfg(any(not(catches_exceptions), miri))]
    return Some(hook());
}

#[cfg(all(catches_exceptions, not(miri)))]
mod caught {
    use std::ffi::{c_int, c_void};

    unsafe extern "C" {
        /// `catch.cpp` describes it.
        fn punctual_catch(
            call: unsafe extern "C-unwind" fn(*mut c_void),
            place: *mut c_void,
        ) -> c_int;
    }

    /// A hook before its call, and its result afterwards.
    struct HookCall<F, R> {
        hook: Option<F>,
        result: Option<R>,
    }

    pub(super) fn call<R, F: FnOnce() -> R>(hook: F) -> Option<R> {
        let mut place = HookCall { hook: Some(hook), result: None };
        // SAFETY: `run` gets the place of its own types, which nothing else uses meanwhile.
        unsafe { punctual_catch(run::<F, R>, (&raw mut place).cast()) };
        place.result
    }

    /// Calls the hook of a place. An exception passes through this frame, which is allowed.
    ///
    /// # Safety
    ///
    /// The pointer leads to a `HookCall<F, R>` that nothing else uses.
    unsafe extern "C-unwind" fn run<F: FnOnce() -> R, R>(place: *mut c_void) {
        // SAFETY: the caller says so.
        let place = unsafe { &mut *place.cast::<HookCall<F, R>>() };
        place.result = place.hook.take().map(|hook| hook());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_that_throws_nothing_gives_its_result() {
        let text = String::from("moved into the hook");
        assert_eq!(call(move || text.len()), Some(19));
    }
}
