//! Checks the result and the error of a call.

use punctual_srt::errors::{srt_clearlasterror, srt_getlasterror};

/// The documented errors.
pub(crate) const CONNSETUP: i32 = 1000;
pub(crate) const NOSERVER: i32 = 1001;
pub(crate) const CONNREJ: i32 = 1002;
pub(crate) const SOCKFAIL: i32 = 1003;
pub(crate) const SECFAIL: i32 = 1004;
pub(crate) const SCLOSED: i32 = 1005;
pub(crate) const CONNFAIL: i32 = 2000;
pub(crate) const CONNLOST: i32 = 2001;
pub(crate) const NOCONN: i32 = 2002;
pub(crate) const INVRDOFF: i32 = 4001;
pub(crate) const RDPERM: i32 = 4002;
pub(crate) const INVWROFF: i32 = 4003;
pub(crate) const WRPERM: i32 = 4004;
pub(crate) const INVOP: i32 = 5000;
pub(crate) const BOUNDSOCK: i32 = 5001;
pub(crate) const CONNSOCK: i32 = 5002;
pub(crate) const INVPARAM: i32 = 5003;
pub(crate) const INVSOCK: i32 = 5004;
pub(crate) const UNBOUNDSOCK: i32 = 5005;
pub(crate) const NOLISTEN: i32 = 5006;
pub(crate) const RDVNOSERV: i32 = 5007;
pub(crate) const RDVUNBOUND: i32 = 5008;
pub(crate) const INVALMSGAPI: i32 = 5009;
pub(crate) const INVALBUFFERAPI: i32 = 5010;
pub(crate) const DUPLISTEN: i32 = 5011;
pub(crate) const LARGEMSG: i32 = 5012;
pub(crate) const INVPOLLID: i32 = 5013;
pub(crate) const EPOLLEMPTY: i32 = 5014;
pub(crate) const BINDCONFLICT: i32 = 5015;
pub(crate) const ASYNCSND: i32 = 6001;
pub(crate) const ASYNCRCV: i32 = 6002;
pub(crate) const TIMEOUT: i32 = 6003;
pub(crate) const PEERERR: i32 = 7000;

/// Forgets the last error, so that the next call's can be seen.
pub(crate) fn begin() {
    srt_clearlasterror();
}

/// The last error: its number, and the system's.
fn last() -> (i32, i32) {
    let mut system = i32::MIN;
    // SAFETY: the number can be written.
    let code = unsafe { srt_getlasterror(&raw mut system) };
    (code, system)
}

/// Checks the result of a call: not negative without an error, or -1 with one of these errors. One
/// of them is set if and only if the call failed. Returns the error.
#[track_caller]
pub(crate) fn judge(call: &str, result: impl Into<i64>, documented: &[i32]) -> Option<i32> {
    let result = result.into();
    let (code, system) = last();
    if result >= 0 {
        assert_eq!((code, system), (0, 0), "{call} returned {result} and set an error");
        return None;
    }
    assert_eq!(result, -1, "{call} returned {result}");
    assert!(documented.contains(&code), "{call} failed with {code}, not one of {documented:?}");
    let of_system = [CONNSETUP, SOCKFAIL, INVRDOFF, RDPERM, INVWROFF, WRPERM];
    assert!(system == 0 || of_system.contains(&code), "{call}: {code} with errno {system}");
    Some(code)
}

/// Checks a call that uses the system's descriptors: its errors have the number of success, with
/// the system's number beside it.
#[track_caller]
pub(crate) fn judge_system(call: &str, result: i32, documented: &[i32]) -> Option<i32> {
    let (code, system) = last();
    if result == -1 && code == 0 {
        assert_ne!(system, 0, "{call} failed without an error");
        return Some(0);
    }
    judge(call, result, documented)
}

/// Checks a call that sets no error.
#[track_caller]
pub(crate) fn judge_quiet(call: &str) {
    assert_eq!(last(), (0, 0), "{call} set an error");
}
