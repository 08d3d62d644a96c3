//! The system descriptors of an event set, by the kernel's epoll.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};

use crate::code::{Code, Failure};
use crate::events::Events;
use crate::readiness::now;

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
            Ok(Self { epoll: Arc::new(epoll), wake, woken: false, descriptors: Vec::new() })
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
        for event in ready {
            // Copied first: the kernel's structure is packed.
            let (data, flags) = (event.data, event.flags);
            match data.u64() {
                WAKE => self.drain(),
                key => {
                    let events = Events(flags.bits()) & wanted;
                    if let (Ok(fd), false) = (i32::try_from(key), events.is_empty()) {
                        reported.push((fd, events));
                    }
                }
            }
        }
        reported
    }

    /// Something that waits without the lock, if there are descriptors.
    pub(crate) fn waiter(&mut self) -> Option<Waiter> {
        (!self.is_empty()).then(|| Waiter(Arc::clone(&self.epoll)))
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
