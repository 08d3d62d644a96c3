//! Events for the application.

use std::collections::VecDeque;

use crate::connection::ConnectionSignals;
use crate::event::Event;
use crate::ids::ConnectionId;
use crate::path::PathId;

/// The events that the application has not got yet, the oldest first.
#[derive(Debug, Default)]
pub(super) struct EventQueue(VecDeque<Event>);

impl EventQueue {
    pub(super) fn push(&mut self, event: Event) {
        self.0.push_back(event);
    }

    /// Adds the events of a connection, whose peer is reached by `path`. Its end comes last.
    pub(super) fn push_signals(
        &mut self,
        id: ConnectionId,
        path: PathId,
        signals: ConnectionSignals,
    ) {
        if signals.connected {
            self.push(Event::Connected(id));
        }
        if signals.moved {
            self.push(Event::PeerMoved(id, path));
        }
        if signals.readable {
            self.push(Event::Readable(id));
        }
        if signals.news {
            self.push(Event::LinkNews(id));
        }
        if signals.writable {
            self.push(Event::Writable(id));
        }
        if let Some(reason) = signals.closed {
            self.push(Event::Closed(id, reason));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.0.pop_front()
    }

    pub(super) fn shrink(&mut self) {
        self.0.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use punctual_units::Instant;

    use super::*;
    use crate::endpoint::testing::{connected, host};
    use crate::error::CloseReason;

    #[test]
    fn a_connection_is_reported_from_its_start_to_its_end() {
        let (_, id) = connected(Instant::from_millis(9_000), host(1), "");
        let mut events = EventQueue::default();
        let signals = ConnectionSignals {
            connected: true,
            readable: true,
            closed: Some(CloseReason::Peer),
            ..ConnectionSignals::default()
        };
        events.push_signals(id, host(1), signals);
        assert!(matches!(events.pop(), Some(Event::Connected(_))));
        assert!(matches!(events.pop(), Some(Event::Readable(_))));
        assert!(matches!(events.pop(), Some(Event::Closed(_, CloseReason::Peer))));
        assert!(events.pop().is_none());
    }
}
