//! The library ends and starts while threads use it: each of their calls is done or fails with an
//! error that is documented, and none hangs.

#![expect(unsafe_code, reason = "the functions are C's")]
#![expect(clippy::cast_possible_truncation, reason = "families have small numbers")]

use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use punctual_srt::{connecting, data, epoll, errors, groups, options, sockets, startup};

/// The time for which the threads work.
const TIME: Duration = Duration::from_secs(1);
/// The error that a panic becomes.
const UNKNOWN: i32 = -1;

static PANICS: AtomicUsize = AtomicUsize::new(0);

#[test]
#[expect(clippy::disallowed_methods, reason = "sockets need the system's time")]
fn the_library_can_end_and_start_while_threads_use_it() {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        PANICS.fetch_add(1, Ordering::Relaxed);
    }));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..3u16 {
            let done = &done;
            scope.spawn(move || {
                let mut calls = 0u16;
                while !done.load(Ordering::Relaxed) {
                    work(calls.wrapping_add(thread));
                    calls = calls.wrapping_add(1);
                }
            });
        }
        let begun = Instant::now();
        let mut restarts = 0;
        while begun.elapsed() < TIME {
            assert!(startup::srt_startup() >= 0);
            std::thread::sleep(Duration::from_millis(restarts % 8));
            // Threads start the library, too.
            startup::srt_cleanup();
            startup::srt_cleanup();
            restarts += 1;
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(PANICS.load(Ordering::Relaxed), 0);
    startup::srt_cleanup();
}

/// Makes and ends one connection, or tries to.
fn work(turn: u16) {
    let (listener, caller) = (sockets::srt_create_socket(), sockets::srt_create_socket());
    let set = epoll::srt_epoll_create();
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: 0,
        sin_addr: libc::in_addr { s_addr: u32::from_be_bytes([127, 0, 0, 1]).to_be() },
        sin_zero: [0; 8],
    };
    let mut bound = address;
    let mut len = 16;
    let timeout = 100i32;
    // SAFETY: every pointer leads to what the calls need, for as many bytes as they are told.
    unsafe {
        let place = (&raw mut bound).cast();
        check(sockets::srt_bind(listener, (&raw const address).cast(), 16));
        check(connecting::srt_listen(listener, 2));
        check(sockets::srt_getsockname(listener, place, &raw mut len));
        check(options::srt_setsockflag(caller, 36, (&raw const timeout).cast(), 4));
        check(epoll::srt_epoll_add_usock(set, listener, ptr::null()));
        if turn.is_multiple_of(4) {
            let group = groups::srt_create_group(1);
            let mut link = groups::srt_prepare_endpoint(ptr::null(), place, 16);
            check(options::srt_setsockflag(group, 36, (&raw const timeout).cast(), 4));
            check(groups::srt_connect_group(group, &raw mut link, 1));
            check(sockets::srt_close(group));
        }
        check(connecting::srt_connect(caller, place, 16));
        check(data::srt_send(caller, c"on time".as_ptr(), 7));
        // A set of a library that has ended is unknown, and its number may be that of a new one.
        check(epoll::srt_epoll_uwait(set, ptr::null_mut(), 0, 1));
        let listeners = [listener];
        check(connecting::srt_accept_bond(listeners.as_ptr(), 1, 5));
    }
    for socket in [caller, listener] {
        check(sockets::srt_close(socket));
    }
    check(epoll::srt_epoll_release(set));
}

/// A call that fails has an error, and it is not that of a panic.
#[track_caller]
fn check(result: i32) {
    // SAFETY: null is allowed.
    let last = unsafe { errors::srt_getlasterror(ptr::null_mut()) };
    assert!(result >= 0 || (result == -1 && last != UNKNOWN && last != 0), "{result}, {last}");
}
