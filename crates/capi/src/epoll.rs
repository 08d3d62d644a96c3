//! Event sets.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;
use std::slice;
use std::time::Duration;

use punctual_sockets::{Code, ENABLE_OUTPUT_CHECK, Events, Failure, Wanted};

use crate::abi::{EpollEvent, FAILED, SocketId};
use crate::border::{answer, done, int};
use crate::library;

/// Creates an event set.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_create() -> c_int {
    answer(|| Ok(library::running()?.create_event_set()))
}

/// Ends an event set.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_release(set: c_int) -> c_int {
    done(|| of_set()?.release_event_set(set))
}

/// The library for a call on a set. If it does not run, there is no such set.
fn of_set() -> Result<std::sync::Arc<punctual_sockets::Library>, Failure> {
    library::present()?.ok_or_else(|| Code::InvalidEventSet.into())
}

/// The events of an argument; a null pointer stands for all.
///
/// # Safety
///
/// `events` is null, or can be read.
unsafe fn wanted(events: *const c_int) -> Events {
    if events.is_null() {
        return Events::BROKEN;
    }
    // SAFETY: the caller says so.
    Events(unsafe { events.read() }.cast_unsigned())
}

/// Adds a socket to a set, or changes its events.
///
/// # Safety
///
/// `events` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_add_usock(
    set: c_int,
    socket: SocketId,
    events: *const c_int,
) -> c_int {
    done(|| {
        // SAFETY: the caller says so.
        let wanted = unsafe { wanted(events) };
        let library = of_set()?;
        library.event_set(set)?;
        if wanted == Events::EDGE {
            return Err(Code::InvalidParameter.into());
        }
        if wanted.is_empty() {
            return library.unsubscribe(set, socket);
        }
        library.subscribe(set, socket, wanted)
    })
}

/// The same as [`srt_epoll_add_usock`].
///
/// # Safety
///
/// `events` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_update_usock(
    set: c_int,
    socket: SocketId,
    events: *const c_int,
) -> c_int {
    // SAFETY: the caller says so.
    unsafe { srt_epoll_add_usock(set, socket, events) }
}

/// Removes a socket from a set.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_remove_usock(set: c_int, socket: SocketId) -> c_int {
    done(|| of_set()?.unsubscribe(set, socket))
}

/// Removes all sockets from a set.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_clear_usocks(set: c_int) -> c_int {
    done(|| of_set()?.clear_event_set(set))
}

/// A descriptor of the system, for one call.
///
/// # Safety
///
/// Nobody closes the descriptor during the call, unless it is no descriptor at all.
unsafe fn descriptor<'a>(fd: c_int) -> Result<BorrowedFd<'a>, Failure> {
    if fd < 0 {
        return Err(Failure { code: Code::Success, system: libc::EBADF });
    }
    // SAFETY: the kernel checks the number.
    Ok(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Adds a descriptor of the system to a set.
///
/// # Safety
///
/// `events` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_add_ssock(set: c_int, fd: c_int, events: *const c_int) -> c_int {
    done(|| {
        let set = of_set()?.event_set(set)?;
        // SAFETY: the caller says so.
        unsafe { set.add_system(descriptor(fd)?, wanted(events)) }
    })
}

/// Changes the events of a descriptor of the system.
///
/// # Safety
///
/// `events` is null, or can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_update_ssock(
    set: c_int,
    fd: c_int,
    events: *const c_int,
) -> c_int {
    done(|| {
        let set = of_set()?.event_set(set)?;
        // SAFETY: the caller says so.
        unsafe { set.update_system(descriptor(fd)?, wanted(events)) }
    })
}

/// Removes a descriptor of the system.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_remove_ssock(set: c_int, fd: c_int) -> c_int {
    done(|| {
        let set = of_set()?.event_set(set)?;
        // SAFETY: the kernel checks the number.
        set.remove_system(unsafe { descriptor(fd) }?)
    })
}

/// Sets flags of a set. Returns the former ones.
#[unsafe(no_mangle)]
pub extern "C" fn srt_epoll_set(set: c_int, flags: i32) -> i32 {
    answer(|| Ok(of_set()?.event_set(set)?.set_flags(flags)))
}

/// A pair of an array and its length, which a wait fills.
struct Output {
    array: *mut c_int,
    len: *mut c_int,
}

impl Output {
    fn is_wanted(&self) -> bool {
        !self.array.is_null() && !self.len.is_null()
    }

    /// Writes as many numbers as there is room for, and how many these are. Returns how many there
    /// would be with enough room.
    ///
    /// # Safety
    ///
    /// The array has as many places as the length says.
    unsafe fn fill(&self, numbers: impl ExactSizeIterator<Item = c_int>) -> usize {
        if !self.is_wanted() {
            return 0;
        }
        // SAFETY: the caller says so.
        unsafe {
            let room = usize::try_from(self.len.read()).unwrap_or(0);
            let ready = numbers.len();
            for (place, number) in numbers.take(room).enumerate() {
                self.array.add(place).write(number);
            }
            self.len.write(int(ready.min(room)));
            ready
        }
    }
}

/// A time in milliseconds; a negative one is without end.
fn timeout(millis: i64) -> Option<Duration> {
    u64::try_from(millis).ok().map(Duration::from_millis)
}

/// Waits until a socket or a descriptor of a set is ready. Returns the number of entries.
///
/// # Safety
///
/// Each length is null or can be read and written; each array is null or has that many places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_wait(
    set: c_int,
    readers: *mut SocketId,
    readers_len: *mut c_int,
    writers: *mut SocketId,
    writers_len: *mut c_int,
    millis: i64,
    system_readers: *mut c_int,
    system_readers_len: *mut c_int,
    system_writers: *mut c_int,
    system_writers_len: *mut c_int,
) -> c_int {
    let outputs = [
        Output { array: readers, len: readers_len },
        Output { array: writers, len: writers_len },
        Output { array: system_readers, len: system_readers_len },
        Output { array: system_writers, len: system_writers_len },
    ];
    // SAFETY: the caller says so.
    answer(|| unsafe { wait(set, &outputs, millis) })
}

/// # Safety
///
/// The outputs have as many places as their lengths say.
unsafe fn wait(set: c_int, outputs: &[Output; 4], millis: i64) -> Result<c_int, Failure> {
    let [readers, writers, system_readers, system_writers] = outputs;
    let all_unwanted = outputs.iter().all(|output| !output.is_wanted());
    let set = of_set()?.event_set(set)?;
    if all_unwanted && millis < 0 {
        return Err(Code::InvalidParameter.into());
    }
    let events = |reads: &Output, writes: &Output| {
        let one = |wanted: bool, events| if wanted { events } else { Events::NONE };
        one(reads.is_wanted(), Events::IN | Events::ERR)
            | one(writes.is_wanted(), Events::OUT | Events::ERR)
    };
    let wanted = Wanted {
        sockets: events(readers, writers),
        room: usize::MAX,
        // As in libsrt, an error of a descriptor alone is not reported.
        system: Some(events(system_readers, system_writers) & (Events::IN | Events::OUT)),
    };
    let mut report = set.wait(wanted, timeout(millis))?;
    // As in libsrt, numbers are in their order here.
    report.sockets.sort_unstable_by_key(|&(number, _)| number);
    if report.sockets.is_empty() && report.system.is_empty() {
        return Err(Code::Timeout.into());
    }
    let with = |list: &[(c_int, Events)], events: Events| {
        let chosen = list.iter().filter(move |(_, it)| it.any(events)).map(|&(number, _)| number);
        chosen.collect::<Vec<_>>().into_iter()
    };
    // SAFETY: the caller says so.
    let ready = unsafe {
        readers.fill(with(&report.sockets, Events::IN | Events::ERR))
            + writers.fill(with(&report.sockets, Events::OUT | Events::ERR))
            + system_readers.fill(with(&report.system, Events::IN))
            + system_writers.fill(with(&report.system, Events::OUT))
    };
    Ok(int(ready))
}

/// Waits until a socket of a set is ready, and tells the events of each. Returns their number.
///
/// # Safety
///
/// `output` is null, or has `len` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_epoll_uwait(
    set: c_int,
    output: *mut EpollEvent,
    len: c_int,
    millis: i64,
) -> c_int {
    answer(|| {
        let room = usize::try_from(len).map_err(|_| Code::InvalidParameter)?;
        if output.is_null() && room > 0 {
            return Err(Code::InvalidParameter.into());
        }
        let set = of_set()?.event_set(set)?;
        if room == 0 && set.set_flags(FAILED) & ENABLE_OUTPUT_CHECK != 0 {
            return Err(Code::InvalidParameter.into());
        }
        let sockets = Events::BROKEN | Events::UPDATE;
        let report = set.wait(Wanted { sockets, room, system: None }, timeout(millis))?;
        let output: &mut [std::mem::MaybeUninit<EpollEvent>] = match room {
            0 => &mut [],
            // SAFETY: the caller says so; a place need not be set before.
            room => unsafe { slice::from_raw_parts_mut(output.cast(), room) },
        };
        // With too little room, programs for libsrt are told of one socket more than they get.
        let ready = report.sockets.len() + usize::from(report.more);
        for (place, (fd, Events(events))) in output.iter_mut().zip(report.sockets) {
            place.write(EpollEvent { fd, events: events.cast_signed() });
        }
        Ok(int(ready))
    })
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;
    use std::ptr;

    use super::*;

    #[test]
    fn an_array_gets_as_many_numbers_as_it_has_places() {
        for (told, written) in [(3, 2), (2, 2), (1, 1), (0, 0), (-1, 0)] {
            let mut places = [const { MaybeUninit::<c_int>::uninit() }; 3];
            let mut len = told;
            let output = Output { array: places.as_mut_ptr().cast(), len: &raw mut len };
            // SAFETY: there are at least as many places as are told.
            let ready = unsafe { output.fill([7, 8].into_iter()) };
            assert_eq!((ready, len), (2, written), "{told}");
            let numbers = places[..usize::try_from(written).unwrap()].iter();
            // SAFETY: these were written.
            let numbers: Vec<c_int> = numbers.map(|it| unsafe { it.assume_init() }).collect();
            assert!([7, 8].starts_with(&numbers));
        }
    }

    #[test]
    fn an_array_without_a_length_is_not_wanted_and_the_other_way_round() {
        let (mut array, mut len) = ([0], 1);
        let (array, len) = (array.as_mut_ptr(), &raw mut len);
        for (array, len) in [(ptr::null_mut(), len), (array, ptr::null_mut())] {
            let output = Output { array, len };
            // SAFETY: it is not used.
            assert_eq!(unsafe { output.fill([7].into_iter()) }, 0);
        }
    }

    #[test]
    fn no_events_stand_for_all() {
        let out = 4;
        // SAFETY: null is allowed, and the number can be read.
        unsafe {
            assert_eq!(wanted(ptr::null()), Events::BROKEN);
            assert_eq!(wanted(&raw const out), Events::OUT);
        }
    }

    #[test]
    fn a_descriptor_that_cannot_be_one_is_an_error_of_the_system() {
        // SAFETY: it is no descriptor.
        let failure = unsafe { descriptor(-1) }.unwrap_err();
        assert_eq!(failure, Failure { code: Code::Success, system: libc::EBADF });
    }
}
