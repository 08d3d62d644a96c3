//! The system descriptors of an event set, by the kernel's epoll.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use punctual_blocking::{Events, now};
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use crate::code::{Code, Failure};

/// The key of the descriptor that wakes a waiting thread; no descriptor has it.
const WAKE: u64 = u64::MAX;
/// The most events that one call of the system returns.
const AT_ONCE: usize = 64;

/// System descriptors that a set waits for. The kernel forgets a descriptor that is closed.
#[derive(Debug)]
pub(crate) struct SystemPoll {
    epoll: Arc<OwnedFd>,
    /// Wakes a thread that waits in the kernel.
    wake: OwnedFd,
    /// Whether it was told to, and no thread has woken up since.
    woken: bool,
    descriptors: Vec<i32>,
    /// Whether the last look found nothing but events that are not wanted now.
    has_unwanted: bool,
}

/// Waits in the kernel, without the lock of the set.
#[derive(Debug)]
pub(crate) struct Waiter(Arc<OwnedFd>);

impl SystemPoll {
    /// No descriptors. Errors: the system has no descriptor left.
    pub(crate) fn new() -> Result<Self, Failure> {
        let make = || {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKE), epoll::EventFlags::IN)?;
            let (epoll, descriptors) = (Arc::new(epoll), Vec::new());
            Ok(Self { epoll, wake, woken: false, descriptors, has_unwanted: false })
        };
        make().map_err(|error: io::Error| Failure::of_system(Code::SystemObject, &error))
    }

    /// The error of a descriptor that is not in the set, as the kernel reports it.
    pub(crate) fn not_in_the_set() -> Failure {
        failure(rustix::io::Errno::NOENT)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.descriptors.is_empty()
    }

    pub(crate) fn add(&mut self, fd: BorrowedFd<'_>, wanted: Events) -> Result<(), Failure> {
        let (data, flags) = entry(fd, wanted);
        epoll::add(&*self.epoll, fd, data, flags).map_err(failure)?;
        self.descriptors.push(fd.as_raw_fd());
        Ok(())
    }

    pub(crate) fn update(&mut self, fd: BorrowedFd<'_>, wanted: Events) -> Result<(), Failure> {
        let (data, flags) = entry(fd, wanted);
        epoll::modify(&*self.epoll, fd, data, flags).map_err(failure)
    }

    pub(crate) fn remove(&mut self, fd: BorrowedFd<'_>) -> Result<(), Failure> {
        // A descriptor that was closed before is gone from the kernel's set.
        self.descriptors.retain(|&it| it != fd.as_raw_fd());
        epoll::delete(&*self.epoll, fd).map_err(failure)
    }

    /// The descriptors that have one of these events now.
    pub(crate) fn poll(&mut self, wanted: Events) -> Vec<(i32, Events)> {
        if self.is_empty() {
            return Vec::new();
        }
        let ready = collect(&self.epoll, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let mut reported = Vec::new();
        let mut has_any = false;
        for event in ready {
            // Copied first: the kernel's structure is packed.
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                WAKE => self.drain(),
                key => {
                    has_any = true;
                    let events = Events(flags.bits()) & wanted;
                    if let (Ok(fd), false) = (i32::try_from(key), events.is_empty()) {
                        reported.push((fd, events));
                    }
                }
            }
        }
        self.has_unwanted = has_any && reported.is_empty();
        reported
    }

    /// Something that waits without the lock, if there are descriptors.
    pub(crate) fn waiter(&mut self) -> Option<Waiter> {
        (!self.is_empty()).then(|| Waiter(Arc::clone(&self.epoll)))
    }

    /// Whether the kernel would not wait: a descriptor has an event, and the caller wants another
    /// one.
    pub(crate) const fn has_unwanted(&self) -> bool {
        self.has_unwanted
    }

    /// Wakes a thread that waits.
    pub(crate) fn wake(&mut self) {
        if std::mem::replace(&mut self.woken, true) {
            return;
        }
        // It fails only if the counter is full, and then the thread wakes up as well.
        let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
    }

    fn drain(&mut self) {
        self.woken = false;
        // Nothing to read means that another thread has drained it.
        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
    }
}

impl Waiter {
    /// Waits until a descriptor has an event, until the set changes, or until `deadline`.
    pub(crate) fn wait(&self, deadline: Option<Instant>) {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        collect(&self.0, left.as_ref());
    }
}

/// The bits of libsrt's events are those of the kernel's.
fn entry(fd: BorrowedFd<'_>, wanted: Events) -> (epoll::EventData, epoll::EventFlags) {
    let key = u64::try_from(fd.as_raw_fd()).unwrap_or(WAKE);
    let bits = (wanted & Events::BROKEN).0;
    (epoll::EventData::new_u64(key), epoll::EventFlags::from_bits_truncate(bits))
}

fn collect(epoll: &OwnedFd, timeout: Option<&Timespec>) -> Vec<epoll::Event> {
    let mut events = Vec::with_capacity(AT_ONCE);
    // An interrupted call is repeated by the set; another error leaves the list empty.
    let _ = epoll::wait(epoll, spare_capacity(&mut events), timeout);
    events
}

/// libsrt gives these errors the number of success, with the system's error beside it.
fn failure(error: rustix::io::Errno) -> Failure {
    Failure { code: Code::Success, system: error.raw_os_error() }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::fd::AsFd;
    use std::time::Duration;

    use punctual_blocking::Subscriber;

    use super::*;
    use crate::{EventSet, Wanted};

    const READ: Wanted =
        Wanted { sockets: Events::BROKEN, room: usize::MAX, system: Some(Events::IN) };
    const WRITTEN: Wanted =
        Wanted { sockets: Events::BROKEN, room: usize::MAX, system: Some(Events::OUT) };

    #[test]
    fn a_descriptor_is_reported_when_it_has_a_wanted_event() {
        let (reader, mut writer) = io::pipe().unwrap();
        let set = Arc::new(EventSet::default());
        set.add_system(reader.as_fd(), Events::IN).unwrap();
        assert_eq!(set.wait(READ, Some(Duration::ZERO)).unwrap().system, []);
        writer.write_all(b"x").unwrap();
        let fd = reader.as_raw_fd();
        assert_eq!(set.wait(READ, None).unwrap().system, [(fd, Events::IN)]);
        assert_eq!(set.wait(WRITTEN, Some(Duration::ZERO)).unwrap().system, []);
        set.remove_system(reader.as_fd()).unwrap();
        assert_eq!(set.wait(READ, None).unwrap_err().code, Code::EmptyEventSet);
    }

    #[test]
    fn an_event_that_nobody_wants_costs_no_time_and_a_socket_still_wakes() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        let set = Arc::new(EventSet::default());
        set.add_system(reader.as_fd(), Events::IN).unwrap();
        set.subscribe(1, Events::IN, Events::NONE);
        let looks = set.looks();
        let waited = set.wait(WRITTEN, Some(Duration::from_millis(50))).unwrap();
        assert!(waited.system.is_empty() && waited.sockets.is_empty());
        assert!(set.looks() - looks < 12, "{} looks", set.looks() - looks);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| set.wait(WRITTEN, None));
            set.raise(1, Events::IN);
            assert_eq!(waiting.join().unwrap().unwrap().sockets, [(1, Events::IN)]);
        });
    }
}
