//! The sequence numbers between which packets are stored.

use punctual_wire::SeqNo;

/// The numbers from the next packet to be delivered to the last one that there is room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveWindow {
    head: SeqNo,
    end: SeqNo,
    limit: usize,
}

impl ReceiveWindow {
    /// From `head` on, `end` follows the newest packet, and `limit` packets fit.
    pub(crate) const fn new(head: SeqNo, end: SeqNo, limit: usize) -> Self {
        Self { head, end, limit }
    }

    /// The number after the newest packet.
    #[inline(always)]
    pub(crate) const fn end(self) -> SeqNo {
        self.end
    }

    /// The most packets that are stored.
    pub(crate) const fn limit(self) -> usize {
        self.limit
    }

    /// The packets after the newest one that there is room for.
    #[inline]
    pub(crate) fn room(self) -> u32 {
        let limit = u32::try_from(self.limit).unwrap_or(u32::MAX);
        limit.saturating_sub(self.end.distance_from(self.head).unsigned_abs())
    }

    /// The last number that there is room for.
    pub(crate) fn last(self) -> SeqNo {
        self.end.plus(self.room()).minus(1)
    }

    /// The newest packet, if it lies before `seq`, or else `seq`.
    pub(crate) fn up_to_newest(self, seq: SeqNo) -> SeqNo {
        if seq.is_before(self.end) { seq } else { self.end.minus(1) }
    }

    /// The last number for which there is no room beside `seq`.
    pub(crate) fn last_without_room_beside(self, seq: SeqNo) -> SeqNo {
        seq.minus(u32::try_from(self.limit).unwrap_or(u32::MAX))
    }

    /// Whether there is room for a packet that is not late.
    #[inline(always)]
    pub(crate) fn has_place_for(self, seq: SeqNo) -> bool {
        seq.distance_from(self.head) < i32::try_from(self.limit).unwrap_or(i32::MAX)
    }

    /// Whether `seq` lies beyond the room after the newest packet.
    pub(crate) fn is_beyond_room(self, seq: SeqNo) -> bool {
        u32::try_from(seq.distance_from(self.end)).is_ok_and(|beyond| beyond >= self.room())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_room_follows_the_newest_packet_up_to_the_limit() {
        let head = SeqNo::new(0x7FFF_FFFE);
        let window = ReceiveWindow::new(head, head.plus(10), 100);
        assert_eq!((window.room(), window.last()), (90, head.plus(99)));
        assert!(window.has_place_for(head.plus(99)) && !window.has_place_for(head.plus(100)));
        assert!(!window.is_beyond_room(head.plus(99)) && window.is_beyond_room(head.plus(100)));
        assert!(window.has_place_for(head.minus(5)) && !window.is_beyond_room(head.minus(5)));
        assert_eq!(window.last_without_room_beside(head.plus(105)), head.plus(5));
        let clipped = [5, 9, 10, 200].map(|at| window.up_to_newest(head.plus(at)));
        assert_eq!(clipped, [5, 9, 9, 9].map(|at| head.plus(at)));
    }
}
