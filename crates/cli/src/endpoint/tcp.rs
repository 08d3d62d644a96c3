//! TCP connections: calls and listeners.

use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::endpoint::EndLog;
use crate::endpoint::resolve::resolve;
use crate::exit::Failure;
use punctual_uri::TcpTarget;

/// Connects to the peer that `target` names.
pub(crate) async fn connect(target: &TcpTarget) -> Result<TcpStream, Failure> {
    let remote = resolve(&target.host, target.port, None).await?;
    let stream = new_socket(target, remote)?.connect(remote).await?;
    stream.set_nodelay(target.no_delay)?;
    tracing::info!("connected with {remote}");
    Ok(stream)
}

/// Listens where `target` says.
pub(crate) async fn listen(target: &TcpTarget) -> Result<TcpListener, Failure> {
    let local = resolve(&target.host, target.port, None).await?;
    let socket = new_socket(target, local)?;
    socket.set_reuseaddr(true)?;
    socket.bind(local)?;
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

/// The number of connections that may wait to be accepted.
const BACKLOG: u32 = 64;
