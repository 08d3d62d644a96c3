//! Periods of loss recovery, in which further losses do not lower the rate again.

use super::Packet;

/// Whether a flow recovers from losses.
#[derive(Debug)]
pub(super) enum Recovery {
    /// In a flow of [`Traffic::TcpLike`](super::super::Traffic::TcpLike): losses of packets that
    /// were sent before this transmission belong to a reduction that was made.
    Simple {
        /// The transmission.
        reduced_at: u32,
    },
    /// Recovery ends when all segments that had been sent at its begin have arrived (RFC 6675).
    Selective {
        /// The state.
        state: State,
        /// The first segment that recovery does not wait for.
        until: u32,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum State {
    /// No loss is known.
    Open,
    /// Losses were found from answers.
    Fast,
    /// The retransmission timeout passed.
    AfterTimeout,
}

impl Recovery {
    pub(super) fn simple() -> Self {
        Self::Simple { reduced_at: 0 }
    }

    pub(super) fn selective() -> Self {
        Self::Selective { state: State::Open, until: 0 }
    }

    /// Whether the arrival of this packet may enlarge the window.
    pub(super) fn lets_grow(&self, packet: Packet) -> bool {
        match *self {
            Self::Simple { reduced_at } => packet.transmission >= reduced_at,
            Self::Selective { state, .. } => state != State::Fast,
        }
    }

    /// Whether the loss of this transmission begins recovery.
    pub(super) fn begins_with(&self, transmission: u32) -> bool {
        match *self {
            Self::Simple { reduced_at } => transmission >= reduced_at,
            Self::Selective { state, .. } => state == State::Open,
        }
    }

    /// Recovery begins. `next` is the next transmission and the next segment.
    pub(super) fn begin(&mut self, next: Packet) {
        self.enter(State::Fast, next);
    }

    /// The retransmission timeout passed.
    pub(super) fn time_out(&mut self, next: Packet) {
        self.enter(State::AfterTimeout, next);
    }

    fn enter(&mut self, to: State, next: Packet) {
        match self {
            Self::Simple { reduced_at } => *reduced_at = next.transmission,
            Self::Selective { state, until } => (*state, *until) = (to, next.segment),
        }
    }

    /// Every segment before `first` has arrived; whether recovery ends with that.
    pub(super) fn ends(&mut self, first: u32) -> bool {
        match self {
            Self::Selective { state, until } if *state != State::Open && first >= *until => {
                *state = State::Open;
                true
            }
            Self::Selective { .. } | Self::Simple { .. } => false,
        }
    }

    /// Whether losses were found from answers, in a flow that sends segments again.
    pub(super) fn is_fast(&self) -> bool {
        matches!(self, Self::Selective { state: State::Fast, .. })
    }

    /// Whether no loss is known.
    pub(super) fn is_open(&self) -> bool {
        matches!(self, Self::Selective { state: State::Open, .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(transmission: u32, segment: u32) -> Packet {
        Packet { transmission, segment }
    }

    #[test]
    fn recovery_lasts_until_all_segments_of_its_begin_have_arrived() {
        let mut recovery = Recovery::selective();
        assert!(recovery.begins_with(3) && recovery.lets_grow(packet(4, 4)));
        recovery.begin(packet(20, 10));
        assert!(!recovery.begins_with(25) && !recovery.lets_grow(packet(25, 15)));
        assert!(!recovery.ends(9) && recovery.is_fast());
        assert!(recovery.ends(10) && recovery.is_open() && !recovery.ends(10));
        recovery.time_out(packet(30, 20));
        assert!(!recovery.begins_with(31) && recovery.lets_grow(packet(31, 11)));
    }

    #[test]
    fn simple_recovery_lasts_a_round_trip() {
        let mut recovery = Recovery::simple();
        recovery.begin(packet(20, 10));
        assert!(!recovery.begins_with(19) && recovery.begins_with(20));
        assert!(!recovery.lets_grow(packet(19, 3)) && recovery.lets_grow(packet(20, 4)));
    }
}
