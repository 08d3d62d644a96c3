//! UDP in batches: several datagrams a call, where the system can.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;

use bytes::Bytes;
use quinn_udp::{RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// A UDP socket that sends and receives several datagrams at once.
#[derive(Debug)]
pub(super) struct Udp {
    socket: UdpSocket,
    batching: UdpSocketState,
}

/// Room for what one call receives.
pub(super) struct Buffers {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH],
}

impl Default for Buffers {
    fn default() -> Self {
        Self { bytes: vec![0; BATCH * BUFFER], metas: [RecvMeta::default(); BATCH] }
    }
}

impl Udp {
    /// Binds a socket.
    pub(super) fn bind(local: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))?;
        socket.set_nonblocking(true)?;
        socket.set_recv_buffer_size(KERNEL_BUFFER)?;
        socket.set_send_buffer_size(KERNEL_BUFFER)?;
        socket.bind(&local.into())?;
        let batching = UdpSocketState::new((&socket).into())?;
        allow_fragmentation(&socket, local);
        Ok(Self { socket: UdpSocket::from_std(socket.into())?, batching })
    }

    /// The address that it is bound to.
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Receives at least one datagram; each is given to `take` with its sender. Cancel safe.
    pub(super) async fn receive(
        &self,
        buffers: &mut Buffers,
        mut take: impl FnMut(SocketAddr, Bytes),
    ) -> io::Result<()> {
        let Buffers { bytes, metas } = buffers;
        let received = self
            .socket
            .async_io(Interest::READABLE, || {
                let mut slices = bytes.chunks_mut(BUFFER).map(IoSliceMut::new);
                let mut slices: [IoSliceMut<'_>; BATCH] =
                    std::array::from_fn(|_| slices.next().expect("there are as many"));
                self.batching.recv((&self.socket).into(), &mut slices, metas)
            })
            .await?;
        for (buffer, meta) in bytes.chunks(BUFFER).zip(&metas[..received]) {
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                take(meta.addr, Bytes::copy_from_slice(datagram));
            }
        }
        Ok(())
    }

    /// Sends datagrams to `remote`, as many a call as have one size. What the system refuses for
    /// one (too large, no route, nobody there) is as good as lost on the way.
    pub(super) async fn send(&self, remote: SocketAddr, mut datagrams: &[Bytes]) {
        let mut contents = Vec::new();
        while let [first, ..] = datagrams {
            let segments = self.segments(datagrams);
            let (now, later) = datagrams.split_at(segments);
            datagrams = later;
            let transmit = |contents| Transmit {
                destination: remote,
                ecn: None,
                contents,
                segment_size: (segments > 1).then_some(first.len()),
                src_ip: None,
            };
            if segments == 1 {
                self.transmit(&transmit(first)).await;
            } else {
                contents.clear();
                now.iter().for_each(|datagram| contents.extend_from_slice(datagram));
                self.transmit(&transmit(&contents)).await;
            }
        }
    }

    async fn transmit(&self, transmit: &Transmit<'_>) {
        let send = || self.batching.try_send((&self.socket).into(), transmit);
        if let Err(error) = self.socket.async_io(Interest::WRITABLE, send).await {
            tracing::debug!("to {}: {error}", transmit.destination);
        }
    }

    /// How many of `datagrams` go out in one call: those of the size of the first, and one shorter
    /// at their end.
    fn segments(&self, datagrams: &[Bytes]) -> usize {
        let size = datagrams[0].len();
        let most = (LARGEST_SEND / size.max(1)).min(self.batching.max_gso_segments()).max(1);
        let same = datagrams.iter().take(most).take_while(|d| d.len() == size).count();
        let shorter = datagrams.get(same).is_some_and(|d| d.len() < size && !d.is_empty());
        if same < most && shorter { same + 1 } else { same }
    }
}

/// Lets the system fragment what is larger than the path takes: a relay carries what it gets.
fn allow_fragmentation(socket: &Socket, local: SocketAddr) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use rustix::net::sockopt;
        let set = match local {
            SocketAddr::V4(_) => {
                sockopt::set_ip_mtu_discover(socket, sockopt::Ipv4PathMtuDiscovery::WANT)
            }
            SocketAddr::V6(_) => {
                sockopt::set_ipv6_mtu_discover(socket, sockopt::Ipv6PathMtuDiscovery::WANT)
            }
        };
        if let Err(error) = set {
            tracing::debug!("large datagrams will not be fragmented: {error}");
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, local);
}

/// Buffers filled by one call, each with one or more datagrams of one sender.
const BATCH: usize = 8;

/// Bytes of each: no UDP datagram is larger, and the kernel joins no more.
const BUFFER: usize = 65_536;

/// Bytes sent by one call at most.
const LARGEST_SEND: usize = 65_000;

/// What waits in the kernel while this program is busy: 0.4 s at 80 Mb/s.
const KERNEL_BUFFER: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn datagrams_keep_their_boundaries_and_order() {
        let any: SocketAddr = "127.0.0.1:0".parse().unwrap();
        let (from, to) = (Udp::bind(any).unwrap(), Udp::bind(any).unwrap());
        let sizes = [1_316, 1_316, 1_316, 188, 188, 1_316, 0, 1, 1_316, 60_000, 1];
        let datagrams: Vec<Bytes> =
            (0_u8..).zip(sizes).map(|(number, size)| Bytes::from(vec![number; size])).collect();
        from.send(to.local_addr().unwrap(), &datagrams).await;
        let (mut received, mut buffers) = (Vec::new(), Buffers::default());
        while received.len() < sizes.len() - 1 {
            to.receive(&mut buffers, |_, datagram| received.push(datagram)).await.unwrap();
        }
        // An empty datagram may be told or not.
        received.retain(|datagram| !datagram.is_empty());
        let sent: Vec<Bytes> = datagrams.into_iter().filter(|d| !d.is_empty()).collect();
        assert_eq!(received, sent);
    }
}
