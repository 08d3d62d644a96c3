//! The application's wait for room in the send buffer.

/// The room that the application waits for.
#[derive(Debug, Default)]
pub(super) struct RoomWait {
    /// Packets; 0 if it does not wait.
    packets: usize,
}

impl RoomWait {
    /// A message of this many packets was refused.
    pub(super) const fn refused(&mut self, packets: usize) {
        self.packets = packets;
    }

    /// The application waits, for a packet if no message was refused.
    pub(super) const fn begin(&mut self) {
        if self.packets == 0 {
            self.packets = 1;
        }
    }

    /// Whether the application waits and there is enough `room` now, in packets. The wait is over
    /// then.
    #[inline]
    pub(super) fn ends(&mut self, room: impl FnOnce() -> usize) -> bool {
        let ends = self.packets > 0 && room() >= self.packets;
        if ends {
            self.packets = 0;
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_once_with_room_for_the_message_that_was_refused() {
        let mut wait = RoomWait::default();
        assert!(!wait.ends(|| 100), "nobody waits");
        wait.refused(3);
        wait.begin();
        assert!(!wait.ends(|| 2));
        assert!(wait.ends(|| 3) && !wait.ends(|| 3));
        wait.begin();
        assert!(!wait.ends(|| 0) && wait.ends(|| 1));
    }
}
