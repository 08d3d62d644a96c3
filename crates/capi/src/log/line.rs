//! A message of the log, and its text.

use std::ffi::c_int;
use std::fmt::Write as _;

/// The levels of the system's log.
pub(crate) const ERROR: c_int = 3;
pub(crate) const WARNING: c_int = 4;
pub(crate) const NOTICE: c_int = 5;
pub(crate) const DEBUG: c_int = 7;

/// The parts of a line that are left out.
pub(super) const NO_TIME: c_int = 1;
pub(super) const NO_THREAD: c_int = 2;
pub(super) const NO_SEVERITY: c_int = 4;
pub(super) const NO_LINE_BREAK: c_int = 8;

/// A message of the log.
pub(crate) struct Line<'a> {
    pub(crate) level: c_int,
    /// The number of its functional area and its short name.
    pub(crate) area: (c_int, &'static str),
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    pub(crate) text: &'a str,
}

/// A message with its text, which waits for its delivery.
#[derive(Clone, Debug, Default)]
pub(super) struct WrittenMessage {
    pub(super) level: c_int,
    pub(super) area: &'static str,
    pub(super) file: String,
    pub(super) line: c_int,
    pub(super) text: String,
}

impl WrittenMessage {
    /// A message of this time and thread, without the parts that `flags` leaves out.
    pub(super) fn new(line: &Line<'_>, flags: c_int) -> Self {
        Self {
            level: line.level,
            area: line.area.1,
            file: line.file.to_owned(),
            line: c_int::try_from(line.line).unwrap_or(0),
            text: format(line, flags),
        }
    }
}

/// A line in libsrt's form.
fn format(line: &Line<'_>, flags: c_int) -> String {
    let mut text = String::new();
    if flags & NO_TIME == 0 {
        text.push_str(&time_of_day());
    }
    if flags & NO_THREAD == 0 {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("program");
        // Writing into a string does not fail.
        let _ = write!(text, "/{name}");
    }
    if flags & NO_SEVERITY == 0 {
        let mark = match line.level {
            ..=ERROR => "*E",
            WARNING => "!W",
            NOTICE => ".N",
            _ => " D",
        };
        let _ = write!(text, "{mark}:SRT.{}", line.area.1);
    }
    let _ = write!(text, ": {}", line.text);
    if flags & NO_LINE_BREAK == 0 {
        text.push('\n');
    }
    text
}

/// The time of day, in the zone of the system.
fn time_of_day() -> String {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    let seconds = libc::time_t::try_from(now.as_secs()).unwrap_or(0);
    // SAFETY: all bytes zero are a valid value; the function only reads `seconds` and writes it.
    let local = unsafe {
        let mut local: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut local);
        local
    };
    let (hour, minute, second) = (local.tm_hour, local.tm_min, local.tm_sec);
    format!("{hour:02}:{minute:02}:{second:02}.{:06}", now.subsec_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_libsrts_form_and_leaves_parts_out() {
        let line = Line {
            level: WARNING,
            area: (2, "cn"),
            file: "listener.rs",
            line: 7,
            text: "a caller was refused",
        };
        let bare = format(&line, NO_TIME | NO_THREAD | NO_SEVERITY | NO_LINE_BREAK);
        assert_eq!(bare, ": a caller was refused");
        let whole = format(&line, NO_THREAD);
        assert!(whole.ends_with("!W:SRT.cn: a caller was refused\n"), "{whole}");
        assert_eq!(whole.find('!'), Some("00:00:00.000000".len()));
    }
}
