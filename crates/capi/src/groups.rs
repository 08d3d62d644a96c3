//! Groups of links.

use std::ffi::{c_int, c_void};
use std::{ptr, slice};

use libc::{sockaddr, sockaddr_storage};
use punctual_sockets::{Code, Failure, Library, LinkCall, MemberInfo, OptionNumber, Value, kind};

use crate::abi::{FAILED, GroupConfig, GroupData, MsgCtrl, SocketId};
use crate::border::{answer, int, quietly};
use crate::{address, library, options};

/// The options of one link, which a program holds by a pointer.
type LinkOptions = Vec<(OptionNumber, Value)>;

/// The options that a link can have on its own.
const OF_LINKS: [OptionNumber; 22] = [
    OptionNumber::BINDTODEVICE,
    OptionNumber::CONNTIMEO,
    OptionNumber::DRIFTTRACER,
    OptionNumber::GROUPMINSTABLETIMEO,
    OptionNumber::INPUTBW,
    OptionNumber::IPTOS,
    OptionNumber::IPTTL,
    OptionNumber::KMREFRESHRATE,
    OptionNumber::KMPREANNOUNCE,
    OptionNumber::LOSSMAXTTL,
    OptionNumber::MAXBW,
    OptionNumber::MININPUTBW,
    OptionNumber::NAKREPORT,
    OptionNumber::OHEADBW,
    OptionNumber::PACKETFILTER,
    OptionNumber::PASSPHRASE,
    OptionNumber::PBKEYLEN,
    OptionNumber::PEERIDLETIMEO,
    OptionNumber::RETRANSMITALGO,
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
/// For a group, `control.grpdata` is null, or has `control.grpdata_size` places.
pub(crate) unsafe fn report_links(socket: SocketId, control: &mut MsgCtrl) {
    if !Library::is_group_number(socket) || control.grpdata.is_null() {
        return;
    }
    let members = library::of_socket().and_then(|library| library.members(socket));
    let Ok(members) = members else { return };
    // SAFETY: the caller says so.
    if !unsafe { fill(&members, control.grpdata, &raw mut control.grpdata_size) } {
        control.grpdata = ptr::null_mut();
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
        // SAFETY: the caller says so.
        let links = unsafe { slice::from_raw_parts_mut(links, count) };
        let calls: Vec<LinkCall> = links.iter().map(call).collect::<Result<_, Failure>>()?;
        let mut started = Vec::new();
        let connected = library.connect_links(group, &calls, &mut started);
        for (link, (id, code)) in links.iter_mut().zip(started) {
            link.id = id;
            link.errorcode = code as c_int;
        }
        connected
    })
}

fn call(link: &GroupConfig) -> Result<LinkCall, Failure> {
    let remote = address::from_storage(&link.peeraddr).ok_or(Code::InvalidParameter)?;
    // SAFETY: the program says that the pointer comes from `srt_create_config`, or is null.
    let options = unsafe { link.config.cast::<LinkOptions>().as_ref() };
    let local = address::from_storage(&link.srcaddr);
    let (weight, token) = (link.weight, link.token);
    Ok(LinkCall { local, remote, weight, token, options: options.cloned().unwrap_or_default() })
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
    match unsafe { options::read(kind, value.cast(), len) } {
        Ok(value) => {
            config.push((number, value));
            0
        }
        Err(_) => FAILED,
    }
}
