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
            let v4 = address.cast::<sockaddr_in>();
            // SAFETY: it has the bytes of this structure. The fields are read one by one, since
            // programs may leave the padding unset.
            let (ip, port) = unsafe {
                let ip = (&raw const (*v4).sin_addr.s_addr).read_unaligned();
                (ip, (&raw const (*v4).sin_port).read_unaligned())
            };
            let ip = Ipv4Addr::from(u32::from_be(ip));
            Ok(SocketAddrV4::new(ip, u16::from_be(port)).into())
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
///
/// # Safety
///
/// The storage can be read; only the bytes of its family need be set.
pub(crate) unsafe fn from_storage(storage: *const sockaddr_storage) -> Option<SocketAddr> {
    let len = c_int::try_from(size_of::<sockaddr_storage>()).ok()?;
    // SAFETY: it has that many bytes.
    unsafe { read(storage.cast(), len) }.ok()
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
    use std::mem::MaybeUninit;

    use super::*;

    #[test]
    fn only_the_fields_of_an_address_need_be_set_and_it_may_lie_anywhere() {
        // One byte more, so that the address does not lie where structures do.
        let mut memory = MaybeUninit::<[u8; V4_LEN + 1]>::uninit();
        // SAFETY: the place has room for an address behind the first byte.
        let place = unsafe { memory.as_mut_ptr().cast::<u8>().add(1) };
        let v4 = place.cast::<sockaddr_in>();
        // SAFETY: as above. The last eight bytes stay unset.
        unsafe {
            (&raw mut (*v4).sin_family).write_unaligned(family(libc::AF_INET));
            (&raw mut (*v4).sin_port).write_unaligned(4_200u16.to_be());
            (&raw mut (*v4).sin_addr.s_addr)
                .write_unaligned(u32::from_be_bytes([192, 0, 2, 1]).to_be());
        }
        let expected = Ok("192.0.2.1:4200".parse().unwrap());
        for len in [16, 0, 128] {
            // SAFETY: the fields that are read are set.
            assert_eq!(unsafe { read(place.cast(), len) }, expected, "{len}");
        }
    }

    #[test]
    fn no_memory_is_read_for_an_address_that_cannot_be_one() {
        let family = [u8::try_from(libc::AF_UNIX).unwrap(), 0];
        let address: *const sockaddr = family.as_ptr().cast();
        for (address, len) in [(ptr::null(), 16), (address, -1), (address, 1), (address, 128)] {
            // SAFETY: there are the two bytes of the family.
            let read = unsafe { read(address, len) };
            assert_eq!(read, Err(Code::InvalidParameter.into()), "{len}");
        }
    }

    #[test]
    fn an_address_is_written_only_where_there_is_room() {
        let address = "[2001:db8::1]:4200".parse().unwrap();
        let mut room = MaybeUninit::<[u8; V6_LEN]>::uninit();
        let place: *mut sockaddr = room.as_mut_ptr().cast();
        for told in [-1, 0, 27] {
            let mut len = told;
            // SAFETY: there is more room than is told.
            assert!(unsafe { write(address, place, &raw mut len) }.is_err());
            assert_eq!(len, told);
        }
        let mut len = 28;
        // SAFETY: there is as much room as is told.
        unsafe {
            assert!(write(address, ptr::null_mut(), &raw mut len).is_err());
            assert!(write(address, place, ptr::null_mut()).is_err());
            assert_eq!(write(address, place, &raw mut len), Ok(()));
            assert_eq!(read(place, len), Ok(address));
        }
    }

    #[test]
    fn an_address_survives_the_way_to_c_and_back() {
        for text in ["192.0.2.1:4200", "[2001:db8::1]:4200"] {
            let address: SocketAddr = text.parse().unwrap();
            let (storage, len) = to_storage(address);
            // SAFETY: the storage can be read.
            assert_eq!(unsafe { from_storage(&raw const storage) }, Some(address));
            let short = c_int::try_from(len).unwrap() - 1;
            // SAFETY: the storage has that many bytes.
            let read = unsafe { read(ptr::from_ref(&storage).cast(), short) };
            assert_eq!(read, Err(Code::InvalidParameter.into()));
        }
    }
}
