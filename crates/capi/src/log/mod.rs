//! The log: which messages are wanted, and where they go.
//!
//! A handler may call the library. So a message is delivered when its thread holds no lock of the
//! library: at the end of the call that the program makes, or by the messenger.

mod line;
mod messenger;
mod target;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::slice;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::line::WrittenMessage;
pub(crate) use self::line::{DEBUG, ERROR, Line, NOTICE, WARNING};
use self::messenger::Messenger;
use self::target::{LogTarget, is_in_handler};
use crate::abi::LogHandler;
use crate::border::quietly;
use crate::{fork, trace};

/// The least serious level that is logged.
static LEVEL: AtomicI32 = AtomicI32::new(WARNING);
static FLAGS: AtomicI32 = AtomicI32::new(0);
static SINK: Mutex<Sink> =
    Mutex::new(Sink { target: LogTarget::STANDARD_ERROR, areas_off: BTreeSet::new() });
static MESSENGER: Messenger = Messenger::new();

/// Where messages go.
struct Sink {
    target: LogTarget,
    /// The areas that are switched off.
    areas_off: BTreeSet<c_int>,
}

fn sink() -> MutexGuard<'static, Sink> {
    SINK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The least serious level that is logged.
pub(crate) fn level() -> c_int {
    LEVEL.load(Ordering::Relaxed)
}

/// Writes a message for the program's handler, or for the standard error output. It is delivered at
/// the end of the call that this thread makes, or soon, by another thread.
pub(crate) fn write(line: &Line<'_>) {
    if sink().areas_off.contains(&line.area.0) {
        return;
    }
    let written = WrittenMessage::new(line, FLAGS.load(Ordering::Relaxed));
    let left = if CALL.get() == ThreadCall::None { Some(written) } else { hold(written) };
    if let Some(written) = left {
        let target = sink().target.clone();
        MESSENGER.take(written, target);
    }
}

/// Keeps a message until the end of the call. Returns it if the thread ends and has no place for it
/// any more.
fn hold(written: WrittenMessage) -> Option<WrittenMessage> {
    let mut written = Some(written);
    let kept = HELD.try_with(|held| held.borrow_mut().extend(written.take()));
    if kept.is_ok() {
        CALL.set(ThreadCall::Logged);
    }
    written
}

/// Delivers what waits, and ends the thread that does.
pub(crate) fn end() {
    MESSENGER.end();
}

/// Makes a call of the program. Its messages wait for its end: during the call this thread may hold
/// the lock of a socket that the handler asks about.
#[inline]
pub(crate) fn during<R>(call: impl FnOnce() -> R) -> R {
    let outer = CALL.replace(ThreadCall::Quiet);
    let result = call();
    if CALL.replace(outer) == ThreadCall::Logged {
        deliver_held(outer);
    }
    result
}

/// Delivers the messages of a call that has ended, unless it was part of another call.
#[cold]
fn deliver_held(outer: ThreadCall) {
    if outer != ThreadCall::None {
        CALL.set(ThreadCall::Logged);
        return;
    }
    let target = sink().target.clone();
    for written in HELD.take() {
        if is_in_handler() {
            // A handler whose calls log would call itself without end.
            MESSENGER.take(written, target.clone());
        } else {
            target.deliver(&written);
        }
    }
    drop(target);
    MESSENGER.note_delivery();
}

/// The call that a thread makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ThreadCall {
    /// No call of the program, or the handler's own work.
    None,
    /// A call that has logged nothing yet.
    Quiet,
    /// A call whose messages wait.
    Logged,
}

thread_local! {
    static CALL: Cell<ThreadCall> = const { Cell::new(ThreadCall::None) };
    static HELD: RefCell<Vec<WrittenMessage>> = const { RefCell::new(Vec::new()) };
}

/// Changes the log. In a child of the process nothing changes: another thread may hold the locks
/// for ever.
fn change(change: impl FnOnce()) {
    if !fork::is_child() {
        quietly((), change);
    }
}

/// Sets the least serious level that is logged. Messages before are delivered when it returns.
#[unsafe(no_mangle)]
pub extern "C" fn srt_setloglevel(level: c_int) {
    change(|| {
        LEVEL.store(level, Ordering::Relaxed);
        trace::level_changed();
        MESSENGER.settle(&LogTarget::STANDARD_ERROR);
    });
}

/// Switches on a functional area.
#[unsafe(no_mangle)]
pub extern "C" fn srt_addlogfa(area: c_int) {
    change(|| {
        sink().areas_off.remove(&area);
    });
}

/// Switches off a functional area.
#[unsafe(no_mangle)]
pub extern "C" fn srt_dellogfa(area: c_int) {
    change(|| {
        sink().areas_off.insert(area);
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
        sink().areas_off = off.collect();
    });
}

/// Sets the parts of a line that are left out.
#[unsafe(no_mangle)]
pub extern "C" fn srt_setlogflags(flags: c_int) {
    FLAGS.store(flags, Ordering::Relaxed);
}

/// Sets the function that gets the messages; null for the standard error output. The function that
/// was set before is no longer called when this returns, except to a handler that sets another.
///
/// # Safety
///
/// `handler` is null, or can be called with `opaque` from any thread from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_setloghandler(opaque: *mut c_void, handler: Option<LogHandler>) {
    change(|| {
        let target = match handler {
            // SAFETY: the caller says so.
            Some(handler) => unsafe { LogTarget::handler(handler, opaque) },
            None => LogTarget::STANDARD_ERROR,
        };
        let old = std::mem::replace(&mut sink().target, target);
        MESSENGER.settle(&old);
    });
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, c_char};

    use super::line::{NO_LINE_BREAK, NO_SEVERITY, NO_THREAD, NO_TIME};
    use super::*;
    use crate::border;

    /// The process has one handler.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    extern "C-unwind" fn handler(
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

    extern "C-unwind" fn asking_handler(
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

    /// Sets this handler while `work` runs. Returns what it has noted.
    fn noted(work: impl FnOnce(&Notes)) -> Vec<&'static str> {
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        let notes = Notes::default();
        // SAFETY: the notes live until the handler is taken back.
        unsafe { srt_setloghandler((&raw const notes).cast_mut().cast(), Some(asking_handler)) };
        work(&notes);
        // SAFETY: null is allowed.
        unsafe { srt_setloghandler(std::ptr::null_mut(), None) };
        notes.into_inner().unwrap()
    }

    fn say() {
        write(&Line { level: ERROR, area: (2, "cn"), file: "held.rs", line: 7, text: "text" });
    }

    #[test]
    fn messages_of_a_call_come_at_its_end_when_no_lock_is_held() {
        let notes = noted(|notes| {
            let done = border::done(|| {
                let mut locked = notes.lock().unwrap();
                say();
                quietly((), say);
                locked.push("the end of the call");
                Ok(())
            });
            assert_eq!(done, 0);
            notes.lock().unwrap().push("after the call");
        });
        assert_eq!(notes, ["the end of the call", "the handler", "the handler", "after the call"]);
    }

    #[test]
    fn a_message_of_a_thread_that_holds_a_lock_comes_on_another_one() {
        let notes = noted(|notes| {
            // No call of the program, as in the library's own threads.
            let mut locked = notes.lock().unwrap();
            say();
            locked.push("the lock is released");
        });
        assert_eq!(notes, ["the lock is released", "the handler"]);
    }

    /// The calls of a handler that logs itself, and the most of them inside each other.
    #[derive(Default)]
    struct Loud {
        calls: AtomicI32,
        depth: AtomicI32,
        deepest: AtomicI32,
    }

    extern "C-unwind" fn loud_handler(
        opaque: *mut c_void,
        _level: c_int,
        _file: *const c_char,
        _line: c_int,
        _area: *const c_char,
        _text: *const c_char,
    ) {
        // SAFETY: the pointer is that of the test.
        let loud = unsafe { &*opaque.cast::<Loud>() };
        let depth = loud.depth.fetch_add(1, Ordering::SeqCst) + 1;
        loud.deepest.fetch_max(depth, Ordering::SeqCst);
        if loud.calls.fetch_add(1, Ordering::SeqCst) < 5 {
            quietly((), say);
        }
        loud.depth.fetch_sub(1, Ordering::SeqCst);
    }

    #[test]
    fn a_handler_whose_calls_log_gets_their_messages_after_its_end() {
        let _guard = ONE_AT_A_TIME.lock().unwrap();
        let loud = Loud::default();
        // SAFETY: the target lives until the handler is taken back.
        unsafe { srt_setloghandler((&raw const loud).cast_mut().cast(), Some(loud_handler)) };
        say();
        while loud.calls.load(Ordering::SeqCst) < 6 {
            std::thread::yield_now();
        }
        // SAFETY: null is allowed.
        unsafe { srt_setloghandler(std::ptr::null_mut(), None) };
        assert_eq!(loud.deepest.into_inner(), 1);
    }
}
