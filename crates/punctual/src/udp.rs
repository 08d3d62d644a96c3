//! UDP sockets with a port's options.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use punctual_io::{UdpOptions, UdpSocket};
use socket2::{Domain, Protocol, Socket, Type};

use crate::config::PortConfig;
use crate::config::port_options::{RECEIVE_BUFFER, SEND_BUFFER};
use crate::error::Error;

/// Binds a UDP socket to `config.local`. With `shared`, other sockets may bind the same port, and
/// the kernel distributes the peers over them. Fails outside a tokio runtime.
pub(crate) fn bind(config: &PortConfig, shared: bool) -> Result<UdpSocket, Error> {
    Ok(adopt(reserve(config, shared)?, config)?)
}

/// Binds a UDP socket as [`bind`] does, for a later [`adopt`].
pub(crate) fn reserve(config: &PortConfig, shared: bool) -> Result<Socket, Error> {
    let Some(local) = config.local else {
        let both_families = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
        return reserve_at(both_families, config, shared).or_else(|error| {
            // A system without IPv6.
            let ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            let needs_ipv6 = config.ipv6_only == Some(true);
            if needs_ipv6 { Err(error) } else { reserve_at(ipv4, config, shared) }
        });
    };
    reserve_at(local, config, shared)
}

fn reserve_at(local: SocketAddr, config: &PortConfig, shared: bool) -> Result<Socket, Error> {
    config.check()?;
    let socket = open(local, config, shared).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot bind UDP port {local}: {error}"))
    })?;
    Ok(socket)
}

/// Takes over a UDP socket that is bound. Fails outside a tokio runtime.
pub(crate) fn adopt(socket: Socket, config: &PortConfig) -> io::Result<UdpSocket> {
    UdpSocket::new(socket, UdpOptions { keeps_tos: config.tos.is_some(), pausable: true })
}

/// Lets further sockets bind the same port.
pub(crate) fn let_share(socket: &Socket) -> io::Result<()> {
    share_port(socket)
}

fn open(local: SocketAddr, config: &PortConfig, shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
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
            "the system gave smaller UDP buffers than configured"
        );
    }
    Ok(())
}

fn set_ttl(socket: &Socket, local: SocketAddr, ttl: u32) -> io::Result<()> {
    if local.is_ipv4() {
        return socket.set_ttl_v4(ttl);
    }
    socket.set_unicast_hops_v6(ttl)?;
    // For the IPv4 peers of a socket of both families. Some systems refuse it.
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
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Unix shares a port among several sockets"))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::*;

    fn bound(local: &str, config: PortConfig) -> Option<UdpSocket> {
        let ipv6 = local.starts_with('[');
        if ipv6 && std::net::TcpListener::bind("[::1]:0").is_err() {
            return None;
        }
        let config = PortConfig { local: Some(local.parse().unwrap()), ..config };
        Some(bind(&config, false).unwrap())
    }

    #[tokio::test]
    async fn the_system_socket_has_the_configured_options() {
        let config = PortConfig { ttl: Some(7), tos: Some(0xB8), ..PortConfig::default() };
        let ipv4 = bound("127.0.0.1:0", config.clone()).unwrap();
        let socket = ipv4.options();
        assert_eq!((socket.ttl_v4().unwrap(), socket.tos_v4().unwrap()), (7, 0xB8));
        // A port of both families has the options for both.
        let Some(both) = bound("[::]:0", config) else { return };
        let socket = both.options();
        assert_eq!(socket.unicast_hops_v6().unwrap(), 7);
        assert_eq!(socket.tclass_v6().unwrap(), 0xB8);
        assert_eq!((socket.ttl_v4().unwrap(), socket.tos_v4().unwrap()), (7, 0xB8));
    }

    #[tokio::test]
    async fn a_port_is_bound_to_its_device_and_an_error_names_an_unknown_one() {
        let on = |device: &str| PortConfig {
            device: Some(device.to_owned()),
            local: Some("127.0.0.1:0".parse().unwrap()),
            ..PortConfig::default()
        };
        let udp = bind(&on("lo"), false).unwrap();
        let device = udp.options().device().unwrap();
        assert_eq!(device.as_deref(), Some(b"lo".as_slice()));
        let error = bind(&on("nosuchdevice"), false).unwrap_err().to_string();
        assert!(error.contains("nosuchdevice"), "{error}");
    }

    #[tokio::test]
    async fn a_port_of_ipv6_is_closed_to_ipv4_only_if_configured() {
        for (ipv6_only, open) in [(None, true), (Some(false), true), (Some(true), false)] {
            let config = PortConfig { ipv6_only, ..PortConfig::default() };
            let Some(udp) = bound("[::]:0", config) else { return };
            assert_eq!(udp.options().only_v6().unwrap(), !open);
            assert_eq!(udp.check_family("127.0.0.1:9".parse().unwrap()).is_ok(), open);
            assert!(udp.check_family("[::1]:9".parse().unwrap()).is_ok());
        }
    }
}
