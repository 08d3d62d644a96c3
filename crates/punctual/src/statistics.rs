//! The statistics of a UDP port.

use std::io;
use std::net::SocketAddr;

use punctual_io::Received;

/// The statistics of a UDP port. All values are totals since it was bound.
///
/// The statistics of a connection are in [`Statistics`](crate::Statistics).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct PortStatistics {
    /// Datagrams that the operating system accepted.
    pub datagrams_sent: u64,
    /// Bytes of the datagrams sent, without IP and UDP headers.
    pub bytes_sent: u64,
    /// System calls that sent datagrams.
    pub send_calls: u64,
    /// Datagrams that the operating system refused. To SRT, they are lost in the network.
    pub send_errors: u64,
    /// Datagrams received.
    pub datagrams_received: u64,
    /// Bytes of the datagrams received, without IP and UDP headers.
    pub bytes_received: u64,
    /// Received datagrams that were dropped because their peer exceeded its share of the port's
    /// capacity.
    pub datagrams_over_share: u64,
    /// First requests of callers (inductions) that were dropped because more came than could be
    /// answered. Callers repeat them.
    pub inductions_dropped: u64,
    /// System calls to receive datagrams, including calls that found none.
    pub receive_calls: u64,
    /// Errors of those system calls, such as those caused by a peer's ICMP messages.
    pub receive_errors: u64,
    /// Turns of the port's driver, each of which receives, handles what is due, and sends.
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
        // Logged ever more rarely: a dead route at full rate must not fill the log.
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
