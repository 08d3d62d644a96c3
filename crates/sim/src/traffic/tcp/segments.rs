//! The segments of a flow: which of them are in flight, lost, or known to have arrived.

use std::collections::{BTreeSet, VecDeque};

/// The scoreboard of a sender with selective acknowledgements (RFC 6675).
#[derive(Debug, Default)]
pub(super) struct Segments {
    /// The first segment that is not known to have arrived (`SND.UNA`).
    first: u32,
    /// The segments from `first` on that were sent.
    states: VecDeque<TcpSegment>,
    /// Segments to send again.
    lost: BTreeSet<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct TcpSegment {
    /// Packets with it that are in flight.
    copies: u8,
    has_arrived: bool,
}

impl Segments {
    /// The first segment that is not known to have arrived.
    pub(super) fn first(&self) -> u32 {
        self.first
    }

    /// The next segment that has not been sent.
    #[expect(clippy::cast_possible_truncation, reason = "segments have numbers of 32 bits")]
    pub(super) fn next_new(&self) -> u32 {
        self.first + self.states.len() as u32
    }

    /// The first segment that is to be sent again.
    pub(super) fn first_lost(&self) -> Option<u32> {
        self.lost.first().copied()
    }

    /// The last segment that was sent and is not known to have arrived.
    pub(super) fn last_unknown(&self) -> Option<u32> {
        let place = self.states.iter().rposition(|segment| !segment.has_arrived)?;
        Some(self.first + u32::try_from(place).ok()?)
    }

    /// A segment is sent: one that was sent before, or the next new one.
    pub(super) fn send(&mut self, segment: u32) {
        if segment == self.next_new() {
            self.states.push_back(TcpSegment::default());
        }
        self.lost.remove(&segment);
        if let Some(state) = self.get_mut(segment) {
            state.copies = state.copies.saturating_add(1);
        }
    }

    /// A packet with this segment is lost; it is sent again unless it arrived with another packet
    /// or may still do so.
    pub(super) fn lose(&mut self, segment: u32) {
        let Some(state) = self.get_mut(segment) else { return };
        state.copies = state.copies.saturating_sub(1);
        if state.copies == 0 && !state.has_arrived {
            self.lost.insert(segment);
        }
    }

    /// A packet with this segment arrived; whether it is the first.
    pub(super) fn arrive(&mut self, segment: u32) -> bool {
        let Some(state) = self.get_mut(segment) else { return false };
        let is_first = !std::mem::replace(&mut state.has_arrived, true);
        self.lost.remove(&segment);
        while self.states.front().is_some_and(|state| state.has_arrived) {
            self.states.pop_front();
            self.first += 1;
        }
        is_first
    }

    fn get_mut(&mut self, segment: u32) -> Option<&mut TcpSegment> {
        let place = segment.checked_sub(self.first)?;
        self.states.get_mut(usize::try_from(place).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_segment_is_sent_again_until_one_packet_with_it_arrives() {
        let mut segments = Segments::default();
        (0..4).for_each(|segment| segments.send(segment));
        assert!([1, 3].into_iter().all(|segment| segments.arrive(segment)));
        [0, 2].into_iter().for_each(|segment| segments.lose(segment));
        assert_eq!((segments.first(), segments.first_lost()), (0, Some(0)));
        segments.send(0);
        assert_eq!(segments.first_lost(), Some(2));
        // The packet that was taken for lost comes late.
        assert!(segments.arrive(2));
        assert_eq!((segments.first_lost(), segments.last_unknown()), (None, Some(0)));
        assert!(segments.arrive(0) && !segments.arrive(0));
        assert_eq!((segments.first(), segments.next_new()), (4, 4));
    }

    #[test]
    fn a_segment_with_a_packet_in_flight_is_not_sent_again() {
        let mut segments = Segments::default();
        segments.send(0);
        segments.send(0);
        segments.lose(0);
        assert_eq!(segments.first_lost(), None);
        segments.lose(0);
        assert_eq!(segments.first_lost(), Some(0));
    }
}
