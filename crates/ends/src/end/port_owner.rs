//! The program that has a port which another one wants.

use std::io;
use std::net::SocketAddr;

use crate::failure::Failure;

/// The transport of a port.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PortTransport {
    /// TCP.
    Tcp,
    /// UDP, and so SRT.
    Udp,
}

/// The failure to bind a port, with the program that has it if that is known.
pub fn cannot_bind(
    what: &str,
    local: SocketAddr,
    transport: PortTransport,
    error: &io::Error,
) -> Failure {
    let failure = Failure::runtime(format!("cannot {what} {local}: {error}"));
    with_owner(failure, local, transport, error)
}

/// Adds the program that has the port to `failure`, if `error` says that one has it.
pub(crate) fn with_owner(
    failure: Failure,
    local: SocketAddr,
    transport: PortTransport,
    error: &io::Error,
) -> Failure {
    if error.kind() != io::ErrorKind::AddrInUse {
        return failure;
    }
    let remedy = match transport {
        PortTransport::Tcp => "",
        PortTransport::Udp => "; take another port, or end that program",
    };
    match owner(local, transport) {
        Some(owner) => failure.with_advice(&format!("it belongs to {owner}{remedy}")),
        None => failure.with_advice(&format!("it belongs to another program{remedy}")),
    }
}

/// The program that has the port, such as `ffmpeg (process 4711)`, if the system tells: it does for
/// programs of the same user.
#[cfg(target_os = "linux")]
fn owner(local: SocketAddr, transport: PortTransport) -> Option<String> {
    let inodes = linux::inodes(local, transport);
    linux::process_with(&inodes)
}

#[cfg(not(target_os = "linux"))]
fn owner(_: SocketAddr, _: PortTransport) -> Option<String> {
    None
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

    use super::PortTransport;

    /// The numbers of the sockets that have the port at `local`, or at an address that covers it.
    pub(super) fn inodes(local: SocketAddr, transport: PortTransport) -> Vec<String> {
        let tables = match transport {
            PortTransport::Tcp => ["/proc/net/tcp", "/proc/net/tcp6"],
            PortTransport::Udp => ["/proc/net/udp", "/proc/net/udp6"],
        };
        let texts = tables.iter().filter_map(|table| fs::read_to_string(table).ok());
        texts.flat_map(|text| matching(&text, local)).collect()
    }

    /// The numbers of the sockets in a table of the system.
    pub(super) fn matching(table: &str, local: SocketAddr) -> Vec<String> {
        let of_line = |line: &str| {
            let mut words = line.split_whitespace();
            let bound = address(words.nth(1)?)?;
            let inode = words.nth(7)?;
            let covers = |ip: IpAddr| ip.is_unspecified() || local.ip().is_unspecified();
            let is_ours = bound.ip().to_canonical() == local.ip().to_canonical();
            let meets = bound.port() == local.port() && (is_ours || covers(bound.ip()));
            meets.then(|| inode.to_owned())
        };
        table.lines().skip(1).filter_map(of_line).collect()
    }

    /// `0100007F:1388`, in which words of 32 bits have the byte order of the machine.
    fn address(text: &str) -> Option<SocketAddr> {
        let (ip, port) = text.split_once(':')?;
        let port = u16::from_str_radix(port, 16).ok()?;
        let word = |digits: &str| u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes);
        let ip = match ip.len() {
            8 => IpAddr::V4(Ipv4Addr::from(word(ip)?)),
            32 => {
                let mut bytes = [0; 16];
                for (place, chunk) in bytes.chunks_exact_mut(4).enumerate() {
                    chunk.copy_from_slice(&word(ip.get(place * 8..place * 8 + 8)?)?);
                }
                IpAddr::V6(Ipv6Addr::from(bytes))
            }
            _ => return None,
        };
        Some(SocketAddr::new(ip, port))
    }

    /// The first process that has one of these sockets.
    pub(super) fn process_with(inodes: &[String]) -> Option<String> {
        let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
        let has_it = |files: fs::ReadDir| {
            let mut targets = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
            targets.any(|target| links.iter().any(|link| target.as_os_str() == link.as_str()))
        };
        fs::read_dir("/proc").ok()?.flatten().find_map(|process| {
            let number: u32 = process.file_name().to_str()?.parse().ok()?;
            has_it(fs::read_dir(process.path().join("fd")).ok()?).then_some(())?;
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            Some(format!("{} (process {number})", name.trim_end()))
        })
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_port_is_named() {
        let taken = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let local = taken.local_addr().unwrap();
        let error = std::net::UdpSocket::bind(local).unwrap_err();
        let text = cannot_bind("bind to", local, PortTransport::Udp, &error).to_string();
        let this = format!("(process {})", std::process::id());
        assert!(text.contains(&local.to_string()) && text.contains(&this), "{text}");
        let other = io::Error::from(io::ErrorKind::AddrNotAvailable);
        let text = cannot_bind("bind to", local, PortTransport::Udp, &other).to_string();
        assert!(!text.contains("process"), "{text}");
    }

    #[test]
    fn a_port_at_every_address_covers_each() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode ref pointer drops\n  \
                     11: 00000000:1388 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                     0        0 4711 2 0 0\n   \
                     12: 0100007F:1389 00000000:0000 07 00000000:00000000 00:00000000 00000000     \
                     0        0 4712 2 0 0\n";
        let of = |local: &str| linux::matching(table, local.parse().unwrap());
        assert_eq!(of("127.0.0.1:5000"), ["4711"]);
        assert_eq!(of("[::]:5001"), ["4712"]);
        assert!(of("10.0.0.1:5001").is_empty() && of("127.0.0.1:5002").is_empty());
    }
}
