//! Groups of links.

use std::ffi::{c_int, c_void};
use std::ptr;

use libc::{sockaddr, sockaddr_storage};
use punctual_sockets::{
    Code, Failure, Library, LinkCall, MemberInfo, OptionNumber, SocketOptionValue, StartedCall,
    kind,
};

use crate::abi::{FAILED, GroupConfig, GroupData, MsgCtrl, SocketId};
use crate::border::{answer, int, quietly};
use crate::{address, library, options};

/// The options of one link, which a program holds by a pointer.
type LinkOptions = Vec<(OptionNumber, SocketOptionValue)>;

/// The options that a link can have on its own, those of libsrt.
const OF_LINKS: [OptionNumber; 16] = [
    OptionNumber::BINDTODEVICE,
    OptionNumber::CONNTIMEO,
    OptionNumber::DRIFTTRACER,
    OptionNumber::GROUPMINSTABLETIMEO,
    OptionNumber::IPTOS,
    OptionNumber::IPTTL,
    OptionNumber::KMREFRESHRATE,
    OptionNumber::KMPREANNOUNCE,
    OptionNumber::LOSSMAXTTL,
    OptionNumber::NAKREPORT,
    OptionNumber::PEERIDLETIMEO,
    OptionNumber::RCVBUF,
    OptionNumber::SNDBUF,
    OptionNumber::SNDDROPDELAY,
    OptionNumber::UDP_RCVBUF,
    OptionNumber::UDP_SNDBUF,
];

/// Creates a group.
#[unsafe(no_mangle)]
pub extern "C" fn srt_create_group(kind: c_int) -> SocketId {
    answer(|| library::running()?.create_group(kind))
}

/// The group of a link.
#[unsafe(no_mangle)]
pub extern "C" fn srt_groupof(socket: SocketId) -> SocketId {
    answer(|| {
        let library = library::present()?.ok_or(Code::InvalidParameter)?;
        library.group_of(socket)
    })
}

/// The links of a group. Returns their number.
///
/// # Safety
///
/// `len` is null or can be read and written; `output` is null or has `*len` places.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_group_data(
    group: SocketId,
    output: *mut GroupData,
    len: *mut usize,
) -> c_int {
    answer(|| {
        let library = library::present()?.ok_or(Code::InvalidParameter)?;
        let members = library.members(group)?;
        if len.is_null() {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: the caller says so.
        let fits = unsafe { fill(&members, output, len) };
        match (fits, output.is_null()) {
            (true, false) => Ok(int(members.len())),
            (true, true) => Ok(0),
            (false, _) => Err(Code::LargeMessage.into()),
        }
    })
}

/// Writes the links where a program wants them. Returns whether there was enough room.
///
/// # Safety
///
/// `len` can be read and written; `output` is null or has `*len` places.
unsafe fn fill(members: &[MemberInfo], output: *mut GroupData, len: *mut usize) -> bool {
    // SAFETY: the caller says so.
    unsafe {
        let room = len.read();
        len.write(members.len());
        if output.is_null() {
            return true;
        }
        if room < members.len() {
            return false;
        }
        for (index, member) in members.iter().enumerate() {
            output.add(index).write(data(member));
        }
    }
    true
}

fn data(member: &MemberInfo) -> GroupData {
    GroupData {
        id: member.id,
        peeraddr: address::to_storage(member.remote).0,
        sockstate: member.socket as c_int,
        weight: member.weight,
        memberstate: member.state as c_int,
        result: if member.error == Code::Success { 0 } else { FAILED },
        token: member.token,
    }
}

/// Tells a program the links of a group after a message, if it wants to know. Nothing is read or
/// written for a single connection, whose programs need not set these fields.
///
/// # Safety
///
/// `control` can be written. For a group, `grpdata` is null, or has `grpdata_size` places.
pub(crate) unsafe fn report_links(socket: SocketId, control: *mut MsgCtrl) {
    if !Library::is_group_number(socket) {
        return;
    }
    // SAFETY: the caller says so.
    unsafe {
        let places = (&raw const (*control).grpdata).read();
        if places.is_null() {
            return;
        }
        let members = library::of_socket().and_then(|library| library.members(socket));
        let Ok(members) = members else { return };
        if !fill(&members, places, &raw mut (*control).grpdata_size) {
            (&raw mut (*control).grpdata).write(ptr::null_mut());
        }
    }
}

/// A link from `source`, which may be null, to `target`.
///
/// # Safety
///
/// Each address is null, or has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_prepare_endpoint(
    source: *const sockaddr,
    target: *const sockaddr,
    len: c_int,
) -> GroupConfig {
    // SAFETY: all bytes zero are a valid value, which stands for no address.
    let nowhere = || unsafe { std::mem::zeroed::<sockaddr_storage>() };
    let mut config = GroupConfig {
        id: FAILED,
        srcaddr: nowhere(),
        peeraddr: nowhere(),
        weight: 0,
        config: ptr::null_mut(),
        errorcode: Code::Success as c_int,
        token: FAILED,
    };
    // SAFETY: the caller says so.
    let (local, remote) = unsafe {
        let local = (!source.is_null()).then(|| address::read(source, len)).transpose();
        (local, address::read(target, len))
    };
    match (local, remote) {
        (Ok(local), Ok(remote)) if local.is_none_or(|it| it.is_ipv4() == remote.is_ipv4()) => {
            config.peeraddr = address::to_storage(remote).0;
            match local {
                Some(local) => config.srcaddr = address::to_storage(local).0,
                // As libsrt does: the family shows that any address of it is meant.
                None => config.srcaddr.ss_family = config.peeraddr.ss_family,
            }
        }
        _ => config.errorcode = Code::InvalidParameter as c_int,
    }
    config
}

/// Calls over links of a group.
///
/// # Safety
///
/// `links` has `count` entries, whose options come from [`srt_create_config`] or are null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_connect_group(
    group: SocketId,
    links: *mut GroupConfig,
    count: c_int,
) -> c_int {
    answer(|| {
        let library = library::present()?.ok_or(Code::InvalidParameter)?;
        let count = usize::try_from(count).ok().filter(|&count| count > 0);
        let count = count.ok_or(Code::InvalidParameter)?;
        if links.is_null() || !Library::is_group_number(group) {
            return Err(Code::InvalidParameter.into());
        }
        // SAFETY: the caller says so. No reference is made: programs need not set every field.
        let places = (0..count).map(|index| unsafe { links.add(index) });
        // SAFETY: as above.
        let calls = places.clone().map(|link| unsafe { call(link) });
        let calls: Vec<LinkCall> = calls.collect::<Result<_, Failure>>()?;
        let mut started = Vec::new();
        let connected = library.connect_links(group, &calls, &mut started);
        for (link, StartedCall { id, token, error }) in places.zip(started) {
            // SAFETY: as above.
            unsafe {
                (&raw mut (*link).id).write(id);
                (&raw mut (*link).token).write(token);
                (&raw mut (*link).errorcode).write(error as c_int);
            }
        }
        connected
    })
}

/// # Safety
///
/// The addresses, the weight, the token and the options of the link can be read; the options come
/// from [`srt_create_config`] or are null.
unsafe fn call(link: *const GroupConfig) -> Result<LinkCall, Failure> {
    // SAFETY: the caller says so.
    unsafe {
        let remote = address::from_storage(&raw const (*link).peeraddr);
        let options = (&raw const (*link).config).read().cast::<LinkOptions>().as_ref();
        Ok(LinkCall {
            local: address::from_storage(&raw const (*link).srcaddr),
            remote: remote.ok_or(Code::InvalidParameter)?,
            weight: (&raw const (*link).weight).read(),
            token: (&raw const (*link).token).read(),
            options: options.cloned().unwrap_or_default(),
        })
    }
}

/// Makes options for one link, none of which is set.
#[unsafe(no_mangle)]
pub extern "C" fn srt_create_config() -> *mut c_void {
    quietly(ptr::null_mut(), || Box::into_raw(Box::<LinkOptions>::default()).cast())
}

/// Forgets options of a link.
///
/// # Safety
///
/// `config` is null, or comes from [`srt_create_config`] and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_delete_config(config: *mut c_void) {
    if !config.is_null() {
        // SAFETY: the caller says so.
        drop(unsafe { Box::from_raw(config.cast::<LinkOptions>()) });
    }
}

/// Adds an option for one link.
///
/// # Safety
///
/// `config` is null or comes from [`srt_create_config`]; `value` has `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn srt_config_add(
    config: *mut c_void,
    option: c_int,
    value: *const c_void,
    len: c_int,
) -> c_int {
    let number = OptionNumber(option);
    // SAFETY: the caller says so.
    let config = unsafe { config.cast::<LinkOptions>().as_mut() };
    let (Some(config), Some(kind), true) = (config, kind(number), OF_LINKS.contains(&number))
    else {
        return FAILED;
    };
    // SAFETY: the caller says so.
    match unsafe { options::read(number, kind, value.cast(), len) } {
        Ok(value) => {
            config.push((number, value));
            0
        }
        Err(_) => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use punctual_sockets::{MemberState, SocketState};

    use super::*;

    fn members() -> Vec<MemberInfo> {
        let member = |id| MemberInfo {
            id,
            remote: "192.0.2.1:4200".parse().unwrap(),
            socket: SocketState::Connected,
            weight: 3,
            state: MemberState::Running,
            token: 9,
            error: Code::Success,
        };
        vec![member(1), member(2)]
    }

    #[test]
    fn links_are_written_where_there_is_room_for_all() {
        let mut places = [const { MaybeUninit::<GroupData>::uninit() }; 3];
        let output: *mut GroupData = places.as_mut_ptr().cast();
        for (room, fits) in [(0, false), (1, false), (2, true), (3, true)] {
            let mut len = room;
            // SAFETY: there are at least as many places as are told.
            assert_eq!(unsafe { fill(&members(), output, &raw mut len) }, fits, "{room}");
            assert_eq!(len, 2);
        }
        // SAFETY: two were written.
        let last = unsafe { places[1].assume_init_ref() };
        assert_eq!((last.id, last.sockstate, last.memberstate, last.token), (2, 5, 2, 9));
        let mut len = 0;
        // SAFETY: null is allowed.
        assert!(unsafe { fill(&members(), ptr::null_mut(), &raw mut len) });
    }

    #[test]
    fn the_fields_of_a_link_that_are_not_read_need_not_be_set() {
        let options = srt_create_config();
        let token = 7i32.to_ne_bytes();
        let mut link = MaybeUninit::<GroupConfig>::uninit();
        let place = link.as_mut_ptr();
        let peer = address::to_storage("192.0.2.1:4200".parse().unwrap()).0;
        // SAFETY: the structure can be written; of the source only the family is set.
        let call = unsafe {
            (&raw mut (*place).peeraddr).write(peer);
            (&raw mut (*place).srcaddr.ss_family).write(0);
            (&raw mut (*place).weight).write(3);
            (&raw mut (*place).token).write(-1);
            (&raw mut (*place).config).write(options);
            let latency = OptionNumber::PEERIDLETIMEO.0;
            assert_eq!(srt_config_add(options, latency, token.as_ptr().cast(), 4), 0);
            call(place)
        };
        let call = call.unwrap();
        assert_eq!((call.local, call.weight, call.token), (None, 3, -1));
        assert_eq!(call.options, [(OptionNumber::PEERIDLETIMEO, SocketOptionValue::Int(7))]);
        // SAFETY: it comes from `srt_create_config`, and is not used any more.
        unsafe { srt_delete_config(options) };
    }

    #[test]
    fn options_that_links_do_not_have_are_refused() {
        let options = srt_create_config();
        let value = [0u8; 4];
        // SAFETY: the value has its bytes.
        unsafe {
            let add = |config, option: OptionNumber| {
                srt_config_add(config, option.0, value.as_ptr().cast(), 4)
            };
            for option in [
                OptionNumber::LATENCY,
                OptionNumber::MAXBW,
                OptionNumber::PACKETFILTER,
                OptionNumber::PASSPHRASE,
                OptionNumber::PBKEYLEN,
                OptionNumber::RETRANSMITALGO,
            ] {
                assert_eq!(add(options, option), FAILED, "{option:?}");
            }
            assert_eq!(
                (add(options, OptionNumber::SNDBUF), add(options, OptionNumber::RCVBUF)),
                (0, 0)
            );
            assert_eq!(add(ptr::null_mut(), OptionNumber::CONNTIMEO), FAILED);
            assert_eq!(srt_config_add(options, 36, ptr::null(), 4), FAILED);
            srt_delete_config(options);
            srt_delete_config(ptr::null_mut());
        }
    }

    #[test]
    fn a_link_is_prepared_from_addresses_of_one_family() {
        let (v4, len) = address::to_storage("192.0.2.1:4200".parse().unwrap());
        let (v6, _) = address::to_storage("[2001:db8::1]:4200".parse().unwrap());
        let [v4, v6]: [*const sockaddr; 2] = [(&raw const v4).cast(), (&raw const v6).cast()];
        let len = int(len);
        // SAFETY: each address has at least that many bytes.
        unsafe {
            let link = srt_prepare_endpoint(ptr::null(), v4, len);
            assert_eq!((link.errorcode, link.token, link.id), (0, -1, -1));
            assert_eq!(c_int::from(link.srcaddr.ss_family), libc::AF_INET);
            assert_eq!(srt_prepare_endpoint(v6, v4, 28).errorcode, 5_003);
            assert_eq!(srt_prepare_endpoint(v4, ptr::null(), len).errorcode, 5_003);
        }
    }
}
