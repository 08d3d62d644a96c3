//! Making, binding, naming and closing sockets, and the library's start and end.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::IntoRawFd;

use libc::sockaddr_storage;
use punctual_srt::sockets::{
    srt_bind, srt_bind_acquire, srt_close, srt_connection_time, srt_create_socket, srt_getpeername,
    srt_getsockname, srt_socket,
};
use punctual_srt::startup::{srt_cleanup, srt_startup};

use super::input::Input;
use super::states::{CONNECTED, INIT, OPENED, States};
use super::verdict::{
    BINDCONFLICT, INVOP, INVPARAM, INVSOCK, NOCONN, SOCKFAIL, begin, judge, judge_quiet,
};
use super::{MOST_SOCKETS, World};

impl World {
    pub(crate) fn create(&mut self, input: &mut Input<'_>) {
        let blocks = input.is(32);
        self.create_one(blocks);
    }

    /// Creates a socket whose calls take little time.
    pub(crate) fn create_one(&mut self, blocks: bool) -> Option<i32> {
        if self.sockets.len() >= MOST_SOCKETS {
            return None;
        }
        begin();
        let id = if blocks { srt_socket(2, 3, 4) } else { srt_create_socket() };
        judge("srt_create_socket", id, &[]);
        assert!(id > 0 && id < 1 << 30, "a socket has the number {id}");
        self.add(id, States::of(&[INIT]));
        self.hasten(id, blocks);
        Some(id)
    }

    pub(crate) fn bind(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        if input.is(20) {
            return self.acquire(id, input);
        }
        let address = self.local(input);
        begin();
        // SAFETY: the address has the bytes of the largest one.
        let bound = unsafe { srt_bind(id, address.as_ptr(), address.len) };
        let error = judge("srt_bind", bound, &[INVPARAM, INVOP, BINDCONFLICT, SOCKFAIL]);
        if !address.is_valid() || self.is_gone(id) {
            assert_eq!(error, Some(INVPARAM), "srt_bind: {:?}", self.possible(id));
        }
        if error.is_none() {
            assert!(self.possible(id).has(INIT), "{id} was bound twice");
            self.becomes(id, States::of(&[OPENED]));
            self.note_address(id);
        }
    }

    /// Gives the library a UDP socket, or another descriptor.
    fn acquire(&mut self, id: i32, input: &mut Input<'_>) {
        let udp = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
        let local = udp.local_addr().expect("it is bound");
        let choice = input.byte();
        let fd = match choice {
            0..=160 => udp.into_raw_fd(),
            161..=200 => self.descriptors.other(),
            _ => input.pick(&[-1, i32::MAX, i32::MIN]),
        };
        begin();
        // SAFETY: the UDP socket is given away, and the other descriptors are none.
        let bound = unsafe { srt_bind_acquire(id, fd) };
        let error = judge("srt_bind_acquire", bound, &[INVPARAM, INVOP, SOCKFAIL]);
        assert!(error.is_some() || choice <= 160, "{fd} is no UDP socket");
        if error.is_none() {
            self.becomes(id, States::of(&[OPENED]));
            self.bound.push(local);
        } else if choice <= 160 {
            // SAFETY: it was not taken.
            unsafe { libc::close(fd) };
        }
    }

    /// Notes the address of a socket that was bound.
    pub(crate) fn note_address(&mut self, id: i32) {
        if let Some(address) = name_of(id) {
            self.bound.push(address);
        }
    }

    pub(crate) fn close(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        self.shorten_linger(id, input.is(128));
        begin();
        let closed = srt_close(id);
        judge("srt_close", closed, &[]);
        assert_eq!(closed, 0);
        if !self.sockets.iter().any(|known| known.id == id && known.is_link) {
            self.becomes(id, States::closed());
        }
    }

    pub(crate) fn read_names(&mut self, input: &mut Input<'_>) {
        let id = self.number(input);
        // SAFETY: all bytes zero are a valid value.
        let mut name: sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut len = input.pick(&[-1, 0, 2, 15, 16, 27, 28, 128, 128, 128, 128]);
        let told = len;
        let place = (&raw mut name).cast();
        let reads_peer = input.is(128);
        let nulls = input.byte();
        let (place, length) = match nulls {
            0..=20 => (std::ptr::null_mut(), &raw mut len),
            21..=40 => (place, std::ptr::null_mut()),
            _ => (place, &raw mut len),
        };
        begin();
        // SAFETY: there is room for the largest address, which is the most that is told.
        let read = unsafe {
            match reads_peer {
                true => srt_getpeername(id, place, length),
                false => srt_getsockname(id, place, length),
            }
        };
        let (call, for_gone) = match reads_peer {
            true => ("srt_getpeername", NOCONN),
            false => ("srt_getsockname", INVSOCK),
        };
        let error = judge(call, read, &[INVPARAM, NOCONN, for_gone]);
        if self.is_gone(id) {
            assert_eq!(error, Some(for_gone), "{call} of a socket that is gone");
        }
        if self.possible(id).are_among(&[INIT]) {
            assert_eq!(error, Some(NOCONN), "{call} of a new socket");
        }
        if error.is_none() {
            assert!(nulls > 40 && told >= len && matches!(len, 16 | 28), "{call}: {told}, {len}");
            assert!(!reads_peer || self.possible(id).has(CONNECTED));
        }
        self.read_time(id);
    }

    fn read_time(&mut self, id: i32) {
        begin();
        let time = srt_connection_time(id);
        let error = judge("srt_connection_time", time, &[INVSOCK]);
        if self.is_gone(id) {
            assert_eq!(error, Some(INVSOCK));
        }
    }

    /// Ends and starts the library, or lets time pass.
    pub(crate) fn restart(&mut self, input: &mut Input<'_>) {
        match input.byte() {
            0..=9 => {
                self.shut_down();
                begin();
                judge("srt_startup", srt_startup(), &[]);
            }
            10..=30 => {
                // A start more or less is counted.
                begin();
                assert_eq!(srt_startup(), 1);
                assert_eq!(srt_cleanup(), 0);
                judge_quiet("srt_cleanup");
            }
            pause => pass(u64::from(pause % 8)),
        }
    }
}

/// Lets the threads of the library work for some milliseconds.
#[expect(clippy::disallowed_methods, reason = "sockets need the system's time")]
pub(crate) fn pass(millis: u64) {
    std::thread::sleep(std::time::Duration::from_millis(millis));
}

/// The address that a socket is bound to.
fn name_of(id: i32) -> Option<SocketAddr> {
    // SAFETY: all bytes zero are a valid value.
    let mut name: sockaddr_storage = unsafe { std::mem::zeroed() };
    let mut len = 128;
    begin();
    // SAFETY: there is room for that many bytes.
    let read = unsafe { srt_getsockname(id, (&raw mut name).cast(), &raw mut len) };
    judge("srt_getsockname", read, &[INVSOCK]);
    let place = &raw const name;
    match i32::from(name.ss_family) {
        _ if read != 0 => None,
        libc::AF_INET => {
            // SAFETY: the family says so.
            let v4 = unsafe { place.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Some((ip, u16::from_be(v4.sin_port)).into())
        }
        _ => {
            // SAFETY: there is no other family.
            let v6 = unsafe { place.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some((ip, u16::from_be(v6.sin6_port)).into())
        }
    }
}
