//! Addresses for C, also ones that are none.

use std::net::SocketAddr;

use libc::{sockaddr, sockaddr_storage};

use super::World;
use super::input::Input;

/// An address with the length that a call is told. The memory is always that of the largest one.
pub(crate) struct Address {
    storage: sockaddr_storage,
    pub(crate) len: i32,
    is_null: bool,
}

impl Address {
    pub(crate) fn as_ptr(&self) -> *const sockaddr {
        if self.is_null { std::ptr::null() } else { (&raw const self.storage).cast() }
    }

    /// Whether libsrt takes it for an address.
    pub(crate) fn is_valid(&self) -> bool {
        let needed = match i32::from(self.storage.ss_family) {
            libc::AF_INET => 16,
            libc::AF_INET6 => 28,
            _ => return false,
        };
        !self.is_null && (self.len == 0 || self.len >= needed)
    }

    /// An address of this host.
    pub(crate) fn new(address: SocketAddr) -> Self {
        // SAFETY: all bytes zero are a valid value.
        let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
        let place = &raw mut storage;
        let len = match address {
            SocketAddr::V4(v4) => {
                let value = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                // SAFETY: the storage has room for every address.
                unsafe { place.cast::<libc::sockaddr_in>().write(value) };
                16
            }
            SocketAddr::V6(v6) => {
                let value = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: 0,
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: 0,
                };
                // SAFETY: as above.
                unsafe { place.cast::<libc::sockaddr_in6>().write(value) };
                28
            }
        };
        Self { storage, len, is_null: false }
    }

    /// The storage, as groups take it.
    pub(crate) fn storage(&self) -> sockaddr_storage {
        self.storage
    }
}

/// Addresses of this host, on which nothing leaves it.
const LOCAL: [&str; 10] = [
    "127.0.0.1:0",
    "127.0.0.1:0",
    "127.0.0.1:0",
    "127.0.0.2:0",
    "0.0.0.0:0",
    "[::1]:0",
    "[::]:0",
    "[::ffff:127.0.0.1]:0",
    "127.0.0.1:1",
    "[::1]:1",
];

impl World {
    /// An address to bind to: mostly one without a port, or one that is bound.
    pub(crate) fn local(&self, input: &mut Input<'_>) -> Address {
        let share = if self.bound.is_empty() { 0 } else { 90 };
        self.mostly_valid(input, share)
    }

    /// An address to call: mostly one that is bound.
    pub(crate) fn remote(&self, input: &mut Input<'_>) -> Address {
        let share = if self.bound.is_empty() { 0 } else { 220 };
        self.mostly_valid(input, share)
    }

    fn mostly_valid(&self, input: &mut Input<'_>, bound: u8) -> Address {
        let address = match input.is(bound) {
            true => reachable(input.pick(&self.bound)),
            false => input.pick(&LOCAL).parse().expect("an address"),
        };
        let mut address = Address::new(address);
        match input.byte() {
            0..=220 => {}
            221..=225 => address.is_null = true,
            226..=240 => address.len = input.pick(&[-1, 0, 1, 2, 8, 15, 16, 27, 28, 127, 128]),
            241..=247 => address.storage.ss_family = input.pick(&[0, 1, 2, 10, 99]),
            _ => address.len = 128,
        }
        address
    }
}

/// An address at which the socket that is bound to this one can be called.
fn reachable(bound: SocketAddr) -> SocketAddr {
    match bound {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => ([127, 0, 0, 1], v4.port()).into(),
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            (std::net::Ipv6Addr::LOCALHOST, v6.port()).into()
        }
        other => other,
    }
}
