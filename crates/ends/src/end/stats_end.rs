//! The ends of a stream that have statistics.

use std::sync::Arc;

use crate::end::{MessageTraffic, Row, SrtEnd};

/// An SRT connection or a group, and the messages that it has carried.
pub struct StatsEnd {
    end: SrtEnd,
    traffic: Arc<MessageTraffic>,
}

impl StatsEnd {
    /// This end, which has carried `traffic`.
    pub fn new(end: SrtEnd, traffic: Arc<MessageTraffic>) -> Self {
        Self { end, traffic }
    }

    /// Whether it has carried anything.
    pub fn has_carried(&self) -> bool {
        let total = self.end.statistics();
        total.packets_sent + total.packets_received > 0
    }

    /// A row for the whole, and one for each link of a group. Messages that are too long for the
    /// connection count as dropped by the sender.
    pub fn rows(&self) -> Vec<Row> {
        let mut rows = self.end.rows();
        if let Some(whole) = rows.first_mut() {
            let (messages, bytes) = self.traffic.unsent();
            whole.statistics.packets_send_dropped += messages;
            whole.statistics.bytes_send_dropped += bytes;
        }
        rows
    }
}
