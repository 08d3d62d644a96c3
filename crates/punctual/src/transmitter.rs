//! Sending the datagrams of a port.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_io::UdpSocket;

use crate::outbox::Outbox;
use crate::sources::Sources;
use crate::statistics::PortStatistics;

/// Sends the datagrams of a port.
///
/// The system gets datagrams in the order in which they were taken out of the protocol: the thread
/// that takes them out holds the transmitter until it has sent them.
#[derive(Debug)]
pub(crate) struct Transmitter {
    udp: Arc<UdpSocket>,
    statistics: Arc<Mutex<PortStatistics>>,
    /// The addresses to answer from; `None` if the socket has only one.
    sources: Option<Sources>,
    /// Datagrams that the socket has not taken yet. While there are any, no more are taken from the
    /// protocol.
    backlog: Outbox,
}

impl Transmitter {
    pub(crate) fn new(udp: Arc<UdpSocket>, statistics: Arc<Mutex<PortStatistics>>) -> Self {
        let wildcard = udp.local_addr().ip().is_unspecified();
        let sources = wildcard.then(Sources::default);
        Self { udp, statistics, sources, backlog: Outbox::default() }
    }

    /// Notes that `remote` sent a datagram to the address `local` of this machine.
    pub(crate) fn learn(&mut self, remote: SocketAddr, local: Option<IpAddr>) {
        if let (Some(sources), Some(local)) = (&mut self.sources, local) {
            sources.learn(remote, local.to_canonical());
        }
    }

    /// Whether there are datagrams that the socket has not taken yet.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.backlog.is_empty()
    }

    /// Sends the backlog. Returns whether the socket has taken all of it.
    pub(crate) fn send_backlog(&mut self) -> bool {
        if self.backlog.is_empty() {
            return true;
        }
        let mut backlog = std::mem::take(&mut self.backlog);
        let all = self.flush(&mut backlog);
        if !all {
            self.backlog = backlog;
        }
        all
    }

    /// Sends all datagrams of `outbox`. If the socket does not take all, the rest becomes the
    /// backlog, and the result is false. There must be no backlog before.
    pub(crate) fn send(&mut self, outbox: &mut Outbox) -> bool {
        debug_assert!(!self.has_backlog(), "the backlog is sent first");
        let all = self.flush(outbox);
        if !all {
            std::mem::swap(outbox, &mut self.backlog);
        }
        all
    }

    /// Sends as much of `outbox` as the socket takes. Returns whether that was everything.
    pub(crate) fn flush(&mut self, outbox: &mut Outbox) -> bool {
        outbox.flush(|remote, datagrams, size| self.send_batch(remote, datagrams, size))
    }

    /// Sends as much of `contents` as fits into one system call. Returns the number of bytes that
    /// were sent or given up; `None` if the socket takes nothing at the moment.
    fn send_batch(
        &mut self,
        remote: SocketAddr,
        contents: &[u8],
        segment_size: usize,
    ) -> Option<usize> {
        let source = self.sources.as_ref().and_then(|sources| sources.of(remote));
        match self.udp.send(Some(remote), contents, segment_size, source) {
            Ok(sent) => {
                self.statistics().sent(sent, segment_size);
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
        if let Some(sources) = &mut self.sources
            && sources.of(remote).is_some()
        {
            sources.forget(remote);
            return 0;
        }
        self.statistics().send_failed(error, remote);
        size
    }

    fn statistics(&self) -> MutexGuard<'_, PortStatistics> {
        self.statistics.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::UdpSocket;

    use super::*;
    use crate::config::PortConfig;
    use crate::outbox::Batch;
    use crate::udp::bind;

    struct Bench {
        transmitter: Transmitter,
        peer: UdpSocket,
    }

    impl Bench {
        async fn new() -> Self {
            let local = Some("0.0.0.0:0".parse().unwrap());
            let udp = bind(&PortConfig { local, ..PortConfig::default() }, false).unwrap();
            Self {
                transmitter: Transmitter::new(Arc::new(udp), Arc::default()),
                peer: UdpSocket::bind("127.0.0.1:0").await.unwrap(),
            }
        }

        fn peer_addr(&self) -> SocketAddr {
            self.peer.local_addr().unwrap()
        }

        /// Sends zeros in segments. Returns the sizes of the datagrams that arrive.
        async fn send(&mut self, size: usize, segment_size: usize) -> Vec<usize> {
            let mut outbox = Outbox::default();
            outbox.bytes.resize(size, 0);
            outbox.push(Batch { remote: self.peer_addr(), size, segment_size });
            assert!(self.transmitter.send(&mut outbox));
            let mut sizes = Vec::new();
            while (sizes.len() as u64) < self.statistics().datagrams_sent {
                sizes.push(self.peer.recv(&mut vec![0; 1 << 16]).await.unwrap());
            }
            sizes
        }

        fn statistics(&self) -> PortStatistics {
            *self.transmitter.statistics()
        }
    }

    #[tokio::test]
    async fn a_local_address_that_is_gone_is_not_used_any_more() {
        let mut bench = Bench::new().await;
        let remote = bench.peer_addr();
        // An address for documentation, which no machine has.
        bench.transmitter.learn(remote, Some("192.0.2.1".parse().unwrap()));
        assert_eq!(bench.send(25, 10).await, [10, 10, 5]);
        assert_eq!(bench.transmitter.sources.as_ref().unwrap().of(remote), None);
        assert_eq!(bench.statistics().send_errors, 0);
    }

    #[tokio::test]
    async fn a_batch_that_the_system_refuses_is_sent_one_by_one() {
        let mut bench = Bench::new().await;
        // More than the system accepts in one call.
        assert_eq!(bench.send(70_000, 20_000).await, [20_000, 20_000, 20_000, 10_000]);
        assert_eq!(bench.statistics().send_errors, 0);
        assert_eq!(bench.statistics().bytes_sent, 70_000);
    }

    #[tokio::test]
    async fn a_datagram_that_the_system_refuses_is_counted_and_skipped() {
        let mut bench = Bench::new().await;
        assert!(bench.send(66_000, 66_000).await.is_empty());
        assert_eq!(bench.statistics().send_errors, 1);
    }
}
