//! The queue of outgoing datagrams, sent in batches.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

use punctual_io::UdpSocket;

use crate::sources::Sources;
use crate::statistics::PortStatistics;

/// Datagrams for one peer, cut from the bytes of an outbox.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Batch {
    pub(crate) remote: SocketAddr,
    /// Bytes of all the datagrams together.
    pub(crate) size: usize,
    /// Bytes of each datagram but the last.
    pub(crate) segment_size: usize,
}

/// Datagrams that the protocol produced and the socket has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// The bytes of all datagrams, in the order of `batches`.
    pub(crate) bytes: Vec<u8>,
    /// The batches whose bytes begin at `start`.
    batches: VecDeque<Batch>,
    start: usize,
}

impl Outbox {
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Whether there are enough datagrams for one round of sending.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes.len() >= FULL
    }

    /// Adds `batch`, whose bytes the caller has appended to `bytes`.
    pub(crate) fn push(&mut self, batch: Batch) {
        self.batches.push_back(batch);
    }

    /// Sends as much as the socket takes. Returns whether that was everything.
    ///
    /// `send` gets an address, datagrams for it and their size. It returns the number of bytes that
    /// it sent or gave up; `None` if the socket takes nothing at the moment.
    pub(crate) fn flush(
        &mut self,
        mut send: impl FnMut(SocketAddr, &[u8], usize) -> Option<usize>,
    ) -> bool {
        while let Some(batch) = self.batches.front_mut() {
            while batch.size > 0 {
                let datagrams = &self.bytes[self.start..][..batch.size];
                let Some(sent) = send(batch.remote, datagrams, batch.segment_size) else {
                    return false;
                };
                self.start += sent;
                batch.size -= sent;
            }
            self.batches.pop_front();
        }
        self.bytes.clear();
        self.start = 0;
        true
    }
}

/// The socket and the state that sending needs besides the datagrams.
pub(crate) struct Sender<'a> {
    pub(crate) udp: &'a UdpSocket,
    pub(crate) sources: Option<&'a mut Sources>,
    pub(crate) statistics: &'a mut PortStatistics,
}

impl Sender<'_> {
    /// Sends as much of `contents` as fits into one system call. Returns the number of bytes that
    /// were sent or given up; `None` if the socket takes nothing at the moment.
    pub(crate) fn send(
        &mut self,
        remote: SocketAddr,
        contents: &[u8],
        segment_size: usize,
    ) -> Option<usize> {
        let source = self.sources.as_deref().and_then(|sources| sources.of(remote));
        match self.udp.send(Some(remote), contents, segment_size, source) {
            Ok(sent) => {
                self.statistics.sent(sent, segment_size);
                Some(sent)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
            Err(error) => Some(self.refused(&error, remote, contents.len().min(segment_size))),
        }
    }

    /// Handles an error of the system for a datagram of `size` bytes. The local address to send
    /// from may be gone: then 0 is returned, so that the datagram is sent once more without it.
    #[cold]
    fn refused(&mut self, error: &io::Error, remote: SocketAddr, size: usize) -> usize {
        if let Some(sources) = self.sources.as_deref_mut()
            && sources.of(remote).is_some()
        {
            sources.forget(remote);
            return 0;
        }
        self.statistics.send_failed(error, remote);
        size
    }
}

/// The number of bytes after which sending starts: a few full system calls, so that the lock is
/// held only briefly.
const FULL: usize = 4 << 16;

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;
    use crate::config::PortConfig;
    use crate::udp::bind;

    fn peer(n: u16) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 10_000 + n))
    }

    #[test]
    fn a_blocked_outbox_continues_where_it_stopped() {
        let mut outbox = Outbox::default();
        let mut expected = Vec::new();
        for n in 0..5_u8 {
            // Three datagrams of ten bytes and one of four.
            outbox.bytes.extend([n; 34]);
            outbox.push(Batch { remote: peer(n.into()), size: 34, segment_size: 10 });
            expected.extend([10, 10, 10, 4].map(|len| (peer(n.into()), vec![n; len])));
        }
        let (mut sent, mut calls) = (Vec::new(), 0);
        loop {
            let all = outbox.flush(|remote, datagrams, segment_size| {
                calls += 1;
                // Every third call is refused, every other one takes two datagrams.
                if calls % 3 == 0 {
                    return None;
                }
                let taken = &datagrams[..datagrams.len().min(2 * segment_size)];
                sent.extend(taken.chunks(segment_size).map(|it| (remote, it.to_vec())));
                Some(taken.len())
            });
            if all {
                break;
            }
            assert!(!outbox.is_empty());
        }
        assert!(outbox.is_empty() && outbox.bytes.is_empty());
        assert_eq!(sent, expected);
    }

    struct Bench {
        udp: punctual_io::UdpSocket,
        sources: Sources,
        statistics: PortStatistics,
        peer: UdpSocket,
    }

    impl Bench {
        async fn new() -> Self {
            let local = Some("0.0.0.0:0".parse().unwrap());
            Self {
                udp: bind(&PortConfig { local, ..PortConfig::default() }, false).unwrap(),
                sources: Sources::default(),
                statistics: PortStatistics::default(),
                peer: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            }
        }

        /// Sends zeros in segments. Returns the sizes of the datagrams that arrive.
        async fn send(&mut self, size: usize, segment_size: usize) -> Vec<usize> {
            let remote = self.peer.local_addr().unwrap();
            let mut outbox = Outbox { bytes: vec![0; size], ..Outbox::default() };
            outbox.push(Batch { remote, size, segment_size });
            let mut sender = Sender {
                udp: &self.udp,
                sources: Some(&mut self.sources),
                statistics: &mut self.statistics,
            };
            assert!(outbox.flush(|remote, it, size| sender.send(remote, it, size)));
            let mut sizes = Vec::new();
            while (sizes.len() as u64) < self.statistics.datagrams_sent {
                sizes.push(self.peer.recv(&mut vec![0; 1 << 16]).await.unwrap());
            }
            sizes
        }
    }

    #[tokio::test]
    async fn a_local_address_that_is_gone_is_not_used_any_more() {
        let mut bench = Bench::new().await;
        let remote = bench.peer.local_addr().unwrap();
        // An address for documentation, which no machine has.
        bench.sources.learn(remote, "192.0.2.1".parse().unwrap());
        assert_eq!(bench.send(25, 10).await, [10, 10, 5]);
        assert_eq!(bench.sources.of(remote), None);
        assert_eq!(bench.statistics.send_errors, 0);
    }

    #[tokio::test]
    async fn a_batch_that_the_system_refuses_is_sent_one_by_one() {
        let mut bench = Bench::new().await;
        // More than the system accepts in one call.
        assert_eq!(bench.send(70_000, 20_000).await, [20_000, 20_000, 20_000, 10_000]);
        assert_eq!(bench.statistics.send_errors, 0);
        assert_eq!(bench.statistics.bytes_sent, 70_000);
    }

    #[tokio::test]
    async fn a_datagram_that_the_system_refuses_is_counted_and_skipped() {
        let mut bench = Bench::new().await;
        assert!(bench.send(66_000, 66_000).await.is_empty());
        assert_eq!(bench.statistics.send_errors, 1);
    }
}
