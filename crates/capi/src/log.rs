//! The log: which messages are wanted, and where they go.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::{CString, c_int, c_void};
use std::fmt::Write as _;
use std::io::{Write as _, stderr};
use std::slice;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::abi::LogHandler;
use crate::border::quietly;
use crate::{fork, trace};

/// The levels of the system's log.
pub(crate) const ERROR: c_int = 3;
pub(crate) const WARNING: c_int = 4;
pub(crate) const NOTICE: c_int = 5;
pub(crate) const DEBUG: c_int = 7;

/// The parts of a line that are left out.
const NO_TIME: c_int = 1;
const NO_THREAD: c_int = 2;
const NO_SEVERITY: c_int = 4;
const NO_LINE_BREAK: c_int = 8;

/// The least serious level that is logged.
static LEVEL: AtomicI32 = AtomicI32::new(WARNING);
static FLAGS: AtomicI32 = AtomicI32::new(0);
static SINK: Mutex<Sink> = Mutex::new(Sink { handler: None, areas_off: BTreeSet::new() });

/// Where messages go.
struct Sink {
    handler: Option<(LogHandler, Opaque)>,
    /// The areas that are switched off.
    areas_off: BTreeSet<c_int>,
}

#[derive(Clone, Copy)]
struct Opaque(*mut c_void);

// SAFETY: the library only passes the pointer back.
unsafe impl Send for Opaque {}

/// A message of the log.
pub(crate) struct Line<'a> {
    pub(crate) level: c_int,
    /// The number of its functional area and its short name.
    pub(crate) area: (c_int, &'static str),
    pub(crate) file: &'a str,
    pub(crate) line: u32,
    pub(crate) text: &'a str,
}

/// The least serious level that is logged.
pub(crate) fn level() -> c_int {
    LEVEL.load(Ordering::Relaxed)
}

/// Passes a message to the program's handler, or writes it to the standard error output: at once,
/// or at the end of the call that this thread makes.
pub(crate) fn write(line: &Line<'_>) {
    let is_off = {
        let sink = SINK.lock().unwrap_or_else(PoisonError::into_inner);
        sink.areas_off.contains(&line.area.0)
    };
    if is_off {
        return;
    }
    let written = Written::new(line);
    // A thread that ends is in no call.
    if CALL.try_with(Cell::get).unwrap_or(Call::None) == Call::None {
        written.deliver();
        return;
    }
    CALL.set(Call::Logged);
    HELD.with_borrow_mut(|held| held.push(written));
}

/// Makes a call of the program. Its messages wait for its end: during the call this thread may hold
/// the lock of a socket that the handler asks about.
#[inline]
pub(crate) fn during<R>(call: impl FnOnce() -> R) -> R {
    let outer = CALL.try_with(|state| state.replace(Call::Quiet)).unwrap_or(Call::None);
    let result = call();
    let state = CALL.try_with(|state| state.replace(outer)).unwrap_or(Call::None);
    if state == Call::Logged {
        deliver_held(outer);
    }
    result
}

/// Delivers the messages of a call that has ended, unless it was part of another call.
#[cold]
fn deliver_held(outer: Call) {
    if outer != Call::None {
        CALL.set(Call::Logged);
        return;
    }
    for written in HELD.take() {
        written.deliver();
    }
}

/// The call that a thread makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Call {
    /// No call of the program, or the handler's own work.
    None,
    /// A call that has logged nothing yet.
    Quiet,
    /// A call whose messages wait.
    Logged,
}

thread_local! {
    static CALL: Cell<Call> = const { Cell::new(Call::None) };
    static HELD: RefCell<Vec<Written>> = const { RefCell::new(Vec::new()) };
}

/// A message with its text.
struct Written {
    level: c_int,
    area: &'static str,
    file: String,
    line: c_int,
    text: String,
}

impl Written {
    fn new(line: &Line<'_>) -> Self {
        Self {
            level: line.level,
            area: line.area.1,
            file: line.file.to_owned(),
            line: c_int::try_from(line.line).unwrap_or(0),
            text: format(line, FLAGS.load(Ordering::Relaxed)),
        }
    }

    fn deliver(self) {
        // The handler may call the library, which may log: the lock is not held meanwhile.
        let handler = SINK.lock().unwrap_or_else(PoisonError::into_inner).handler;
        let Some((handler, opaque)) = handler else {
            // There is nobody to tell that the error output is closed.
            let _ = stderr().write_all(self.text.as_bytes());
            return;
        };
        let c_text = |text: &str| CString::new(text.replace('\0', " ")).unwrap_or_default();
        let (file, area, text) = (c_text(&self.file), c_text(self.area), c_text(&self.text));
        // SAFETY: the program says that the handler can be called from any thread.
        unsafe {
            handler(opaque.0, self.level, file.as_ptr(), self.line, area.as_ptr(), text.as_ptr());
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

/// Changes the log. In a child of the process nothing changes: another thread may hold the locks
/// for ever.
fn change(change: impl FnOnce()) {
    if !fork::is_child() {
        quietly((), change);
    }
}

/// Sets the least serious level that is logged.
#[unsafe(no_mangle)]
pub extern "C" fn srt_setloglevel(level: c_int) {
    change(|| {
        LEVEL.store(level, Ordering::Relaxed);
        trace::level_changed();
    });
}

/// Switches on a functional area.
#[unsafe(no_mangle)]
pub extern "C" fn srt_addlogfa(area: c_int) {
    change(|| {
        SINK.lock().unwrap_or_else(PoisonError::into_inner).areas_off.remove(&area);
    });
}

/// Switches off a functional area.
#[unsafe(no_mangle)]
pub extern "C" fn srt_dellogfa(area: c_int) {
    change(|| {
        SINK.lock().unwrap_or_else(PoisonError::into_inner).areas_off.insert(area);
    });
}

/// Switches on these functional areas alone.
///
/// # Safety
///
/// `areas` is null, or has `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_resetlogfa(areas: *const c_int, count: usize) {
    change(|| {
        let on = match areas.is_null() {
            true => &[],
            // SAFETY: the caller says so.
            false => unsafe { slice::from_raw_parts(areas, count) },
        };
        let off = trace::AREAS.iter().map(|area| area.0).filter(|area| !on.contains(area));
        SINK.lock().unwrap_or_else(PoisonError::into_inner).areas_off = off.collect();
    });
}

/// Sets the parts of a line that are left out.
#[unsafe(no_mangle)]
pub extern "C" fn srt_setlogflags(flags: c_int) {
    FLAGS.store(flags, Ordering::Relaxed);
}

/// Sets the function that gets the messages; null for the standard error output.
///
/// # Safety
///
/// `handler` is null, or can be called with `opaque` from any thread from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_setloghandler(opaque: *mut c_void, handler: Option<LogHandler>) {
    change(|| {
        let handler = handler.map(|handler| (handler, Opaque(opaque)));
        SINK.lock().unwrap_or_else(PoisonError::into_inner).handler = handler;
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char};

    use super::*;
    use crate::border;

    /// The process has one handler.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    extern "C" fn handler(
        opaque: *mut c_void,
        level: c_int,
        file: *const c_char,
        line: c_int,
        area: *const c_char,
        text: *const c_char,
    ) {
        // SAFETY: the texts end with NUL, and the pointer is that of the test.
        let (texts, lines) = unsafe {
            let texts = [file, area, text].map(|text| CStr::from_ptr(text).to_str().unwrap());
            (texts, &*opaque.cast::<Mutex<Vec<String>>>())
        };
        lines.lock().unwrap().push(format!("{level} {line} {}", texts.join(" ")));
    }

    #[test]
    fn a_handler_gets_the_lines_of_the_areas_that_are_on() {
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        let lines = Mutex::new(Vec::<String>::new());
        let write = |text, area| {
            write(&Line { level: ERROR, area, file: "a.rs", line: 7, text });
        };
        let areas = [2, 6];
        // SAFETY: the lines live until the handler is taken back; there are two areas.
        unsafe {
            srt_setloghandler((&raw const lines).cast_mut().cast(), Some(handler));
            srt_resetlogfa(areas.as_ptr(), areas.len());
        }
        srt_setlogflags(NO_TIME | NO_THREAD | NO_SEVERITY | NO_LINE_BREAK);
        write("a\0b", (2, "cn"));
        srt_dellogfa(2);
        write("off", (2, "cn"));
        srt_addlogfa(2);
        write("on", (2, "cn"));
        // SAFETY: null is allowed.
        unsafe {
            srt_resetlogfa(std::ptr::null(), 2);
            srt_setloghandler(std::ptr::null_mut(), None);
        }
        srt_setlogflags(0);
        trace::AREAS.iter().for_each(|area| srt_addlogfa(area.0));
        let lines = lines.into_inner().unwrap();
        assert_eq!(lines, ["3 7 a.rs cn : a b", "3 7 a.rs cn : on"]);
    }

    /// The events of a test, in their order.
    type Notes = Mutex<Vec<&'static str>>;

    extern "C" fn asking_handler(
        opaque: *mut c_void,
        _level: c_int,
        file: *const c_char,
        _line: c_int,
        _area: *const c_char,
        _text: *const c_char,
    ) {
        // The call of a handler is one of its own, and logs at its own end.
        quietly((), || {
            // SAFETY: the pointer is that of the test, and the text ends with NUL.
            let (notes, file) = unsafe { (&*opaque.cast::<Notes>(), CStr::from_ptr(file)) };
            // Other tests log, too.
            if file == c"held.rs" {
                notes.lock().unwrap().push("the handler");
            }
        });
    }

    #[test]
    fn messages_of_a_call_come_at_its_end_when_no_lock_is_held() {
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        let notes = Notes::default();
        let say = || {
            write(&Line { level: ERROR, area: (2, "cn"), file: "held.rs", line: 7, text: "text" });
        };
        // SAFETY: the notes live until the handler is taken back.
        unsafe { srt_setloghandler((&raw const notes).cast_mut().cast(), Some(asking_handler)) };
        let done = border::done(|| {
            let mut locked = notes.lock().unwrap();
            say();
            quietly((), say);
            locked.push("the end of the call");
            Ok(())
        });
        say();
        // SAFETY: null is allowed.
        unsafe { srt_setloghandler(std::ptr::null_mut(), None) };
        let notes = notes.into_inner().unwrap();
        assert_eq!(done, 0);
        assert_eq!(notes[0], "the end of the call");
        assert_eq!(notes[1..], ["the handler"; 3]);
    }

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
