//! The one library of the process.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use punctual_sockets::{
    Code, Defaults, Failure, Library, OpenSocket, RememberedSocket, SocketState,
};

use crate::{exit, fork, log, texts, trace};

/// The environment variable with defaults of options, as the query of an SRT URI.
const DEFAULTS: &str = "PUNCTUAL_SRT_OPTIONS";

static LIBRARY: RwLock<Option<Arc<Library>>> = RwLock::new(None);
/// The number of starts that were not taken back.
static STARTS: Mutex<usize> = Mutex::new(0);

/// Starts the library. Returns whether it ran already.
pub(crate) fn start() -> Result<bool, Failure> {
    check_process()?;
    let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    let ran = start_if_needed()?;
    *starts += 1;
    Ok(ran)
}

/// Starts the library, unless it runs. Returns whether it ran already.
fn start_if_needed() -> Result<bool, Failure> {
    let mut library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner);
    if library.is_some() {
        return Ok(true);
    }
    trace::install();
    texts::prepare();
    fork::watch();
    exit::watch();
    *library = Some(Library::start_with(defaults())?);
    Ok(false)
}

/// Takes one start back. The last one ends the library.
pub(crate) fn stop() {
    if fork::is_child() {
        return;
    }
    let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    *starts = starts.saturating_sub(1);
    if *starts == 0 {
        end();
    }
}

/// Ends the library, whoever still uses it.
pub(crate) fn end() {
    if fork::is_child() {
        return;
    }
    let library = LIBRARY.write().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(library) = library {
        library.shut_down();
        log::end();
    }
}

/// The library, started if it does not run.
pub(crate) fn running() -> Result<Arc<Library>, Failure> {
    if let Some(library) = present()? {
        return Ok(library);
    }
    let mut starts = STARTS.lock().unwrap_or_else(PoisonError::into_inner);
    // Another thread may have started it meanwhile, and counts then.
    if !start_if_needed()? {
        *starts += 1;
    }
    drop(starts);
    present()?.ok_or_else(|| Code::ConnectSetup.into())
}

/// The library, if it runs.
pub(crate) fn present() -> Result<Option<Arc<Library>>, Failure> {
    check_process()?;
    Ok(read().clone())
}

/// The library for a call on a socket. If it does not run, there is no such socket.
pub(crate) fn of_socket() -> Result<Arc<Library>, Failure> {
    present()?.ok_or_else(|| Code::InvalidSocket.into())
}

thread_local! {
    /// The socket of this thread's last call that sent or received. Most threads have one socket,
    /// or make several calls in a row with each: they need no lock to find it.
    static LAST: RefCell<Option<RememberedSocket>> = const { RefCell::new(None) };
}

/// A socket for a call that sends or receives.
pub(crate) fn open_socket(id: i32) -> Result<OpenSocket, Failure> {
    check_process()?;
    last_socket(id).map_or_else(|| look_up(id), Ok)
}

/// The state of a socket. In a child of a process that used the library there is none.
pub(crate) fn socket_state(id: i32) -> SocketState {
    if fork::is_child() {
        return SocketState::Nonexistent;
    }
    if let Some(last) = last_socket(id) {
        return last.state();
    }
    read().as_ref().map_or(SocketState::Nonexistent, |library| library.state(id))
}

/// The socket of this thread's last call that sent or received, if it has this number and is open.
fn last_socket(id: i32) -> Option<OpenSocket> {
    // A thread that ends has no memory of its last socket.
    LAST.try_with(|last| last.borrow().as_ref()?.open(id)).ok().flatten()
}

fn look_up(id: i32) -> Result<OpenSocket, Failure> {
    let library = read();
    // The library itself is not cloned for each call: that would cost more than the look-up.
    let open = library.as_ref().ok_or(Code::InvalidSocket)?.open_socket(id)?;
    let _ = LAST.try_with(|last| last.replace(Some(open.remember())));
    Ok(open)
}

fn read() -> RwLockReadGuard<'static, Option<Arc<Library>>> {
    LIBRARY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Fails in a child of a process that used the library.
fn check_process() -> Result<(), Failure> {
    if fork::is_child() { Err(Code::SystemObject.into()) } else { Ok(()) }
}

/// The defaults that the user wants. Unusable ones are left out with a message in the log, since a
/// program cannot do anything about them.
fn defaults() -> Defaults {
    let Ok(query) = std::env::var(DEFAULTS) else { return Defaults::default() };
    Defaults::parse(&query).unwrap_or_else(|problem| {
        tracing::warn!("{DEFAULTS} is not used: {problem}");
        Defaults::default()
    })
}
