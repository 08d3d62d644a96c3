//! UDP sockets as URIs describe them: unicast, multicast, source-specific multicast.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use punctual_io::{UdpOptions, UdpSocket, join_source};
use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};

use crate::end::adapter::{LocalEnd, at_interface};
use crate::end::addresses::{addresses, from_turn};
use crate::end::port_owner::{PortTransport, cannot_bind};
use crate::end::resolve::{interface_index, resolve, unspecified};
use crate::failure::Failure;
use punctual_uri::UdpTarget;

/// A socket that receives the datagrams for the address, group or port of `target`; `pausable` if
/// its datagrams may gather.
pub(crate) async fn receive_at(target: &UdpTarget, pausable: bool) -> Result<UdpSocket, Failure> {
    let mut address = resolve(&target.host, target.port, None).await?;
    let socket = new_socket(target, address)?;
    if !address.ip().is_multicast() {
        let end = LocalEnd::find(target.adapter.as_deref(), address.ip()).await?;
        if address.ip().is_unspecified() {
            address.set_ip(end.ip);
        }
        end.limit(&socket)?;
        address = at_interface(address, end.interface.as_deref()).await?;
        bind(&socket, address)?;
        return in_batches(socket, target, pausable);
    }
    let interface = interface(target, address.ip()).await?;
    interface.set_zone(&mut address);
    // Binding to the group keeps out datagrams for other groups at the same port; Windows cannot.
    let local = match cfg!(windows) {
        true => SocketAddr::new(unspecified(Some(address.ip())), address.port()),
        false => address,
    };
    bind(&socket, local)?;
    join(&socket, address, &target.sources, interface)
        .map_err(|error| failed("join the group", address, &error))?;
    in_batches(socket, target, pausable)
}

/// A socket that sends to `target`, and receives the answers.
///
/// Nobody answers for sure, so one address of the host gets the datagrams: the first that this
/// machine can send to, those of IPv4 first, because most receivers have IPv4 alone. Each `turn`
/// begins at the next.
pub(crate) async fn send_to(target: &UdpTarget, turn: usize) -> Result<UdpSocket, Failure> {
    let mut all = addresses(&target.host, target.port).await?;
    all.sort_by_key(SocketAddr::is_ipv6);
    let mut failed = None;
    for address in from_turn(all, turn) {
        match send_to_address(target, address).await {
            Ok(socket) => return Ok(socket),
            Err(failure) => failed = failed.or(Some(failure)),
        }
    }
    Err(failed.unwrap_or_else(|| Failure::runtime("there is no address to send to")))
}

async fn send_to_address(
    target: &UdpTarget,
    mut address: SocketAddr,
) -> Result<UdpSocket, Failure> {
    let socket = new_socket(target, address)?;
    let mut own = unspecified(Some(address.ip()));
    if address.ip().is_multicast() {
        let interface = interface(target, address.ip()).await?;
        interface.set_zone(&mut address);
        match interface {
            Interface::Any => {}
            Interface::Address(adapter) => {
                socket.set_multicast_if_v4(&adapter)?;
                own = adapter.into();
            }
            Interface::Index(index) if address.is_ipv4() => send_through(&socket, index)?,
            Interface::Index(index) => socket.set_multicast_if_v6(index)?,
        }
    } else {
        let end = LocalEnd::find(target.adapter.as_deref(), address.ip()).await?;
        end.limit(&socket)?;
        address = at_interface(address, end.interface.as_deref()).await?;
        own = end.ip;
    }
    let own = SocketAddr::new(own, target.local_port.unwrap_or(0));
    bind(&socket, own)?;
    socket.connect(&address.into()).map_err(|error| failed("send to", address, &error))?;
    in_batches(socket, target, false)
}

fn bind(socket: &Socket, local: SocketAddr) -> Result<(), Failure> {
    socket.bind(&local.into()).map_err(|error| {
        let failure = cannot_bind("bind to", local, PortTransport::Udp, &error);
        match error.kind() {
            io::ErrorKind::AddrInUse => failure.with_advice("`reuse=1` at both shares it"),
            _ => failure,
        }
    })
}

/// The interface that multicast goes through.
#[derive(Clone, Copy, Debug)]
enum Interface {
    Any,
    Address(Ipv4Addr),
    Index(u32),
}

impl Interface {
    /// Puts the interface into the address of an IPv6 group, which may need it: `ff02::1` is
    /// another group at each interface.
    fn set_zone(self, group: &mut SocketAddr) {
        if let (Self::Index(index), SocketAddr::V6(group)) = (self, group) {
            group.set_scope_id(index);
        }
    }
}

/// The interface that the URI names, by an address or by its name.
async fn interface(target: &UdpTarget, group: IpAddr) -> Result<Interface, Failure> {
    let Some(adapter) = &target.adapter else { return Ok(Interface::Any) };
    match adapter.parse() {
        Ok(IpAddr::V4(address)) if group.is_ipv4() => return Ok(Interface::Address(address)),
        Ok(address) => {
            let message = format!(
                "adapter={address}: the group {group} needs an IPv4 address or an interface's name"
            );
            return Err(Failure::usage(message));
        }
        Err(_) => {}
    }
    Ok(Interface::Index(interface_index(adapter).await?))
}

/// Joins a group, for everyone who sends to it or for some senders.
fn join(
    socket: &Socket,
    group: SocketAddr,
    sources: &[IpAddr],
    interface: Interface,
) -> io::Result<()> {
    let (group, zone) = match group {
        SocketAddr::V4(group) => (IpAddr::from(*group.ip()), 0),
        SocketAddr::V6(group) => (IpAddr::from(*group.ip()), group.scope_id()),
    };
    match (group, interface) {
        (IpAddr::V4(group), interface) if sources.is_empty() => {
            let interface = match interface {
                Interface::Any => InterfaceIndexOrAddress::Address(Ipv4Addr::UNSPECIFIED),
                Interface::Address(address) => InterfaceIndexOrAddress::Address(address),
                Interface::Index(index) => InterfaceIndexOrAddress::Index(index),
            };
            socket.join_multicast_v4_n(&group, &interface)
        }
        (IpAddr::V6(group), _) if sources.is_empty() => socket.join_multicast_v6(&group, zone),
        (IpAddr::V4(group), Interface::Any) => {
            join_from_v4(socket, group, sources, Ipv4Addr::UNSPECIFIED)
        }
        (IpAddr::V4(group), Interface::Address(address)) => {
            join_from_v4(socket, group, sources, address)
        }
        (group, Interface::Index(index)) => {
            sources.iter().try_for_each(|source| join_source(socket, group, *source, index))
        }
        (group, _) => {
            sources.iter().try_for_each(|source| join_source(socket, group, *source, zone))
        }
    }
}

/// Joins an IPv4 group for some senders at the interface with this address.
fn join_from_v4(
    socket: &Socket,
    group: Ipv4Addr,
    sources: &[IpAddr],
    interface: Ipv4Addr,
) -> io::Result<()> {
    sources.iter().try_for_each(|source| match source {
        IpAddr::V4(source) => socket.join_ssm_v4(source, &group, &interface),
        IpAddr::V6(_) => Err(io::Error::other("an IPv4 group has IPv4 sources")),
    })
}

/// Sends to an IPv4 group through the interface with this number.
fn send_through(socket: &Socket, index: u32) -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    {
        socket.bind_device_by_index_v4(std::num::NonZeroU32::new(index))?;
        Ok(())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, index);
        Err(Failure::usage("a sender's adapter is given by its address on this system"))
    }
}

fn new_socket(target: &UdpTarget, address: SocketAddr) -> Result<Socket, Failure> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    // All members of a group get its datagrams, but of a unicast port only the last program.
    socket.set_reuse_address(target.reuse || address.ip().is_multicast())?;
    if let Some(size) = target.send_buffer {
        socket.set_send_buffer_size(size)?;
    }
    socket.set_recv_buffer_size(target.receive_buffer.unwrap_or(RECEIVE_BUFFER))?;
    if address.is_ipv4() {
        set_v4_options(&socket, target)?;
    } else {
        set_v6_options(&socket, target)?;
    }
    Ok(socket)
}

fn set_v4_options(socket: &Socket, target: &UdpTarget) -> io::Result<()> {
    if let Some(ttl) = target.ttl {
        socket.set_ttl_v4(ttl)?;
        socket.set_multicast_ttl_v4(ttl)?;
    }
    if let Some(tos) = target.tos {
        socket.set_tos_v4(tos)?;
    }
    target.multicast_loop.map_or(Ok(()), |on| socket.set_multicast_loop_v4(on))
}

fn set_v6_options(socket: &Socket, target: &UdpTarget) -> io::Result<()> {
    if let Some(ttl) = target.ttl {
        socket.set_unicast_hops_v6(ttl)?;
        socket.set_multicast_hops_v6(ttl)?;
    }
    #[cfg(unix)]
    if let Some(tos) = target.tos {
        socket.set_tclass_v6(tos)?;
    }
    target.multicast_loop.map_or(Ok(()), |on| socket.set_multicast_loop_v6(on))
}

fn in_batches(socket: Socket, target: &UdpTarget, pausable: bool) -> Result<UdpSocket, Failure> {
    let options = UdpOptions { keeps_tos: target.tos.is_some(), pausable };
    Ok(UdpSocket::new(socket, options)?)
}

fn failed(what: &str, address: SocketAddr, error: &io::Error) -> Failure {
    Failure::runtime(format!("cannot {what} {address}: {error}"))
}

/// Bytes that wait in the kernel while the program is busy: 200 ms at 80 Mb/s. The kernel's own
/// limit may be lower.
const RECEIVE_BUFFER: usize = 2 << 20;
