//! The surroundings in which the process was started: the time zone, and signals that are ignored.

use std::time::{SystemTime, UNIX_EPOCH};

/// The difference of the local time from UTC at `time`, in seconds to the east. Zero where the
/// system does not tell.
pub fn utc_offset(time: SystemTime) -> i32 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    imp::utc_offset(since.as_secs())
}

/// Whether SIGHUP is ignored, as it is under `nohup`; false where there are no signals.
pub fn ignores_hangup() -> bool {
    imp::ignores_hangup()
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "no safe wrapper reads the time zone or the effect of a signal")]
mod imp {
    use std::mem::MaybeUninit;
    use std::ptr;

    pub(super) fn utc_offset(seconds: u64) -> i32 {
        let Ok(seconds) = libc::time_t::try_from(seconds) else { return 0 };
        let mut local = MaybeUninit::<libc::tm>::uninit();
        // SAFETY: both pointers are valid for the call. The environment, which names the time zone,
        // is not changed by this program.
        let converted = unsafe { libc::localtime_r(&raw const seconds, local.as_mut_ptr()) };
        if converted.is_null() {
            return 0;
        }
        // SAFETY: the call succeeded, so it has filled all of it.
        let local = unsafe { local.assume_init() };
        i32::try_from(local.tm_gmtoff).unwrap_or(0)
    }

    pub(super) fn ignores_hangup() -> bool {
        let mut action = MaybeUninit::<libc::sigaction>::uninit();
        // SAFETY: without a new action the call changes nothing, and writes the present one to a
        // valid place.
        let asked = unsafe { libc::sigaction(libc::SIGHUP, ptr::null(), action.as_mut_ptr()) };
        // SAFETY: the call succeeded, so it has filled all of it.
        asked == 0 && unsafe { action.assume_init() }.sa_sigaction == libc::SIG_IGN
    }
}

#[cfg(not(unix))]
mod imp {
    pub(super) fn utc_offset(_: u64) -> i32 {
        0
    }

    pub(super) fn ignores_hangup() -> bool {
        false
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn the_offset_from_utc_is_one_that_a_zone_can_have() {
        let offset = utc_offset(UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_000));
        assert!((-12 * 3_600..=14 * 3_600).contains(&offset), "{offset}");
    }
}
