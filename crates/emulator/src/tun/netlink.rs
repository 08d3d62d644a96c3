//! The few requests to the kernel (rtnetlink, RFC 3549) that set up a network namespace.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socket_with,
};

/// A socket that asks the kernel, in the namespace of the thread that opened it.
#[derive(Debug)]
pub(super) struct Netlink(OwnedFd);

impl Netlink {
    /// A socket for the namespace of the calling thread.
    pub(super) fn open() -> io::Result<Self> {
        // Protocol zero is NETLINK_ROUTE.
        let (flags, kind) = (SocketFlags::CLOEXEC, SocketType::RAW);
        Ok(Self(socket_with(AddressFamily::NETLINK, kind, flags, None)?))
    }

    /// Switches a device on.
    pub(super) fn switch_on(&self, device: u32) -> io::Result<()> {
        self.change(NetlinkRequest::new(RTM_NEWLINK, ACK).interface(device, IFF_UP))
    }

    /// Sets the largest packet that a device takes, and how many may wait to be read from it.
    pub(super) fn set_sizes(&self, device: u32, mtu: u32, queue: u32) -> io::Result<()> {
        let request = NetlinkRequest::new(RTM_NEWLINK, ACK).interface(device, 0);
        let request = request.attribute(IFLA_MTU, &mtu.to_ne_bytes());
        self.change(request.attribute(IFLA_TXQLEN, &queue.to_ne_bytes()))
    }

    /// Gives a device an address, which is usable at once.
    pub(super) fn add_address(&self, device: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let octets = octets(address);
        let request = NetlinkRequest::new(RTM_NEWADDR, CREATE)
            .bytes(&[family(address), prefix, IFA_F_NODAD, RT_SCOPE_UNIVERSE])
            .bytes(&device.to_ne_bytes());
        self.change(request.attribute(IFA_LOCAL, &octets).attribute(IFA_ADDRESS, &octets))
    }

    /// Sends to a device whatever has no other way, of the family of `like`.
    pub(super) fn add_default_route(&self, device: u32, like: IpAddr) -> io::Result<()> {
        let scope = if like.is_ipv4() { RT_SCOPE_LINK } else { RT_SCOPE_UNIVERSE };
        let request = NetlinkRequest::new(RTM_NEWROUTE, CREATE)
            .bytes(&[family(like), 0, 0, 0, RT_TABLE_MAIN, RTPROT_STATIC, scope, RTN_UNICAST])
            .bytes(&0_u32.to_ne_bytes());
        self.change(request.attribute(RTA_OIF, &device.to_ne_bytes()))
    }

    /// The number of packets that a device has dropped because nobody read them in time.
    pub(super) fn dropped(&self, device: u32) -> io::Result<u64> {
        let answer = self.ask(NetlinkRequest::new(RTM_GETLINK, ANSWER).interface(device, 0))?;
        let attributes = answer.get(HEADER + INTERFACE..).unwrap_or_default();
        let counters = attribute(attributes, IFLA_STATS64).unwrap_or_default();
        let dropped = counters.get(TX_DROPPED..).and_then(|rest| rest.first_chunk());
        let unknown = || io::Error::other("the kernel tells no statistics of the device");
        dropped.copied().map(u64::from_ne_bytes).ok_or_else(unknown)
    }

    fn change(&self, request: NetlinkRequest) -> io::Result<()> {
        self.ask(request).map(|_| ())
    }

    /// Sends a request; gives the answer, or the error that it is.
    fn ask(&self, request: NetlinkRequest) -> io::Result<Vec<u8>> {
        send(&self.0, &request.finish(), SendFlags::empty())?;
        let mut answer = vec![0; LARGEST_ANSWER];
        let (size, _) = recv(&self.0, &mut answer[..], RecvFlags::empty())?;
        answer.truncate(size);
        if u16_at(&answer, 4) == Some(NLMSG_ERROR) {
            let code = answer.get(HEADER..).and_then(|rest| rest.first_chunk());
            match code.copied().map(i32::from_ne_bytes) {
                Some(0) => {}
                Some(code) => return Err(io::Error::from_raw_os_error(-code)),
                None => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
        Ok(answer)
    }
}

/// A request that is being written.
struct NetlinkRequest(Vec<u8>);

impl NetlinkRequest {
    fn new(kind: u16, flags: u16) -> Self {
        // The length is known at the end.
        let message = Self(vec![0; 4]).bytes(&kind.to_ne_bytes()).bytes(&flags.to_ne_bytes());
        // Neither a sequence number nor an address: one question at a time, asked of the kernel.
        message.bytes(&[0; 8])
    }

    /// The fixed part of requests about a device: its new values for the `flags`.
    fn interface(self, device: u32, flags: u32) -> Self {
        let unspecified = self.bytes(&[0; 4]).bytes(&device.to_ne_bytes());
        unspecified.bytes(&flags.to_ne_bytes()).bytes(&flags.to_ne_bytes())
    }

    fn attribute(self, kind: u16, value: &[u8]) -> Self {
        let length = u16::try_from(ATTRIBUTE + value.len()).expect("values are a few bytes");
        let request = self.bytes(&length.to_ne_bytes()).bytes(&kind.to_ne_bytes()).bytes(value);
        let padding = request.0.len().next_multiple_of(ALIGNMENT) - request.0.len();
        request.bytes(&[0; ALIGNMENT][..padding])
    }

    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len()).expect("requests are a few attributes");
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

/// The value of the first attribute of this kind.
fn attribute(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(ATTRIBUTE..length)?;
        if u16_at(attributes, 2)? == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(ALIGNMENT)..)?;
    }
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    bytes.get(position..)?.first_chunk().copied().map(u16::from_ne_bytes)
}

fn family(address: IpAddr) -> u8 {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    u8::try_from(family.as_raw()).expect("both are small numbers")
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

// Numbers of linux/netlink.h, linux/rtnetlink.h, linux/if_link.h and linux/if_addr.h.
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;
/// `NLM_F_REQUEST`: the answer has the requested data.
const ANSWER: u16 = 1;
/// `NLM_F_REQUEST` and `NLM_F_ACK`: the answer is whether it was done.
const ACK: u16 = ANSWER | 4;
/// As `ACK`, with `NLM_F_EXCL` and `NLM_F_CREATE`.
const CREATE: u16 = ACK | 0x200 | 0x400;
const IFF_UP: u32 = 1;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_STATS64: u16 = 23;
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
/// The kernel does not look for another host with that address, which would take a second.
const IFA_F_NODAD: u8 = 2;
const RTA_OIF: u16 = 4;
const RT_SCOPE_UNIVERSE: u8 = 0;
const RT_SCOPE_LINK: u8 = 253;
const RT_TABLE_MAIN: u8 = 254;
const RTPROT_STATIC: u8 = 4;
const RTN_UNICAST: u8 = 1;

/// Bytes of a message's header, of the fixed part of a message about a device, of the header of an
/// attribute; and what attributes are padded to.
const HEADER: usize = 16;
const INTERFACE: usize = 16;
const ATTRIBUTE: usize = 4;
const ALIGNMENT: usize = 4;

/// Where `rtnl_link_stats64` has the packets that were not sent: the eighth of its counters.
const TX_DROPPED: usize = 7 * 8;

const LARGEST_ANSWER: usize = 16_384;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_their_length_in_front_and_attributes_are_padded() {
        let request =
            NetlinkRequest::new(RTM_NEWLINK, ACK).interface(7, IFF_UP).attribute(9, b"abcde");
        let bytes = request.finish();
        assert_eq!(bytes.len(), HEADER + INTERFACE + 12);
        assert_eq!(bytes[..4], 44_u32.to_ne_bytes());
        assert_eq!(attribute(&bytes[HEADER + INTERFACE..], 9), Some(&b"abcde"[..]));
        assert_eq!(attribute(&bytes[HEADER + INTERFACE..], 8), None);
    }

    #[test]
    fn a_refusal_of_the_kernel_is_an_error() {
        let netlink = Netlink::open().unwrap();
        // No device has this number.
        assert!(netlink.dropped(u32::MAX >> 1).is_err());
        // The loopback device is the first of each namespace.
        assert_eq!(netlink.dropped(1).unwrap(), 0);
    }
}
