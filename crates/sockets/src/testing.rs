//! Sockets on this host for the tests, and waiting for something without a fixed time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use punctual_blocking::now;

use crate::{Code, Failure, Library, MessageControl, OptionNumber, SocketOptionValue};

/// The longest time until something happens, on a busy machine as well.
const PATIENCE: Duration = Duration::from_secs(20);

/// Any free port of this host.
pub(crate) fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Waits until `holds` returns something.
#[track_caller]
pub(crate) fn until<R>(what: &str, mut holds: impl FnMut() -> Option<R>) -> R {
    let begun = now();
    loop {
        if let Some(result) = holds() {
            return result;
        }
        assert!(now() - begun < PATIENCE, "{what}");
        pause();
    }
}

#[expect(clippy::disallowed_methods, reason = "sockets need the system's time")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}

/// Sets options of 32 bits.
#[track_caller]
pub(crate) fn set(library: &Library, id: i32, options: &[(OptionNumber, i32)]) {
    for &(number, value) in options {
        let value = match crate::kind(number) {
            Some(crate::Kind::Bool) => SocketOptionValue::Bool(value != 0),
            _ => SocketOptionValue::Int(value),
        };
        library.set_option(id, number, value).unwrap();
    }
}

/// A socket that listens, with its address.
#[track_caller]
pub(crate) fn listener(library: &Arc<Library>, options: &[(OptionNumber, i32)]) -> Listener {
    let id = library.create_socket();
    set(library, id, options);
    listen(library, id)
}

/// Lets a socket listen.
#[track_caller]
pub(crate) fn listen(library: &Arc<Library>, id: i32) -> Listener {
    library.bind(id, any_port()).unwrap();
    library.listen(id, 8).unwrap();
    Listener { id, address: library.local_address(id).unwrap() }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Listener {
    pub(crate) id: i32,
    pub(crate) address: SocketAddr,
}

/// Two ends of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub(crate) listener: i32,
    pub(crate) caller: i32,
    pub(crate) accepted: i32,
}

/// Two ends with the same options.
#[track_caller]
pub(crate) fn pair(library: &Arc<Library>, options: &[(OptionNumber, i32)]) -> Pair {
    let Listener { id: listener, address } = listener(library, options);
    let caller = library.create_socket();
    set(library, caller, options);
    library.connect(caller, address).unwrap();
    let (accepted, _) = library.accept(listener).unwrap();
    Pair { listener, caller, accepted }
}

#[track_caller]
pub(crate) fn send(library: &Library, id: i32, data: &[u8]) -> usize {
    library.send(id, data, &mut MessageControl::default()).unwrap()
}

pub(crate) fn receive(library: &Library, id: i32) -> Result<Vec<u8>, Failure> {
    let mut buffer = vec![0; 1_500];
    let len = library.receive(id, &mut buffer, &mut MessageControl::default())?;
    buffer.truncate(len);
    Ok(buffer)
}

/// Asserts that a call has failed with this error.
#[track_caller]
pub(crate) fn assert_fails<R: std::fmt::Debug>(result: Result<R, Failure>, code: Code) {
    assert_eq!(result.unwrap_err().code, code);
}
