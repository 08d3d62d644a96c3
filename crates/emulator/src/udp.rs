//! The emulator's UDP sockets.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use punctual_io::{SendBatch, UdpOptions, UdpSocket};
use socket2::{Domain, Protocol, Socket, Type};

/// Binds a socket.
pub(super) fn bind(local: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(KERNEL_BUFFER)?;
    socket.set_send_buffer_size(KERNEL_BUFFER)?;
    socket.bind(&local.into())?;
    UdpSocket::new(socket, UdpOptions::default())
}

/// Sends datagrams to `remote`. One that the system refuses (too large, no route, nobody there) is
/// as good as lost on the way.
pub(super) async fn send(
    socket: &UdpSocket,
    buffer: &mut SendBatch,
    remote: SocketAddr,
    datagrams: &[Bytes],
) {
    let refused = |error| tracing::debug!("to {remote}: {error}");
    if let Err(error) = buffer.send(socket, Some(remote), datagrams, refused).await {
        tracing::debug!("to {remote}: {error}");
    }
}

/// Bytes that wait in the kernel while this program is busy: 0.4 s at 80 Mb/s.
const KERNEL_BUFFER: usize = 4 << 20;
