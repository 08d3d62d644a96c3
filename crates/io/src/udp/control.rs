//! Sending with control messages on Linux: several datagrams in one call, and the source address.
//!
//! quinn-udp's `try_send` writes a traffic class into every datagram, for ECN, and so would undo
//! the type of service that was set for the socket.

use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};

use socket2::{MsgHdr, SockAddr, Socket};

/// Sends `contents` to `remote`, or to the peer of a connected socket, cut into datagrams of
/// `segment_size` bytes if that is given (GSO), from the address `source` if that is given.
pub(super) fn send(
    socket: &Socket,
    remote: Option<SocketAddr>,
    contents: &[u8],
    segment_size: Option<u16>,
    source: Option<IpAddr>,
) -> io::Result<()> {
    let mut control = ControlMessages::new();
    if let Some(size) = segment_size {
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &size.to_ne_bytes());
    }
    match source {
        Some(IpAddr::V4(ip)) => {
            // struct in_pktinfo: interface, source address, and one more that is only for
            // receiving.
            let mut info = [0; 12];
            info[4..8].copy_from_slice(&ip.octets());
            control.push(libc::IPPROTO_IP, libc::IP_PKTINFO, &info);
        }
        Some(IpAddr::V6(ip)) => {
            // struct in6_pktinfo: source address, interface.
            let mut info = [0; 20];
            info[..16].copy_from_slice(&ip.octets());
            control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &info);
        }
        None => {}
    }
    let remote = remote.map(SockAddr::from);
    let buffers = [IoSlice::new(contents)];
    let mut message = MsgHdr::new().with_buffers(&buffers);
    if let Some(remote) = &remote {
        message = message.with_addr(remote);
    }
    if control.len > 0 {
        message = message.with_control(&control.bytes[..control.len]);
    }
    loop {
        match socket.sendmsg(&message, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result.map(drop),
        }
    }
}

/// Control messages as the kernel reads them: `struct cmsghdr`, data, padding to a whole word.
struct ControlMessages {
    bytes: [u8; 64],
    len: usize,
}

impl ControlMessages {
    const fn new() -> Self {
        Self { bytes: [0; 64], len: 0 }
    }

    fn push(&mut self, level: i32, kind: i32, data: &[u8]) {
        let len = HEADER + data.len();
        let message = &mut self.bytes[self.len..][..len];
        message[..WORD].copy_from_slice(&len.to_ne_bytes());
        message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        message[WORD + 4..HEADER].copy_from_slice(&kind.to_ne_bytes());
        message[HEADER..].copy_from_slice(data);
        self.len += len.next_multiple_of(WORD);
    }
}

const WORD: usize = size_of::<usize>();
const HEADER: usize = WORD + 8;

#[cfg(test)]
#[expect(clippy::disallowed_types, reason = "a socket that waits is enough here")]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn control_messages_have_the_layout_of_the_kernel() {
        let mut control = ControlMessages::new();
        control.push(libc::SOL_UDP, libc::UDP_SEGMENT, &1_332_u16.to_ne_bytes());
        control.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, &[7; 20]);
        if WORD == 8 {
            assert_eq!(control.len, 24 + 40);
            assert_eq!(control.bytes[..8], 18_usize.to_ne_bytes());
            assert_eq!(control.bytes[16..18], 1_332_u16.to_ne_bytes());
            assert_eq!(control.bytes[24..32], 36_usize.to_ne_bytes());
        }
    }

    #[test]
    fn segments_arrive_as_datagrams() {
        let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
        let sender = Socket::from(UdpSocket::bind("0.0.0.0:0").unwrap());
        let contents: Vec<u8> = (0..25).collect();
        let source = Some("127.0.0.9".parse().unwrap());
        let remote = Some(receiver.local_addr().unwrap());
        send(&sender, remote, &contents, Some(10), source).unwrap();
        let mut buffer = [0; 100];
        for datagram in contents.chunks(10) {
            let (len, remote) = receiver.recv_from(&mut buffer).unwrap();
            assert_eq!(&buffer[..len], datagram);
            assert_eq!(Some(remote.ip()), source);
        }
    }
}
