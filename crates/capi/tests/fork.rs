//! A child of a process that uses the library has none of its threads: its calls fail at once, and
//! the parent goes on.

#![expect(unsafe_code, reason = "the functions are C's")]

use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use punctual_srt::{data, epoll, errors, groups, log, options, sockets, startup};

/// Children, each forked at another moment of the threads' work.
const CHILDREN: u32 = 20;
/// Seconds after which the system ends a child that hangs.
const PATIENCE: u32 = 20;
const SYSTEM_OBJECT: i32 = 3_003;
const NONEXISTENT: i32 = 9;

#[test]
fn a_childs_calls_fail_at_once_and_the_parent_goes_on() {
    assert_eq!(startup::srt_startup(), 0);
    let (socket, set) = (sockets::srt_create_socket(), epoll::srt_epoll_create());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Locks are held now and then while the process is forked.
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let socket = sockets::srt_create_socket();
                log::srt_dellogfa(7);
                sockets::srt_close(socket);
            }
        });
        for _ in 0..CHILDREN {
            // SAFETY: the child only makes calls that fail, and ends.
            match unsafe { libc::fork() } {
                0 => end_child(socket, set),
                child => assert_eq!(result_of(child), 0, "the number of the call that went wrong"),
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(sockets::srt_getsockstate(socket), 1);
    assert_eq!(sockets::srt_close(socket), 0);
    assert_eq!(epoll::srt_epoll_release(set), 0);
    assert_eq!(startup::srt_cleanup(), 0);
}

/// Makes calls in a child, and ends it with the number of the first one that goes wrong.
fn end_child(socket: i32, set: i32) -> ! {
    let value = 1i32;
    let place = (&raw const value).cast();
    // SAFETY: a child may ask for a signal; every pointer leads to what the calls need.
    let wrong = unsafe {
        libc::alarm(PATIENCE);
        let results = [
            startup::srt_startup(),
            sockets::srt_create_socket(),
            sockets::srt_close(socket),
            data::srt_send(socket, c"on time".as_ptr(), 7),
            options::srt_setsockflag(socket, 1, place, 4),
            epoll::srt_epoll_add_usock(set, socket, ptr::null()),
            epoll::srt_epoll_uwait(set, ptr::null_mut(), 0, -1),
            groups::srt_create_group(1),
        ];
        let failed = errors::srt_getlasterror(ptr::null_mut()) == SYSTEM_OBJECT;
        log::srt_setloglevel(7);
        log::srt_dellogfa(2);
        log::srt_setloghandler(ptr::null_mut(), None);
        let others = [
            failed,
            sockets::srt_getsockstate(socket) == NONEXISTENT,
            !errors::srt_strerror(5_004, 0).is_null(),
            startup::srt_cleanup() == 0,
        ];
        let results = results.iter().map(|&result| result == -1);
        results.chain(others).position(|is_right| !is_right)
    };
    let wrong = wrong.and_then(|at| i32::try_from(at + 1).ok()).unwrap_or(0);
    // SAFETY: it ends the child without the parent's destructors.
    unsafe { libc::_exit(wrong) }
}

/// The number that a child ends with; negative if a signal ended it.
fn result_of(child: i32) -> i32 {
    let mut status = 0;
    // SAFETY: the status can be written.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
}
