//! The packets that were sent.

use std::ops::Range;

use punctual_units::Instant;

use crate::delivery_rate::DeliverySnapshot;

/// A packet that was sent and asks for an acknowledgement.
#[derive(Clone, Debug)]
pub(crate) struct SentPacket {
    pub(crate) number: u64,
    pub(crate) bytes: usize,
    pub(crate) sent: Instant,
    pub(crate) kind: Kind,
    /// The bytes of the stream in it.
    pub(crate) stream: Vec<Range<u64>>,
    pub(crate) stamp: DeliverySnapshot,
    pub(crate) state: State,
    /// Whether a probe has repeated its bytes while it was in flight.
    pub(crate) is_repeated: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// A packet of the handshake, or with the stream or a PING.
    Ordinary,
    /// A probe for the path MTU, which is never sent again.
    MtuProbe,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum State {
    InFlight,
    Acknowledged,
    Lost,
}

/// The newest packet that was acknowledged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Highest {
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    /// When its acknowledgement came.
    pub(crate) arrived: Instant,
}

/// Every packet that was sent, by its number.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    packets: Vec<SentPacket>,
    /// No packet before this number is in flight.
    oldest: usize,
    /// Bytes in flight.
    bytes: u64,
    highest: Option<Highest>,
}

impl Flight {
    /// The number of the next packet.
    pub(crate) fn next_number(&self) -> u64 {
        as_u64(self.packets.len())
    }

    /// A packet with the next number is sent.
    pub(crate) fn sent(&mut self, packet: SentPacket) {
        assert_eq!(packet.number, self.next_number(), "numbers are given in order");
        self.bytes += as_u64(packet.bytes);
        self.packets.push(packet);
    }

    /// Bytes in flight.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The newest packet that was acknowledged.
    pub(crate) fn highest(&self) -> Option<Highest> {
        self.highest
    }

    /// The packet of this number, which must have been sent.
    pub(crate) fn packet(&self, number: u64) -> Option<&SentPacket> {
        self.packets.get(usize::try_from(number).ok()?)
    }

    /// The oldest packet in flight.
    pub(crate) fn oldest(&mut self) -> Option<&SentPacket> {
        while self.packets.get(self.oldest).is_some_and(|it| it.state != State::InFlight) {
            self.oldest += 1;
        }
        self.packets.get(self.oldest)
    }

    /// Packets in flight from the oldest on.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = &SentPacket> {
        self.packets[self.oldest..].iter().filter(|it| it.state == State::InFlight)
    }

    /// The newest packet in flight.
    pub(crate) fn newest(&self) -> Option<&SentPacket> {
        self.packets[self.oldest..].iter().rev().find(|it| it.state == State::InFlight)
    }

    /// The packet of this number was acknowledged: its state before; `None` if it was never sent.
    pub(crate) fn acknowledge(&mut self, now: Instant, number: u64) -> Option<State> {
        let packet = self.packets.get_mut(usize::try_from(number).ok()?)?;
        let before = std::mem::replace(&mut packet.state, State::Acknowledged);
        if before == State::InFlight {
            self.bytes -= as_u64(packet.bytes);
        }
        if before != State::Acknowledged && self.highest.is_none_or(|it| it.number < number) {
            self.highest = Some(Highest { number, sent: packet.sent, arrived: now });
        }
        Some(before)
    }

    /// The packet of this number, which is in flight, is lost.
    pub(crate) fn lose(&mut self, number: u64) -> Option<&SentPacket> {
        let packet = self.packets.get_mut(usize::try_from(number).ok()?)?;
        if packet.state != State::InFlight {
            return None;
        }
        packet.state = State::Lost;
        self.bytes -= as_u64(packet.bytes);
        Some(packet)
    }

    /// The stream's bytes of the oldest packet in flight that no probe has repeated. They count as
    /// repeated from now on.
    pub(crate) fn repeat_oldest(&mut self) -> Option<Vec<Range<u64>>> {
        let packet = self.packets[self.oldest..]
            .iter_mut()
            .find(|it| it.state == State::InFlight && !it.is_repeated && !it.stream.is_empty())?;
        packet.is_repeated = true;
        Some(packet.stream.clone())
    }
}

pub(crate) fn as_u64(size: usize) -> u64 {
    u64::try_from(size).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flight(packets: u64) -> Flight {
        let mut flight = Flight::default();
        for number in 0..packets {
            flight.sent(SentPacket {
                number,
                bytes: 100,
                sent: Instant::from_millis(number),
                kind: Kind::Ordinary,
                stream: vec![number * 10..number * 10 + 10],
                stamp: DeliverySnapshot::default(),
                state: State::InFlight,
                is_repeated: false,
            });
        }
        flight
    }

    #[test]
    fn bytes_in_flight_are_those_neither_acknowledged_nor_lost() {
        let mut flight = flight(5);
        assert_eq!(flight.acknowledge(Instant::from_millis(9), 1), Some(State::InFlight));
        assert_eq!(flight.acknowledge(Instant::from_millis(9), 1), Some(State::Acknowledged));
        assert!(flight.lose(0).is_some() && flight.lose(0).is_none());
        assert_eq!(flight.bytes(), 300);
        assert_eq!(flight.acknowledge(Instant::from_millis(9), 0), Some(State::Lost));
        assert_eq!(flight.bytes(), 300, "a lost packet that arrives was not in flight");
        assert_eq!(flight.acknowledge(Instant::ORIGIN, 77), None);
        assert_eq!(flight.oldest().map(|it| it.number), Some(2));
        assert_eq!(flight.newest().map(|it| it.number), Some(4));
        assert_eq!(flight.highest().map(|it| it.number), Some(1));
    }

    #[test]
    fn a_probe_repeats_each_packet_once() {
        let mut flight = flight(2);
        assert_eq!(flight.repeat_oldest(), Some(vec![0..10]));
        assert_eq!(flight.repeat_oldest(), Some(vec![10..20]));
        assert_eq!(flight.repeat_oldest(), None);
    }
}
