//! The statistics of a UDP port.

use std::io;
use std::net::SocketAddr;

use punctual_io::Received;

/// The statistics of a UDP port. All values are totals since it was bound.
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
    /// Datagrams of those that were dropped because their sender sent more than its share of the
    /// time that the port has for all.
    pub datagrams_over_share: u64,
    /// System calls that asked for them.
    pub receive_calls: u64,
    /// Errors that the system reported instead, such as a peer's ICMP messages.
    pub receive_errors: u64,
    /// Turns of the port's driver.
    pub turns: u64,
}

impl PortStatistics {
    pub(crate) fn sent(&mut self, bytes: usize, segment_size: usize) {
        self.datagrams_sent += bytes.div_ceil(segment_size) as u64;
        self.bytes_sent += bytes as u64;
        self.send_calls += 1;
    }

    pub(crate) fn received(&mut self, received: Received) {
        self.receive_calls += 1;
        self.datagrams_received += received.datagrams as u64;
        self.bytes_received += received.bytes as u64;
    }

    pub(crate) fn send_failed(&mut self, error: &io::Error, remote: SocketAddr) {
        self.send_errors += 1;
        // The first is news; a dead route at full rate must not fill the log.
        if self.send_errors.is_power_of_two() {
            tracing::debug!(%error, %remote, count = self.send_errors, "a datagram was not sent");
        }
    }

    pub(crate) fn receive_failed(&mut self, error: &io::Error) {
        self.receive_errors += 1;
        if self.receive_errors.is_power_of_two() {
            tracing::debug!(%error, count = self.receive_errors, "receiving failed");
        }
    }
}
