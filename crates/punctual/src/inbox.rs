//! Datagrams on their way in, many at a time.

use std::io::IoSliceMut;
use std::net::SocketAddr;

use bytes::Bytes;
use quinn_udp::{BATCH_SIZE, RecvMeta};

use crate::sources::Sources;
use crate::statistics::PortStatistics;
use crate::udp::Udp;

/// Where datagrams are received into, before each is copied to a place of its own.
pub(crate) struct Inbox {
    buffers: Vec<u8>,
    metas: [RecvMeta; BATCH_SIZE],
    /// What was received and not handed to the machine yet.
    pub(crate) datagrams: Vec<(SocketAddr, Bytes)>,
}

impl Default for Inbox {
    fn default() -> Self {
        // Zeroed memory of this size costs nothing until it is written to.
        let buffers = vec![0; BATCH_SIZE * BUFFER];
        Self { buffers, metas: [RecvMeta::default(); BATCH_SIZE], datagrams: Vec::new() }
    }
}

impl Inbox {
    /// Receives a batch. Says whether there may be more in the socket.
    pub(crate) fn receive(
        &mut self,
        udp: &Udp,
        sources: Option<&mut Sources>,
        statistics: &mut PortStatistics,
    ) -> bool {
        let mut buffers = self.buffers.chunks_exact_mut(BUFFER);
        let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
            std::array::from_fn(|_| IoSliceMut::new(buffers.next().unwrap_or_default()));
        let batch = udp.receive(&mut slices, &mut self.metas, |error| {
            statistics.receive_failed(error);
        });
        statistics.receive_calls += 1;
        self.take_out(batch.received, sources, statistics);
        !batch.drained
    }

    fn take_out(
        &mut self,
        received: usize,
        mut sources: Option<&mut Sources>,
        statistics: &mut PortStatistics,
    ) {
        for (buffer, meta) in self.buffers.chunks_exact(BUFFER).zip(&self.metas).take(received) {
            if let (Some(sources), Some(local)) = (sources.as_deref_mut(), meta.dst_ip) {
                sources.learn(meta.addr, local.to_canonical());
            }
            // Each datagram gets memory of its own size, so that one that is kept for the latency
            // pins nothing else, whatever its peer sends around it. Sharing memory among the
            // datagrams of a buffer saves no time that could be measured, at 4 Gb/s or with 300
            // streams.
            //
            // A stride of zero is an empty datagram.
            for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                self.datagrams.push((meta.addr, Bytes::copy_from_slice(datagram)));
                statistics.datagrams_received += 1;
            }
            statistics.bytes_received += meta.len as u64;
        }
    }
}

/// Bytes of a receive buffer: the largest UDP packet, and so all that the kernel joins (GRO).
const BUFFER: usize = 1 << 16;
