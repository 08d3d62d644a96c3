//! TCP connections: calls and listeners.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::end::EndLog;
use crate::end::adapter::{LocalEnd, at_interface};
use crate::end::addresses::{addresses, first_to_answer};
use crate::end::port_owner::{PortTransport, cannot_bind};
use crate::end::resolve::resolve;
use crate::failure::Failure;
use punctual_uri::TcpTarget;

/// Connects to the peer that `target` names, at the address of its host that answers first.
pub(crate) async fn connect(target: &TcpTarget) -> Result<TcpStream, Failure> {
    let all = addresses(&target.host, target.port).await?;
    let stream = first_to_answer(&all, |remote| connect_to(target, remote)).await?;
    tracing::info!("connected with {}", stream.peer_addr()?);
    Ok(stream)
}

async fn connect_to(target: &TcpTarget, remote: SocketAddr) -> Result<TcpStream, Failure> {
    let remote = at_interface(remote, target.adapter.as_deref()).await?;
    let socket = new_socket(target, remote)?;
    if target.adapter.is_some() || target.local_port.is_some() {
        let local = local_ip(target, &socket, remote.ip()).await?;
        let local = SocketAddr::new(local, target.local_port.unwrap_or(0));
        socket.set_reuseaddr(true)?;
        socket
            .bind(local)
            .map_err(|error| cannot_bind("bind to", local, PortTransport::Tcp, &error))?;
    }
    let connected = socket.connect(remote).await;
    let stream = connected.map_err(|error| failed("connect with", remote, &error))?;
    stream.set_nodelay(target.no_delay)?;
    Ok(stream)
}

/// Listens where `target` says.
pub(crate) async fn listen(target: &TcpTarget) -> Result<TcpListener, Failure> {
    let mut local = resolve(&target.host, target.port, None).await?;
    if let Some(Ok(address)) = target.adapter.as_ref().map(|adapter| adapter.parse::<IpAddr>()) {
        if !target.host.is_empty() && address != local.ip() {
            let host = &target.host;
            let fault = format!("a listener has one address: `{host}` or adapter={address}");
            return Err(Failure::usage(fault));
        }
        local.set_ip(address);
    }
    let socket = new_socket(target, local)?;
    local_ip(target, &socket, local.ip()).await?;
    socket.set_reuseaddr(true)?;
    socket
        .bind(local)
        .map_err(|error| cannot_bind("listen on", local, PortTransport::Tcp, &error))?;
    let listener = socket.listen(BACKLOG)?;
    tracing::info!("listening on {}", listener.local_addr()?);
    Ok(listener)
}

/// The next connection that `listener` gets.
pub(crate) async fn accept(
    listener: &TcpListener,
    target: &TcpTarget,
    log: &EndLog,
) -> Result<TcpStream, Failure> {
    let (stream, remote) = listener.accept().await?;
    stream.set_nodelay(target.no_delay)?;
    log.connected(|| tracing::info!("connected with {remote}"));
    Ok(stream)
}

fn new_socket(target: &TcpTarget, address: SocketAddr) -> Result<TcpSocket, Failure> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    let size = |bytes: usize| u32::try_from(bytes).unwrap_or(u32::MAX);
    if let Some(bytes) = target.send_buffer {
        socket.set_send_buffer_size(size(bytes))?;
    }
    if let Some(bytes) = target.receive_buffer {
        socket.set_recv_buffer_size(size(bytes))?;
    }
    Ok(socket)
}

/// The local address of a connection with `remote`, or of a listener at it: that of the URI; every
/// one, of the interface that the URI names, to which `socket` is limited.
async fn local_ip(
    target: &TcpTarget,
    socket: &TcpSocket,
    remote: IpAddr,
) -> Result<IpAddr, Failure> {
    let end = LocalEnd::find(target.adapter.as_deref(), remote).await?;
    end.limit(socket)?;
    Ok(end.ip)
}

fn failed(what: &str, address: SocketAddr, error: &io::Error) -> Failure {
    Failure::runtime(format!("cannot {what} {address}: {error}"))
}

/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 64;
