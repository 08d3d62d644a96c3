//! The statistics of a socket.

use punctual::Statistics;

use super::buffer_means::BufferLevels;
use super::link::Link;
use super::{Socket, SocketState};
use crate::code::{Code, Failure};

/// The snapshot from which the present interval counts.
#[derive(Debug, Default)]
pub(super) struct Baseline(Option<Box<Statistics>>);

/// The statistics of a connection since it was made, and of an interval.
#[derive(Clone, Debug, Default)]
pub struct TransferStatistics {
    /// Since the connection was made.
    pub total: Statistics,
    /// Since the interval began.
    pub interval: Statistics,
    /// The mean contents of the buffers over about the last second.
    pub buffers: BufferLevels,
    /// The largest payload of a packet, bytes.
    pub payload: usize,
}

impl Socket {
    /// The statistics of the connection. With `clear`, a new interval begins.
    pub(crate) fn statistics(&self, clear: bool) -> Result<TransferStatistics, Failure> {
        let link = self.link.get().ok_or(Code::NotConnected)?;
        let mut state = self.lock();
        match state.stage.state() {
            SocketState::Connected => {}
            SocketState::Broken | SocketState::Closed => return Err(Code::ConnectionLost.into()),
            _ => return Err(Code::NotConnected.into()),
        }
        let total = link.statistics();
        let interval = match &state.baseline.0 {
            Some(baseline) => total.since(baseline),
            None => total.clone(),
        };
        if clear {
            state.baseline.0 = Some(Box::new(total.clone()));
        }
        let payload = link.connection().map_or(1_456, |it| it.info().max_payload);
        let buffers = link.means.sample(punctual::now(), &total);
        Ok(TransferStatistics { total, interval, buffers, payload })
    }

    /// The packets and payload bytes in the send buffer, and the time that they span in
    /// milliseconds.
    pub(crate) fn send_buffer(&self) -> Result<(usize, usize, i32), Failure> {
        let link = self.link.get().ok_or_else(|| self.not_connected())?;
        let statistics = Link::statistics(link);
        let packets = usize::try_from(statistics.send_buffer_packets).unwrap_or(usize::MAX);
        let bytes = usize::try_from(statistics.send_buffer_bytes).unwrap_or(usize::MAX);
        let span = i32::try_from(statistics.send_buffer_span.as_millis()).unwrap_or(i32::MAX);
        Ok((packets, bytes, span))
    }
}
