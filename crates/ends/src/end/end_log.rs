//! The log of the connections at one end of a stream: few lines for any number of callers.

use std::fmt;

use punctual::Gathered;
use punctual_units::grouped;

/// Logs the start and the end of the connections at one end. Anybody may call a listener, so masses
/// of callers are counted by kind; each call of the command's own is logged.
#[derive(Debug)]
pub struct EndLog {
    connected: Gathered,
    ended: Gathered,
    lost: Gathered,
    refused: Gathered,
}

impl EndLog {
    /// The log of the end with this name, which calls or is called.
    pub fn new(name: impl fmt::Display, calls: bool) -> Self {
        let gathered = |what: &'static str| {
            let name = name.to_string();
            let burst = if calls { u32::MAX } else { BURST };
            Gathered::new(burst, move |more| {
                tracing::info!("{name}: … and {} more {what} in the last second", grouped(more));
            })
        };
        Self {
            connected: gathered("callers connected"),
            ended: gathered("connections ended"),
            lost: gathered("connections failed"),
            refused: gathered("callers were refused"),
        }
    }

    /// A connection is established; `say` logs the peer.
    pub fn connected(&self, say: impl FnOnce()) {
        self.connected.say(say);
    }

    /// A connection has ended.
    pub fn ended(&self, summary: impl FnOnce() -> String) {
        self.ended.say(|| tracing::info!("{}", summary()));
    }

    /// A connection failed.
    pub fn lost(&self, failure: impl fmt::Display) {
        self.lost.say(|| tracing::warn!("{failure}"));
    }

    /// A caller was refused.
    pub fn refused(&self, why: impl fmt::Display) {
        self.refused.say(|| tracing::info!("{why}"));
    }
}

/// The number of messages of one kind that may follow each other at once.
const BURST: u32 = 10;
