//! The packets that are never delivered, as far as an end knows them.

use std::fmt;

use punctual::Statistics;
use punctual_ends::route::StreamDirection;

/// Packets that are never delivered. The receiver knows them, and one of this implementation tells
/// the sender. Otherwise a sender knows only what it dropped itself: packets that were not
/// acknowledged in time. The receiver may have some of them, and may lack others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Unrecovered {
    at_receiver: Option<u64>,
    dropped_by_sender: Option<u64>,
}

impl Unrecovered {
    pub(super) fn of(statistics: &Statistics, way: StreamDirection) -> Self {
        let at_receiver = match way {
            StreamDirection::In => Some(statistics.packets_receive_dropped),
            StreamDirection::Out => statistics.unrecovered_at_peer(),
        };
        let dropped_by_sender = match at_receiver {
            Some(_) => None,
            None => Some(statistics.packets_send_dropped),
        };
        Self { at_receiver, dropped_by_sender }
    }

    /// Messages that are missing by their numbers, as at the end of a stream over RTP.
    pub(super) const fn by_numbers(lost: u64) -> Self {
        Self { at_receiver: Some(lost), dropped_by_sender: None }
    }

    /// Whether no packet is missing.
    pub(super) fn is_none(&self) -> bool {
        [self.at_receiver, self.dropped_by_sender].into_iter().flatten().all(|packets| packets == 0)
    }

    /// Adds the packets of another connection.
    pub(super) fn add(&mut self, other: Self) {
        let sum = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self.at_receiver = sum(self.at_receiver, other.at_receiver);
        self.dropped_by_sender = sum(self.dropped_by_sender, other.dropped_by_sender);
    }
}

impl fmt::Display for Unrecovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.at_receiver, self.dropped_by_sender) {
            (at_receiver, None) => write!(f, "unrecovered {}", at_receiver.unwrap_or_default()),
            (None, Some(dropped)) => write!(f, "dropped by the sender {dropped}"),
            (Some(unrecovered), Some(dropped)) => {
                write!(f, "unrecovered {unrecovered}, dropped by the sender {dropped}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sender_calls_unrecovered_only_what_its_receiver_reports() {
        let mut statistics = Statistics::default();
        statistics.packets_send_dropped = 7;
        statistics.packets_receive_dropped = 2;
        let mut all = Unrecovered::default();
        let mut said = |statistics: &Statistics, way| {
            let one = Unrecovered::of(statistics, way);
            all.add(one);
            one.to_string()
        };
        assert_eq!(said(&statistics, StreamDirection::In), "unrecovered 2");
        assert_eq!(said(&statistics, StreamDirection::Out), "dropped by the sender 7");
        statistics.peer_drop_reports = 9;
        statistics.packets_peer_dropped = 3;
        assert_eq!(said(&statistics, StreamDirection::Out), "unrecovered 3");
        assert_eq!(all.to_string(), "unrecovered 5, dropped by the sender 7");
    }
}
