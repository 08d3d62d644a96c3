//! Datagrams on their way in, many at a time.

use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use bytes::Bytes;
use punctual_units::Instant;
use quinn_udp::{BATCH_SIZE, RecvMeta};

use super::UdpSocket;
use super::arrival::ArrivalClock;

/// Room for what one call receives: two megabytes, of which only what is used costs memory.
pub struct ReceiveBuffers {
    bytes: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
}

/// A datagram that was received.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Datagram {
    /// The address of the sender.
    pub from: SocketAddr,
    /// The address of this machine that it came to, if the system gives it.
    pub to: Option<IpAddr>,
    /// The time at which it came: on Linux at which the kernel took it from the network device,
    /// however long it waited to be received; elsewhere at which it was received.
    pub arrived: Instant,
    /// Its contents.
    pub payload: Bytes,
}

/// The outcome of one call to receive.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Received {
    /// Datagrams that came.
    pub datagrams: usize,
    /// Their bytes.
    pub bytes: usize,
    /// Whether the socket was left empty.
    pub drained: bool,
}

impl Default for ReceiveBuffers {
    fn default() -> Self {
        // Zeroed memory of this size costs nothing until it is written to.
        let bytes = vec![0; BATCH_SIZE * BUFFER];
        Self { bytes, metas: [RecvMeta::default(); BATCH_SIZE] }
    }
}

impl ReceiveBuffers {
    /// Waits until datagrams came, and receives them as [`receive`](Self::receive) does.
    ///
    /// Cancel safe: a datagram is received only as this completes.
    pub async fn wait(
        &mut self,
        socket: &UdpSocket,
        mut take: impl FnMut(Datagram),
        mut report: impl FnMut(&io::Error),
    ) -> Received {
        poll_fn(|cx| {
            while socket.poll_readable(cx).is_ready() {
                let received = self.receive(cx, socket, &mut take, &mut report);
                if received.datagrams > 0 {
                    return Poll::Ready(received);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Receives what is there without waiting, as much as fits. `take` gets each datagram; `report`
    /// gets errors that the system reports on the way, such as a peer's ICMP messages.
    ///
    /// Each datagram gets memory of its own size, so that one that is kept pins nothing else,
    /// whatever its sender sends around it. Sharing memory among the datagrams of a buffer saves no
    /// time that could be measured, at 4 Gb/s or with 300 streams.
    pub fn receive(
        &mut self,
        cx: &mut Context<'_>,
        socket: &UdpSocket,
        mut take: impl FnMut(Datagram),
        mut report: impl FnMut(&io::Error),
    ) -> Received {
        let mut buffers = self.bytes.chunks_exact_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let batch = socket.receive(cx, &mut slices, &mut self.metas, &mut report);
        let mut received = Received { drained: batch.drained, ..Received::default() };
        let clock = ArrivalClock::read();
        let filled = self.bytes.chunks_exact(BUFFER).zip(&self.metas).take(batch.received);
        for (buffer, meta) in filled {
            let arrived = clock.arrival(meta.timestamp);
            // A stride of zero is an empty datagram.
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                let payload = Bytes::copy_from_slice(datagram);
                take(Datagram { from: meta.addr, to: meta.dst_ip, arrived, payload });
                received.datagrams += 1;
            }
            received.bytes += meta.len;
        }
        received
    }
}

impl fmt::Debug for ReceiveBuffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveBuffers").finish_non_exhaustive()
    }
}

/// Bytes of a receive buffer: the largest UDP packet, and so all that the kernel joins (GRO).
const BUFFER: usize = 1 << 16;
