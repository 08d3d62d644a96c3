//! The receiving end: collects the stream and acknowledges packets.

use std::time::Duration;

use punctual_units::Instant;

use crate::ack_policy::AckPolicy;
use crate::packet::{AckFrame, Content, Packet};
use crate::ranges::Ranges;

/// The receiver of the stream.
#[derive(Debug)]
pub(crate) struct Receiver {
    numbers: Ranges,
    stream: Ranges,
    /// Packets that one acknowledgement covers, and its greatest delay.
    packets: u64,
    delay: Duration,
    due: DueAck,
    /// When the packet with the greatest number came.
    greatest_came: Instant,
    duplicate_bytes: u64,
    acks_sent: u64,
    next_number: u64,
}

/// The acknowledgement that is due.
#[derive(Clone, Copy, Debug, Default)]
struct DueAck {
    /// When the oldest packet came that waits for an acknowledgement.
    oldest: Option<Instant>,
    /// All numbers before this one were acknowledged, if they came.
    from: u64,
    at_once: bool,
}

impl Receiver {
    pub(crate) fn new(policy: AckPolicy) -> Self {
        let (packets, delay) = policy.first();
        Self {
            numbers: Ranges::default(),
            stream: Ranges::default(),
            packets,
            delay,
            due: DueAck::default(),
            greatest_came: Instant::ORIGIN,
            duplicate_bytes: 0,
            acks_sent: 0,
            next_number: 0,
        }
    }

    /// A packet came.
    pub(crate) fn receive(&mut self, now: Instant, packet: &Packet) {
        if packet.is_damaged {
            return;
        }
        let expected = self.numbers.greatest().map_or(0, |greatest| greatest + 1);
        if packet.number >= expected {
            self.greatest_came = now;
        }
        self.numbers.insert(packet.number..packet.number + 1);
        if let Content::Stream(parts) = &packet.content {
            for part in parts {
                let new = self.stream.insert(part.clone());
                self.duplicate_bytes += part.end - part.start - new;
            }
        }
        if let Some(request) = packet.ack_request {
            (self.packets, self.delay) = (request.packets.max(1), request.delay);
        }
        if packet.ack_eliciting {
            self.due.oldest.get_or_insert(now);
            // Packets of the handshake are acknowledged at once (RFC 9000 section 13.2.1).
            let is_handshake = matches!(packet.content, Content::Handshake(_));
            self.due.at_once |= packet.number != expected || is_handshake;
        }
    }

    /// When an acknowledgement is due, if nothing else comes.
    pub(crate) fn timeout(&self) -> Option<Instant> {
        let oldest = self.due.oldest?;
        let is_enough = self.numbers.greatest()? + 1 >= self.due.from + self.packets;
        Some(if self.due.at_once || is_enough { Instant::ORIGIN } else { oldest + self.delay })
    }

    /// The acknowledgement, if one is due.
    pub(crate) fn poll(&mut self, now: Instant) -> Option<Packet> {
        if self.timeout()? > now {
            return None;
        }
        let ack = self.ack(now)?;
        self.acks_sent += 1;
        Some(self.packet(ACK_BYTES, false, Content::None, Some(ack)))
    }

    /// An acknowledgement of all that came, which another packet carries too.
    pub(crate) fn ack(&mut self, now: Instant) -> Option<AckFrame> {
        let greatest = self.numbers.greatest()?;
        self.due = DueAck { oldest: None, from: greatest + 1, at_once: false };
        let ranges = self.numbers.descending().take(ACK_RANGES);
        let ranges = ranges.map(|range| range.start..=range.end - 1).collect();
        Some(AckFrame { ranges, delay: now.saturating_since(self.greatest_came) })
    }

    /// A packet of this end.
    pub(crate) fn packet(
        &mut self,
        bytes: usize,
        ack_eliciting: bool,
        content: Content,
        ack: Option<AckFrame>,
    ) -> Packet {
        let number = self.next_number;
        self.next_number += 1;
        let ack_request = None;
        Packet { bytes, number, ack_eliciting, content, ack, ack_request, is_damaged: false }
    }

    /// Whether the whole stream of this length is here.
    pub(crate) fn has_all(&self, length: u64) -> bool {
        self.stream.is_all_below(length)
    }

    /// Bytes of the stream that came more than once.
    pub(crate) fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }

    /// Packets with nothing but an acknowledgement that were sent.
    pub(crate) fn acks_sent(&self) -> u64 {
        self.acks_sent
    }
}

/// Bytes of a packet with nothing but an acknowledgement.
pub(crate) const ACK_BYTES: usize = 55;
/// Ranges of an acknowledgement.
const ACK_RANGES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{AckRequest, Step};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn packet(number: u64) -> Packet {
        Packet {
            bytes: 1_200,
            number,
            ack_eliciting: true,
            content: Content::Stream(vec![number * 100..number * 100 + 100]),
            ack: None,
            ack_request: None,
            is_damaged: false,
        }
    }

    fn receiver() -> Receiver {
        Receiver::new(AckPolicy::Every { packets: 2, delay: MS(25) })
    }

    #[test]
    fn every_second_packet_is_acknowledged_and_a_single_one_after_the_delay() {
        let mut receiver = receiver();
        receiver.receive(at(0), &packet(0));
        assert_eq!(receiver.timeout(), Some(at(25)));
        assert_eq!(receiver.poll(at(24)), None);
        receiver.receive(at(10), &packet(1));
        let ack = receiver.poll(at(10)).and_then(|packet| packet.ack).expect("two packets came");
        assert_eq!(ack, AckFrame { ranges: vec![0..=1], delay: Duration::ZERO });
        receiver.receive(at(20), &packet(2));
        let ack = receiver.poll(at(45)).and_then(|packet| packet.ack).expect("the delay is over");
        assert_eq!(ack, AckFrame { ranges: vec![0..=2], delay: MS(25) });
        assert_eq!(receiver.timeout(), None);
    }

    #[test]
    fn a_gap_is_acknowledged_at_once() {
        let mut receiver = Receiver::new(AckPolicy::Every { packets: 32, delay: MS(25) });
        receiver.receive(at(0), &packet(0));
        receiver.receive(at(1), &packet(3));
        let ack = receiver.poll(at(1)).and_then(|packet| packet.ack).expect("2 is missing");
        assert_eq!(ack.ranges, [3..=3, 0..=0]);
    }

    #[test]
    fn a_request_of_the_sender_holds_from_its_packet_on() {
        let mut receiver = Receiver::new(AckPolicy::NOT_RETUNED);
        receiver.receive(at(0), &packet(0));
        assert_eq!(receiver.timeout(), Some(at(1)));
        let request = AckRequest { packets: 4, delay: MS(10) };
        receiver.receive(at(0), &Packet { ack_request: Some(request), ..packet(1) });
        assert_eq!(receiver.timeout(), Some(at(10)));
    }

    #[test]
    fn a_damaged_packet_did_not_come_and_a_handshake_is_answered_at_once() {
        let mut receiver = receiver();
        receiver.receive(at(0), &Packet { is_damaged: true, ..packet(0) });
        assert_eq!(receiver.timeout(), None);
        let content = Content::Handshake(Step::ServerHello);
        receiver.receive(at(1), &Packet { content, ..packet(0) });
        assert!(receiver.poll(at(1)).is_some());
    }

    #[test]
    fn bytes_that_came_before_are_counted() {
        let mut receiver = receiver();
        receiver.receive(at(0), &packet(0));
        let content = Content::Stream(vec![50..150]);
        receiver.receive(at(1), &Packet { content, ..packet(1) });
        assert_eq!(receiver.duplicate_bytes(), 50);
        assert!(receiver.has_all(150) && !receiver.has_all(151));
    }
}
