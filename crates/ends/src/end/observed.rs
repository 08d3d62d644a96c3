//! A connection as others see it.

use std::sync::Arc;

use crate::end::{EndLog, MessageTraffic, SrtEnd, StatsEnd};

/// The parts of a connection that others may see while it carries a stream.
#[derive(Clone)]
pub struct Observed {
    /// Its number in reports: the socket ID of SRT, or a number from 1 up.
    pub id: u64,
    /// The SRT connection or group, if it is one.
    pub socket: Option<SrtEnd>,
    /// The messages that it has carried.
    pub traffic: Arc<MessageTraffic>,
    /// The log for its end.
    pub log: Arc<EndLog>,
}

impl Observed {
    /// The end whose statistics the connection has; `None` for files, pipes, TCP and UDP.
    pub fn stats_end(&self) -> Option<StatsEnd> {
        Some(StatsEnd::new(self.socket.clone()?, Arc::clone(&self.traffic)))
    }
}
