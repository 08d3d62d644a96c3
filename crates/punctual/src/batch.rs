//! Datagrams on their way in and out, many at a time.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};

use bytes::Bytes;
use punctual_proto::Transmit;
use quinn_udp::{BATCH_SIZE, RecvMeta};

use crate::sources::Sources;
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
            // Each datagram gets memory of its own size, so that one that is kept for the latency pins
            // nothing else, whatever its peer sends around it. Sharing memory among the datagrams of
            // a buffer saves no time that could be measured, at 4 Gb/s or with 300 streams.
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

/// Datagrams that the machine gave out and that wait for the socket to take them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// All their bytes, in the order of `transmits`.
    pub(crate) bytes: Vec<u8>,
    /// What `bytes` are, from `start` on.
    transmits: VecDeque<Transmit>,
    start: usize,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.transmits.is_empty()
    }

    /// Whether there is enough for one round of sending.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Adds `transmit`, whose bytes were appended to `bytes`.
    pub(crate) fn push(&mut self, transmit: Transmit) {
        self.transmits.push_back(transmit);
    }

    /// Sends everything, or as much as the socket takes; says whether that was everything.
    pub(crate) fn flush(&mut self, sender: &mut Sender<'_>) -> bool {
        while let Some(transmit) = self.transmits.front_mut() {
            while transmit.size > 0 {
                let contents = &self.bytes[self.start..][..transmit.size];
                let Some(sent) = sender.send(transmit.remote, contents, transmit.segment_size)
                else {
                    return false;
                };
                self.start += sent;
                transmit.size -= sent;
            }
            self.transmits.pop_front();
        }
        self.bytes.clear();
        self.start = 0;
        true
    }
}

/// What sending needs besides the datagrams.
pub(crate) struct Sender<'a> {
    pub(crate) udp: &'a Udp,
    pub(crate) sources: Option<&'a mut Sources>,
    /// Most datagrams in one call; becomes 1 when the network device turns out not to cut.
    pub(crate) max_segments: &'a mut usize,
    pub(crate) statistics: &'a mut PortStatistics,
}

impl Sender<'_> {
    /// Sends as much of `contents` as goes into one call. Gives the bytes that are dealt with, sent
    /// or given up; `None` if the socket takes nothing at the moment.
    fn send(&mut self, remote: SocketAddr, contents: &[u8], segment_size: usize) -> Option<usize> {
        let batch = &contents[..contents.len().min(segment_size * *self.max_segments)];
        let source = self.sources.as_deref().and_then(|sources| sources.of(remote));
        match self.udp.send(remote, batch, segment_size, source) {
            Ok(()) => {
                self.statistics.sent(batch.len(), segment_size);
                Some(batch.len())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => self.send_otherwise(&error, remote, batch, segment_size, source),
        }
    }

    /// What the system refused in one way may go in another: without naming the source, if that
    /// address is gone, and one datagram at a time, if the device or the path cannot cut them.
    #[cold]
    fn send_otherwise(
        &mut self,
        error: &io::Error,
        remote: SocketAddr,
        batch: &[u8],
        segment_size: usize,
        source: Option<IpAddr>,
    ) -> Option<usize> {
        if source.is_some() {
            if let Some(sources) = self.sources.as_deref_mut() {
                sources.forget(remote);
            }
            return Some(0);
        }
        let first = &batch[..batch.len().min(segment_size)];
        if first.len() < batch.len() {
            if is_io_error(error) {
                tracing::info!(%error, "this device does not cut datagrams: sending one at a time");
                *self.max_segments = 1;
            }
            match self.udp.send(remote, first, segment_size, None) {
                Ok(()) => {
                    self.statistics.sent(first.len(), segment_size);
                    return Some(first.len());
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
                Err(_) => {}
            }
        }
        self.statistics.send_failed(error, remote);
        Some(first.len())
    }
}

/// What a UDP port counts. All values are totals since it was bound.
///
/// The machine's own view of a connection is in [`Statistics`](crate::Statistics).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PortStatistics {
    /// Datagrams handed to the system.
    pub datagrams_sent: u64,
    /// Bytes of those, without IP and UDP headers.
    pub bytes_sent: u64,
    /// System calls that sent them.
    pub send_calls: u64,
    /// Datagrams that the system refused. They count as lost on the way.
    pub send_errors: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of those, without IP and UDP headers.
    pub bytes_received: u64,
    /// System calls that asked for them.
    pub receive_calls: u64,
    /// Errors that the system reported instead, such as a peer's ICMP messages.
    pub receive_errors: u64,
    /// Turns of the port's driver.
    pub turns: u64,
}

impl PortStatistics {
    fn sent(&mut self, bytes: usize, segment_size: usize) {
        self.datagrams_sent += bytes.div_ceil(segment_size) as u64;
        self.bytes_sent += bytes as u64;
        self.send_calls += 1;
    }

    fn send_failed(&mut self, error: &io::Error, remote: SocketAddr) {
        self.send_errors += 1;
        // The first is news; a dead route at full rate must not fill the log.
        if self.send_errors.is_power_of_two() {
            tracing::debug!(%error, %remote, count = self.send_errors, "a datagram was not sent");
        }
    }

    fn receive_failed(&mut self, error: &io::Error) {
        self.receive_errors += 1;
        if self.receive_errors.is_power_of_two() {
            tracing::debug!(%error, count = self.receive_errors, "receiving failed");
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_io_error(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EIO)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_io_error(_error: &io::Error) -> bool {
    // quinn-udp stops cutting by itself.
    false
}

/// Bytes of a receive buffer: the largest UDP packet, and so all that the kernel joins (GRO).
const BUFFER: usize = 1 << 16;
/// Bytes after which sending starts: a few full calls, so that the lock is not held for long.
const FULL: usize = 4 << 16;
