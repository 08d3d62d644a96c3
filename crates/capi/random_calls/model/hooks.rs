//! Hooks that decide on callers and hear of failures, and call the library themselves.

use std::ffi::{c_char, c_int, c_void};

use libc::sockaddr;
use punctual_srt::connecting::{
    srt_connect_callback, srt_getrejectreason, srt_listen, srt_listen_callback, srt_setrejectreason,
};
use punctual_srt::data::srt_recv;
use punctual_srt::epoll::{srt_epoll_add_usock, srt_epoll_create, srt_epoll_release};
use punctual_srt::options::srt_setsockflag;
use punctual_srt::sockets::{srt_bind, srt_close, srt_getsockstate};

use super::addresses::Address;
use super::input::Input;
use super::states::{CLOSED, INIT, NONEXISTENT};
use super::verdict::{CONNSOCK, INVPARAM, INVSOCK, begin, judge};
use super::{World, faults};

/// The plans of a listen hook.
const REFUSE: usize = 1;
const GIVE_A_REASON: usize = 2;
const SET_OPTIONS: usize = 3;
const CLOSE_CALLER: usize = 4;
const CLOSE_LISTENER: usize = 5;
const MISUSE_CALLER: usize = 6;
const WATCH_CALLER: usize = 7;
/// The plan of a connect hook.
const CLOSE_SOCKET: usize = 1;
/// Lies between a plan and the number of the socket in a hook's pointer.
const SHIFT: u32 = 4;

impl World {
    pub(crate) fn set_hook(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        let plan = usize::from(input.byte() % 8);
        let number = usize::try_from(id).unwrap_or(0);
        // The pointer is never followed: it is the plan itself.
        let opaque = std::ptr::without_provenance_mut(number << SHIFT | plan);
        let is_null = input.is(10);
        let listens = input.is(170);
        begin();
        // SAFETY: the hooks can be called from any thread at any time.
        let set = unsafe {
            match listens {
                true => srt_listen_callback(id, (!is_null).then_some(listen_hook), opaque),
                false => srt_connect_callback(id, (!is_null).then_some(connect_hook), opaque),
            }
        };
        let error = judge("srt_listen_callback", set, &[INVPARAM, INVSOCK, CONNSOCK]);
        if is_null || self.is_gone(id) {
            assert!(matches!(error, Some(INVPARAM | INVSOCK)), "{error:?}");
        }
        if error.is_none()
            && (plan == if listens { CLOSE_LISTENER } else { CLOSE_SOCKET })
            && let Some(known) = self.known(id)
        {
            known.may_be_closed = true;
        }
        self.use_reason(id, input);
    }
}

extern "C-unwind" fn listen_hook(
    opaque: *mut c_void,
    caller: c_int,
    version: c_int,
    peer: *const sockaddr,
    stream_id: *const c_char,
) -> c_int {
    let (listener, plan) = (opaque.addr() >> SHIFT, opaque.addr() & 7);
    if peer.is_null() || stream_id.is_null() || !matches!(version, 4 | 5) {
        faults::note(format!("a listen hook got {peer:?}, {stream_id:?}, {version}"));
    }
    let state = srt_getsockstate(caller);
    // The library may have ended meanwhile.
    if ![INIT, NONEXISTENT, CLOSED].contains(&state) {
        faults::note(format!("a caller has the state {state}"));
    }
    match plan {
        REFUSE => return -1,
        GIVE_A_REASON => {
            srt_setrejectreason(caller, 1_403);
            return -1;
        }
        SET_OPTIONS => set_options(caller),
        CLOSE_CALLER => close(caller),
        CLOSE_LISTENER => close(c_int::try_from(listener).unwrap_or(0)),
        MISUSE_CALLER => misuse(caller),
        WATCH_CALLER => watch(caller),
        _ => {}
    }
    // Only -1 refuses.
    if plan & 1 == 0 { 0 } else { -5 }
}

extern "C-unwind" fn connect_hook(
    opaque: *mut c_void,
    id: c_int,
    code: c_int,
    peer: *const sockaddr,
    _token: c_int,
) {
    let plan = opaque.addr() & 7;
    if peer.is_null() || !(1_000..=2_002).contains(&code) {
        faults::note(format!("a connect hook got {peer:?}, {code}"));
    }
    srt_getrejectreason(id);
    match plan {
        CLOSE_SOCKET => close(id),
        SET_OPTIONS => set_options(id),
        WATCH_CALLER => watch(id),
        MISUSE_CALLER => {
            let mut buffer = [c_char::default(); 1_500];
            // SAFETY: there is room for that many bytes.
            unsafe { srt_recv(id, buffer.as_mut_ptr(), 1_500) };
        }
        _ => {}
    }
}

/// Closes a socket, which must be closed then.
fn close(id: c_int) {
    srt_close(id);
    let state = srt_getsockstate(id);
    if ![CLOSED, NONEXISTENT].contains(&state) {
        faults::note(format!("a closed socket has the state {state}"));
    }
}

fn set_options(id: c_int) {
    let passphrase = b"a passphrase";
    // SAFETY: each value has that many bytes.
    unsafe {
        srt_setsockflag(id, 26, passphrase.as_ptr().cast(), 12);
        srt_setsockflag(id, 23, 80i32.to_ne_bytes().as_ptr().cast(), 4);
    }
}

/// Does with a caller's socket what no program should.
fn misuse(caller: c_int) {
    let any = Address::new(([127, 0, 0, 1], 0).into());
    // SAFETY: the address has that many bytes.
    unsafe { srt_bind(caller, any.as_ptr(), any.len) };
    srt_listen(caller, 1);
}

fn watch(id: c_int) {
    let set = srt_epoll_create();
    // SAFETY: null stands for all events.
    unsafe { srt_epoll_add_usock(set, id, std::ptr::null()) };
    srt_epoll_release(set);
}
