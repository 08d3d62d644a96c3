//! Socket addresses, to and from C.

use std::ffi::c_int;
use std::mem::size_of;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::ptr;

use libc::{sockaddr, sockaddr_in, sockaddr_in6, sockaddr_storage};
use punctual_sockets::{Code, Failure};

const V4_LEN: usize = size_of::<sockaddr_in>();
const V6_LEN: usize = size_of::<sockaddr_in6>();

/// Reads an address of `len` bytes.
///
/// # Safety
///
/// `address` is null, or has `len` bytes, or those of its family if `len` is 0.
pub(crate) unsafe fn read(address: *const sockaddr, len: c_int) -> Result<SocketAddr, Failure> {
    let len = usize::try_from(len).map_err(|_| Code::InvalidParameter)?;
    // Without a length, the family says how long the address is, as in libsrt.
    let len = if len == 0 { usize::MAX } else { len };
    if address.is_null() || len < size_of::<libc::sa_family_t>() {
        return Err(Code::InvalidParameter.into());
    }
    // SAFETY: it has at least the bytes of the family, which come first.
    let family = c_int::from(unsafe { ptr::read_unaligned(address.cast::<libc::sa_family_t>()) });
    match family {
        libc::AF_INET if len >= V4_LEN => {
            // SAFETY: it has the bytes of this structure.
            let v4 = unsafe { ptr::read_unaligned(address.cast::<sockaddr_in>()) };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            Ok(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)).into())
        }
        libc::AF_INET6 if len >= V6_LEN => {
            // SAFETY: it has the bytes of this structure.
            let v6 = unsafe { ptr::read_unaligned(address.cast::<sockaddr_in6>()) };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            let port = u16::from_be(v6.sin6_port);
            Ok(SocketAddrV6::new(ip, port, v6.sin6_flowinfo, v6.sin6_scope_id).into())
        }
        _ => Err(Code::InvalidParameter.into()),
    }
}

/// Reads an address out of a `sockaddr_storage`; `None` if it has no family that is known.
pub(crate) fn from_storage(storage: &sockaddr_storage) -> Option<SocketAddr> {
    let len = c_int::try_from(size_of::<sockaddr_storage>()).ok()?;
    // SAFETY: it has that many bytes.
    unsafe { read(ptr::from_ref(storage).cast(), len) }.ok()
}

/// The address in a `sockaddr_storage`, and the number of its bytes.
pub(crate) fn to_storage(address: SocketAddr) -> (sockaddr_storage, usize) {
    // SAFETY: all bytes zero are a valid value of this structure.
    let mut storage: sockaddr_storage = unsafe { std::mem::zeroed() };
    let place = ptr::from_mut(&mut storage);
    let len = match address {
        SocketAddr::V4(v4) => {
            let value = sockaddr_in {
                sin_family: family(libc::AF_INET),
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                sin_zero: [0; 8],
            };
            // SAFETY: a `sockaddr_storage` has room for every address, and its alignment.
            unsafe { place.cast::<sockaddr_in>().write(value) };
            V4_LEN
        }
        SocketAddr::V6(v6) => {
            let value = sockaddr_in6 {
                sin6_family: family(libc::AF_INET6),
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { place.cast::<sockaddr_in6>().write(value) };
            V6_LEN
        }
    };
    (storage, len)
}

fn family(number: c_int) -> libc::sa_family_t {
    libc::sa_family_t::try_from(number).unwrap_or(0)
}

/// Writes an address where a caller wants it. Fails if there is not enough room.
///
/// # Safety
///
/// `len` is null or can be read and written; `to` is null or has room for `*len` bytes.
pub(crate) unsafe fn write(
    address: SocketAddr,
    to: *mut sockaddr,
    len: *mut c_int,
) -> Result<(), Failure> {
    if to.is_null() || len.is_null() {
        return Err(Code::InvalidParameter.into());
    }
    let (storage, bytes) = to_storage(address);
    // SAFETY: the caller says so.
    unsafe {
        if usize::try_from(len.read()).unwrap_or(0) < bytes {
            return Err(Code::InvalidParameter.into());
        }
        ptr::copy_nonoverlapping(ptr::from_ref(&storage).cast::<u8>(), to.cast::<u8>(), bytes);
        len.write(c_int::try_from(bytes).unwrap_or(0));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_way_to_c_and_back() {
        for text in ["192.0.2.1:4200", "[2001:db8::1]:4200"] {
            let address: SocketAddr = text.parse().unwrap();
            let (storage, len) = to_storage(address);
            assert_eq!(from_storage(&storage), Some(address));
            let short = c_int::try_from(len).unwrap() - 1;
            // SAFETY: the storage has that many bytes.
            let read = unsafe { read(ptr::from_ref(&storage).cast(), short) };
            assert_eq!(read, Err(Code::InvalidParameter.into()));
        }
    }
}
