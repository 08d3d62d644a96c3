//! A UDP socket: opened with a port's options, received from and sent to in batches.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::task::{Context, Poll};

use punctual_proto::ConfigError;
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::runtime::Handle;

use crate::config::PortConfig;
use crate::error::Error;

/// A bound UDP socket. Addresses that go in and come out are canonical: IPv4 is IPv4 even on a
/// socket that serves both families.
#[derive(Debug)]
pub(crate) struct Udp {
    socket: UdpSocket,
    batching: UdpSocketState,
    local: SocketAddr,
    ipv6: bool,
    has_tos: bool,
}

impl Udp {
    /// Binds a UDP socket at `config.local`. With `shared`, others may bind the same port and the
    /// kernel deals the peers out. An error outside a tokio runtime.
    pub(crate) fn bind(config: &PortConfig, shared: bool) -> Result<Self, Error> {
        Handle::try_current().map_err(io::Error::other)?;
        let Some(local) = config.local else {
            let both_families = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
            return Self::bind_to(both_families, config, shared).or_else(|error| {
                // A system without IPv6.
                let ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
                let wanted = config.ipv6_only == Some(true);
                if wanted { Err(error) } else { Self::bind_to(ipv4, config, shared) }
            });
        };
        Self::bind_to(local, config, shared)
    }

    fn bind_to(local: SocketAddr, config: &PortConfig, shared: bool) -> Result<Self, Error> {
        check(config)?;
        let socket = open(local, config, shared).map_err(|error| {
            io::Error::new(error.kind(), format!("cannot bind UDP port {local}: {error}"))
        })?;
        let batching = UdpSocketState::new((&socket).into())?;
        allow_fragmentation(&socket, local.is_ipv6());
        let socket = UdpSocket::from_std(socket.into())?;
        let local = canonical(socket.local_addr()?);
        let ipv6 = local.is_ipv6();
        Ok(Self { socket, batching, local, ipv6, has_tos: config.tos.is_some() })
    }

    /// The address that the socket is bound to.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// An error if datagrams cannot be sent from this socket to `remote` for its family.
    pub(crate) fn check_family(&self, remote: SocketAddr) -> io::Result<()> {
        let reachable = match (canonical(remote), self.local) {
            (SocketAddr::V6(_), local) => local.is_ipv6(),
            (SocketAddr::V4(_), SocketAddr::V4(_)) => true,
            (SocketAddr::V4(_), SocketAddr::V6(local)) => {
                local.ip().is_unspecified() && !socket2::SockRef::from(&self.socket).only_v6()?
            }
        };
        if reachable {
            return Ok(());
        }
        let message = format!("{remote} cannot be reached from a port bound to {}", self.local);
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }

    /// How many datagrams the system takes in one call at most.
    pub(crate) fn max_segments(&self) -> usize {
        if cfg!(not(any(target_os = "linux", target_os = "android"))) && self.has_tos {
            // See `send_batch` for these systems.
            return 1;
        }
        self.batching.max_gso_segments().min(MAX_SEGMENTS)
    }

    /// Ready if there may be something to receive; else the task is woken when there is.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        // An error here means that the runtime shuts down and will drop the task.
        self.socket.poll_recv_ready(cx).map(drop)
    }

    /// Ready if there may be room to send; else the task is woken when there is.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.socket.poll_send_ready(cx).map(drop)
    }

    /// Receives as many buffers as there are and as there is something for, each of one or more
    /// datagrams of one peer (GRO). Errors that the system reports on the way go to `report`.
    pub(crate) fn receive(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        mut report: impl FnMut(&io::Error),
    ) -> Batch {
        let mut batch = Batch { received: 0, drained: true };
        let complete = self.socket.try_io(Interest::READABLE, || {
            batch.received = self.receive_now(buffers, metas, &mut report);
            batch.drained = batch.received < buffers.len();
            // An incomplete batch emptied the socket. Saying so from in here, where the reactor
            // notices a datagram that comes meanwhile, saves the call that would find it empty.
            if batch.drained { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        drop(complete);
        for meta in &mut metas[..batch.received] {
            meta.addr = canonical(meta.addr);
        }
        batch
    }

    fn receive_now(
        &self,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
        report: &mut impl FnMut(&io::Error),
    ) -> usize {
        for _ in 0..RECEIVE_ATTEMPTS {
            match self.batching.recv((&self.socket).into(), buffers, metas) {
                Ok(received) => return received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return 0,
                // For example a peer's ICMP message. It is gone now, but datagrams may wait behind.
                Err(error) => report(&error),
            }
        }
        0
    }

    /// Sends `contents` to `remote`: one datagram, or several of `segment_size` bytes of which the
    /// last may be shorter. `source` is the local address to send from if it matters.
    pub(crate) fn send(
        &self,
        remote: SocketAddr,
        contents: &[u8],
        segment_size: usize,
        source: Option<IpAddr>,
    ) -> io::Result<()> {
        let remote = if self.ipv6 { mapped(remote) } else { remote };
        let segment_size = (contents.len() > segment_size).then_some(segment_size);
        self.socket
            .try_io(Interest::WRITABLE, || self.send_batch(remote, contents, segment_size, source))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn send_batch(
        &self,
        remote: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
        source: Option<IpAddr>,
    ) -> io::Result<()> {
        let segment_size = segment_size.map(u16::try_from).transpose().map_err(io::Error::other)?;
        crate::control::send(&self.socket, remote, contents, segment_size, source)
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    fn send_batch(
        &self,
        remote: SocketAddr,
        contents: &[u8],
        segment_size: Option<usize>,
        src_ip: Option<IpAddr>,
    ) -> io::Result<()> {
        if self.has_tos {
            // quinn-udp writes a traffic class of its own into every datagram.
            return socket2::SockRef::from(&self.socket)
                .send_to(contents, &remote.into())
                .map(drop);
        }
        let destination = remote;
        let transmit =
            quinn_udp::Transmit { destination, ecn: None, contents, segment_size, src_ip };
        self.batching.try_send((&self.socket).into(), &transmit)
    }
}

/// What [`Udp::receive`] did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batch {
    /// Buffers that were filled.
    pub(crate) received: usize,
    /// Whether nothing was left in the socket.
    pub(crate) drained: bool,
}

/// `address` as applications and the machine know it: an IPv4 address that came as a mapped IPv6
/// address is IPv4, and there is no flow label.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => match v6.ip().to_ipv4_mapped() {
            Some(ip) => SocketAddr::from((ip, v6.port())),
            None => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
        },
    }
}

/// `address` as an IPv6 socket takes it.
fn mapped(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) => SocketAddr::from((v4.ip().to_ipv6_mapped(), v4.port())),
        SocketAddr::V6(_) => address,
    }
}

fn check(config: &PortConfig) -> Result<(), ConfigError> {
    let checks = [("ipttl", config.ttl, 1, "1 to 255 hops"), ("iptos", config.tos, 0, "0 to 255")];
    for (option, value, least, expected) in checks {
        if let Some(value) = value.filter(|value| !(least..=255).contains(value)) {
            return Err(ConfigError { option, value: value.to_string(), expected });
        }
    }
    Ok(())
}

fn open(local: SocketAddr, config: &PortConfig, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    if local.is_ipv6() {
        socket.set_only_v6(config.ipv6_only.unwrap_or(false))?;
    }
    if shared {
        share_port(&socket)?;
    }
    set_buffers(&socket, config)?;
    if let Some(ttl) = config.ttl {
        set_ttl(&socket, local, ttl)?;
    }
    if let Some(tos) = config.tos {
        set_tos(&socket, local, tos)?;
    }
    if let Some(device) = &config.device {
        bind_to_device(&socket, device)?;
    }
    socket.bind(&local.into())?;
    Ok(socket)
}

fn set_buffers(socket: &Socket, config: &PortConfig) -> io::Result<()> {
    let send = config.send_buffer.unwrap_or(SEND_BUFFER);
    let receive = config.receive_buffer.unwrap_or(RECEIVE_BUFFER);
    socket.set_send_buffer_size(send)?;
    socket.set_recv_buffer_size(receive)?;
    let (got_send, got_receive) = (socket.send_buffer_size()?, socket.recv_buffer_size()?);
    if got_send < send || got_receive < receive {
        tracing::debug!(
            send,
            got_send,
            receive,
            got_receive,
            "the system gave smaller UDP buffers than asked for"
        );
    }
    Ok(())
}

fn set_ttl(socket: &Socket, local: SocketAddr, ttl: u32) -> io::Result<()> {
    if local.is_ipv4() {
        return socket.set_ttl_v4(ttl);
    }
    socket.set_unicast_hops_v6(ttl)?;
    // For the IPv4 peers of a socket that serves both families, where the system lets us.
    socket.set_ttl_v4(ttl).or(Ok(()))
}

#[cfg(unix)]
fn set_tos(socket: &Socket, local: SocketAddr, tos: u32) -> io::Result<()> {
    if local.is_ipv4() {
        return socket.set_tos_v4(tos);
    }
    socket.set_tclass_v6(tos)?;
    socket.set_tos_v4(tos).or(Ok(()))
}

#[cfg(not(unix))]
fn set_tos(socket: &Socket, _local: SocketAddr, tos: u32) -> io::Result<()> {
    socket.set_tos_v4(tos)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn bind_to_device(socket: &Socket, device: &str) -> io::Result<()> {
    socket
        .bind_device(Some(device.as_bytes()))
        .map_err(|error| io::Error::new(error.kind(), format!("network device {device}: {error}")))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn bind_to_device(_socket: &Socket, device: &str) -> io::Result<()> {
    let message = format!("network device {device}: only Linux binds a port to a device");
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

#[cfg(unix)]
fn share_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(not(unix))]
fn share_port(_socket: &Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Unix deals a port out to several sockets"))
}

/// Lets the system fragment a datagram that is larger than the path takes, as it does for any other
/// SRT: quinn-udp forbids it because QUIC measures the path.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn allow_fragmentation(socket: &Socket, ipv6: bool) {
    use rustix::net::sockopt::{
        Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, set_ip_mtu_discover, set_ipv6_mtu_discover,
    };
    let ipv4_result = set_ip_mtu_discover(socket, Ipv4PathMtuDiscovery::WANT);
    let ipv6_result = if ipv6 {
        set_ipv6_mtu_discover(socket, Ipv6PathMtuDiscovery::WANT)
            .map_err(io::Error::from)
            .and_then(|()| clear_dontfrag(socket))
    } else {
        Ok(())
    };
    if let Err(error) = ipv4_result.map_err(io::Error::from).and(ipv6_result) {
        tracing::debug!(%error, "large datagrams will not be fragmented");
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
#[expect(unsafe_code, reason = "no safe wrapper for IPV6_DONTFRAG exists")]
fn clear_dontfrag(socket: &Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;

    let off: libc::c_int = 0;
    let len = libc::socklen_t::try_from(size_of_val(&off)).map_err(io::Error::other)?;
    // SAFETY: the file descriptor is open, and the value is a `c_int` that outlives the call, with
    // its true size.
    let result = unsafe {
        let value = (&raw const off).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, value, len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn allow_fragmentation(_socket: &Socket, _ipv6: bool) {}

/// Most datagrams sent in one call: as many of an MTU of 1500 as fit a UDP packet of 64 KiB, which
/// is the size up to which the kernel cuts.
const MAX_SEGMENTS: usize = 65_507 / 1_472;
/// Errors in a row after which a socket counts as empty, so that a broken one does not spin.
const RECEIVE_ATTEMPTS: usize = 4;
const SEND_BUFFER: usize = 2 << 20;
const RECEIVE_BUFFER: usize = 8 << 20;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use socket2::SockRef;

    use super::*;

    fn bound(local: &str, config: PortConfig) -> Option<Udp> {
        let ipv6 = local.starts_with('[');
        if ipv6 && std::net::TcpListener::bind("[::1]:0").is_err() {
            return None;
        }
        let config = PortConfig { local: Some(local.parse().unwrap()), ..config };
        Some(Udp::bind(&config, false).unwrap())
    }

    #[tokio::test]
    async fn the_system_has_what_the_options_say() {
        let config = PortConfig { ttl: Some(7), tos: Some(0xB8), ..PortConfig::default() };
        let ipv4 = bound("127.0.0.1:0", config.clone()).unwrap();
        let socket = SockRef::from(&ipv4.socket);
        assert_eq!((socket.ttl_v4().unwrap(), socket.tos_v4().unwrap()), (7, 0xB8));
        // A port of both families has them for both.
        let Some(both) = bound("[::]:0", config) else { return };
        let socket = SockRef::from(&both.socket);
        assert_eq!(socket.unicast_hops_v6().unwrap(), 7);
        assert_eq!(socket.tclass_v6().unwrap(), 0xB8);
        assert_eq!((socket.ttl_v4().unwrap(), socket.tos_v4().unwrap()), (7, 0xB8));
    }

    #[tokio::test]
    async fn a_port_is_bound_to_its_device_and_an_unknown_one_is_named() {
        let on = |device: &str| PortConfig {
            device: Some(device.to_owned()),
            local: Some("127.0.0.1:0".parse().unwrap()),
            ..PortConfig::default()
        };
        let udp = Udp::bind(&on("lo"), false).unwrap();
        let device = SockRef::from(&udp.socket).device().unwrap();
        assert_eq!(device.as_deref(), Some(b"lo".as_slice()));
        let error = Udp::bind(&on("nosuchdevice"), false).unwrap_err().to_string();
        assert!(error.contains("nosuchdevice"), "{error}");
    }

    #[tokio::test]
    async fn a_port_of_ipv6_is_closed_to_ipv4_where_it_should_be() {
        for (ipv6_only, open) in [(None, true), (Some(false), true), (Some(true), false)] {
            let config = PortConfig { ipv6_only, ..PortConfig::default() };
            let Some(udp) = bound("[::]:0", config) else { return };
            assert_eq!(SockRef::from(&udp.socket).only_v6().unwrap(), !open);
            assert_eq!(udp.check_family("127.0.0.1:9".parse().unwrap()).is_ok(), open);
            assert!(udp.check_family("[::1]:9".parse().unwrap()).is_ok());
        }
    }
}
