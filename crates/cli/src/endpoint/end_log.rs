//! The log of the connections at one end of a stream: few lines, however many call.

use std::fmt;

use punctual::Gathered;
use punctual_units::grouped;

/// Says what becomes of the connections of one end. Anybody may call a listener, so of masses it
/// says how many they were, by kind; of calls that were asked for it says each.
#[derive(Debug)]
pub(crate) struct EndLog {
    connected: Gathered,
    ended: Gathered,
    lost: Gathered,
    refused: Gathered,
}

impl EndLog {
    /// Of the end with this name, which calls or is called.
    pub(crate) fn new(name: impl fmt::Display, calls: bool) -> Self {
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

    /// A connection stands; `say` tells with whom.
    pub(crate) fn connected(&self, say: impl FnOnce()) {
        self.connected.say(say);
    }

    /// A connection has ended.
    pub(crate) fn ended(&self, summary: impl FnOnce() -> String) {
        self.ended.say(|| tracing::info!("{}", summary()));
    }

    /// A connection failed.
    pub(crate) fn lost(&self, failure: impl fmt::Display) {
        self.lost.say(|| tracing::warn!("{failure}"));
    }

    /// Somebody was not taken.
    pub(crate) fn refused(&self, why: impl fmt::Display) {
        self.refused.say(|| tracing::info!("{why}"));
    }
}

/// Messages of one kind that may follow each other at once.
const BURST: u32 = 10;
