//! Event sets.

use std::io::PipeReader;
use std::io::PipeWriter;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use punctual_srt::abi::EpollEvent;
use punctual_srt::epoll::{
    srt_epoll_add_ssock, srt_epoll_add_usock, srt_epoll_clear_usocks, srt_epoll_create,
    srt_epoll_release, srt_epoll_remove_ssock, srt_epoll_remove_usock, srt_epoll_set,
    srt_epoll_update_ssock, srt_epoll_update_usock, srt_epoll_uwait, srt_epoll_wait,
};

use super::World;
use super::input::Input;
use super::verdict::{
    EPOLLEMPTY, INVPARAM, INVPOLLID, INVSOCK, TIMEOUT, begin, judge, judge_system,
};

/// The most sets at once.
const MOST_SETS: usize = 6;
/// The places for events.
const PLACES: usize = 4;
/// A number that no call writes.
const UNTOUCHED: i32 = -77;

/// Descriptors of the system that live as long as the world.
pub(crate) struct Descriptors {
    udp: UdpSocket,
    reader: PipeReader,
    writer: PipeWriter,
}

impl Descriptors {
    pub(crate) fn new() -> Self {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        Self { udp: UdpSocket::bind("127.0.0.1:0").expect("a port is free"), reader, writer }
    }

    /// A descriptor that is no UDP socket.
    pub(crate) fn other(&self) -> i32 {
        self.reader.as_raw_fd()
    }

    fn any(&self, input: &mut Input<'_>) -> i32 {
        match input.byte() {
            0..=79 => self.udp.as_raw_fd(),
            80..=149 => self.reader.as_raw_fd(),
            150..=219 => self.writer.as_raw_fd(),
            _ => input.pick(&[-1, i32::MIN, i32::MAX]),
        }
    }
}

impl World {
    fn set_number(&self, input: &mut Input<'_>) -> i32 {
        let choice = usize::from(input.byte());
        match choice {
            0..=223 if !self.sets.is_empty() => self.sets[choice % self.sets.len()],
            224..=239 if !self.gone_sets.is_empty() => {
                self.gone_sets[choice % self.gone_sets.len()]
            }
            _ => input.pick(&[-1, 0, i32::MAX, i32::MIN, 9_999_999]),
        }
    }

    /// Numbers of sets begin at 1 again after a restart.
    fn has_set(&self, set: i32) -> bool {
        self.sets.contains(&set)
    }

    #[track_caller]
    fn check_set(&self, call: &str, set: i32, error: Option<i32>) {
        assert!(
            (error == Some(INVPOLLID)) != self.has_set(set),
            "{call}: {error:?} of set {set}, there are {:?}",
            self.sets
        );
    }

    pub(crate) fn make_set(&mut self, input: &mut Input<'_>) {
        let set = self.set_number(input);
        begin();
        match input.byte() {
            0..=150 if self.sets.len() < MOST_SETS => {
                let made = srt_epoll_create();
                judge("srt_epoll_create", made, &[]);
                assert!(made > 0 && !self.has_set(made), "a set has the number {made}");
                self.sets.push(made);
            }
            0..=180 => {
                let cleared = srt_epoll_clear_usocks(set);
                let error = judge("srt_epoll_clear_usocks", cleared, &[INVPOLLID]);
                self.check_set("srt_epoll_clear_usocks", set, error);
            }
            181..=210 => {
                let flags = srt_epoll_set(set, input.pick(&[0, 1, 2, 3, -1, i32::MAX, i32::MIN]));
                let error = judge("srt_epoll_set", flags, &[INVPOLLID]);
                self.check_set("srt_epoll_set", set, error);
            }
            _ => {
                let released = srt_epoll_release(set);
                let error = judge("srt_epoll_release", released, &[INVPOLLID]);
                self.check_set("srt_epoll_release", set, error);
                self.sets.retain(|&it| it != set);
                self.gone_sets.push(set);
            }
        }
    }

    pub(crate) fn subscribe(&mut self, input: &mut Input<'_>) {
        let (set, id) = (self.set_number(input), self.number(input));
        let events = events(input);
        let pointer = if input.is(60) { std::ptr::null() } else { &raw const events };
        begin();
        // SAFETY: the events can be read.
        let (call, done) = unsafe {
            match input.byte() {
                0..=150 => ("srt_epoll_add_usock", srt_epoll_add_usock(set, id, pointer)),
                151..=200 => ("srt_epoll_update_usock", srt_epoll_update_usock(set, id, pointer)),
                _ => ("srt_epoll_remove_usock", srt_epoll_remove_usock(set, id)),
            }
        };
        let error = judge(call, done, &[INVPOLLID, INVPARAM, INVSOCK]);
        self.check_set(call, set, error);
        if self.has_set(set) && call == "srt_epoll_remove_usock" {
            assert_eq!(error, None);
        } else if error.is_none() && (pointer.is_null() || events != 0) {
            assert!(!self.is_gone(id), "{call} took a socket that is gone");
        }
    }

    pub(crate) fn use_descriptor(&mut self, input: &mut Input<'_>) {
        let set = self.set_number(input);
        let fd = self.descriptors.any(input);
        let events = events(input);
        let pointer = if input.is(60) { std::ptr::null() } else { &raw const events };
        begin();
        // SAFETY: the events can be read; the descriptor lives as long as the world.
        let (call, done) = unsafe {
            match input.byte() {
                0..=130 => ("srt_epoll_add_ssock", srt_epoll_add_ssock(set, fd, pointer)),
                131..=190 => ("srt_epoll_update_ssock", srt_epoll_update_ssock(set, fd, pointer)),
                _ => ("srt_epoll_remove_ssock", srt_epoll_remove_ssock(set, fd)),
            }
        };
        let error = judge_system(call, done, &[INVPOLLID, INVPARAM]);
        if !self.has_set(set) {
            assert_eq!(error, Some(INVPOLLID), "{call}");
        }
    }

    pub(crate) fn wait(&mut self, input: &mut Input<'_>) {
        let set = self.set_number(input);
        let millis = i64::from(input.byte() % 5);
        let error = if input.is(100) {
            self.wait_for_events(set, millis, input)
        } else {
            self.wait_for_lists(set, millis, input)
        };
        self.reached.reported += u32::from(error.is_none());
        self.check_set("srt_epoll_wait", set, error);
    }

    fn wait_for_events(&self, set: i32, millis: i64, input: &mut Input<'_>) -> Option<i32> {
        let mut output = [EpollEvent { fd: UNTOUCHED, events: 0 }; PLACES];
        let len = input.pick(&[4, 4, 4, 2, 1, 0, -1]);
        let place = if input.is(10) { std::ptr::null_mut() } else { output.as_mut_ptr() };
        begin();
        // SAFETY: there are that many places.
        let ready = unsafe { srt_epoll_uwait(set, place, len, millis) };
        let error = judge("srt_epoll_uwait", ready, &[INVPOLLID, INVPARAM, EPOLLEMPTY]);
        if len < 0 || len > 0 && place.is_null() {
            // Found before the set is looked up.
            assert_eq!(error, Some(INVPARAM));
            return if self.has_set(set) { error } else { Some(INVPOLLID) };
        }
        let written = match usize::try_from(len.min(ready)) {
            Ok(written) if !place.is_null() => written,
            _ => 0,
        };
        assert!(ready <= 64, "{ready} sockets are ready");
        for (at, event) in output.iter().enumerate() {
            assert_eq!(event.fd != UNTOUCHED, at < written, "place {at} of {written}");
            assert!(at >= written || event.events & !0x1D == 0, "{event:?}");
        }
        error
    }

    fn wait_for_lists(&self, set: i32, millis: i64, input: &mut Input<'_>) -> Option<i32> {
        let mut lists = [[UNTOUCHED; PLACES]; 4];
        let mut lens = [(); 4].map(|()| input.pick(&[4, 4, 2, 1, 0, -1]));
        let told = lens;
        let shape = input.byte();
        let list = |at: usize, lists: &mut [[i32; PLACES]; 4]| match shape >> at & 1 {
            0 => lists[at].as_mut_ptr(),
            _ => std::ptr::null_mut(),
        };
        let len = |at: usize, lens: &mut [i32; 4]| match shape >> (4 + at) & 1 {
            0 => &raw mut lens[at],
            _ => std::ptr::null_mut(),
        };
        let arrays = [0, 1, 2, 3].map(|at| list(at, &mut lists));
        let lengths = [0, 1, 2, 3].map(|at| len(at, &mut lens));
        begin();
        // SAFETY: each list has the places that its length says.
        let ready = unsafe {
            srt_epoll_wait(
                set, arrays[0], lengths[0], arrays[1], lengths[1], millis, arrays[2], lengths[2],
                arrays[3], lengths[3],
            )
        };
        let documented = [INVPOLLID, INVPARAM, EPOLLEMPTY, TIMEOUT];
        let error = judge("srt_epoll_wait", ready, &documented);
        if error.is_some() {
            assert_eq!(lens, told, "the lengths of a wait that failed");
            assert!(lists.as_flattened().iter().all(|&it| it == UNTOUCHED));
        } else {
            assert!(ready > 0, "a wait reported nothing");
        }
        error
    }
}

fn events(input: &mut Input<'_>) -> i32 {
    match input.byte() {
        0..=200 => input.pick(&[0x1, 0x4, 0x5, 0x8, 0xD, 0x1D, 0, 0x10, i32::MIN, i32::MIN | 0xD]),
        _ => input.i32(),
    }
}
