//! The totals of all connections of a command.

use punctual_ends::route::StreamDirection;
use punctual_units::DisplayBytes;

use crate::live::unrecovered::Unrecovered;

/// The totals of the connections of one direction that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    connections: u64,
    messages: u64,
    bytes: u64,
    unrecovered: Unrecovered,
}

impl Totals {
    /// A connection has ended.
    pub(super) fn add(&mut self, messages: u64, bytes: u64, unrecovered: Unrecovered) {
        self.connections += 1;
        self.messages += messages;
        self.bytes += bytes;
        self.unrecovered.add(unrecovered);
    }

    /// The totals in words; `None` for fewer than two connections, since one has its own summary.
    pub(super) fn describe(&self, way: StreamDirection) -> Option<String> {
        let verb = if way == StreamDirection::In { "received" } else { "sent" };
        (self.connections > 1).then(|| {
            format!(
                "{} connections in all: {verb} {} messages, {:#}, {}",
                self.connections,
                self.messages,
                DisplayBytes(self.bytes),
                self.unrecovered
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use punctual::Statistics;

    use super::*;

    #[test]
    fn several_connections_are_summed_and_one_is_not_repeated() {
        let mut totals = Totals::default();
        let received = |dropped| {
            let mut statistics = Statistics::default();
            statistics.packets_receive_dropped = dropped;
            Unrecovered::of(&statistics, StreamDirection::In)
        };
        totals.add(10, 13_160, received(1));
        assert_eq!(totals.describe(StreamDirection::In), None);
        totals.add(20, 26_320, received(2));
        let said = totals.describe(StreamDirection::In).expect("there are two");
        assert_eq!(said, "2 connections in all: received 30 messages, 39.5 kB, unrecovered 3");
    }
}
