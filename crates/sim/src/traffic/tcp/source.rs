use std::time::Duration;

use punctual_units::{Bitrate, Instant};

use crate::schedule::{MessagePace, RateSchedule};

/// The data that a TCP flow has to send. Bytes are those of the application.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum TcpSource {
    /// Always more.
    Endless,
    /// This number of bytes, all there at the start.
    Bytes(u64),
    /// A live stream: bytes at this rate from the start on. The sender keeps the bytes that it
    /// cannot send yet.
    Rate(Bitrate),
}

/// The segments that a source has made.
#[derive(Debug)]
pub(super) enum Segmenter {
    Endless,
    Rest(u64),
    /// The time of each segment since `begun`.
    Live {
        pace: MessagePace,
        begun: Instant,
        next: Option<Instant>,
    },
}

impl TcpSource {
    /// The bytes of a source that ends.
    pub(super) fn total(self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            Self::Endless | Self::Rate(_) => None,
        }
    }
}

impl Segmenter {
    /// The segments of `payload` bytes of a source that starts at `start`.
    pub(super) fn new(source: TcpSource, payload: u16, start: Instant) -> Self {
        match source {
            TcpSource::Endless => Self::Endless,
            TcpSource::Bytes(bytes) => Self::Rest(bytes.div_ceil(payload.into())),
            TcpSource::Rate(rate) => {
                // A segment is sent when its last byte is there.
                let first = if rate == Bitrate::ZERO {
                    Duration::ZERO
                } else {
                    rate.time_for(payload.into())
                };
                let begun = start + first;
                let mut pace = MessagePace::new(RateSchedule::constant(rate), payload.into());
                let next = pace.next().map(|time| begun + time);
                Self::Live { pace, begun, next }
            }
        }
    }

    /// Whether there is a segment at `now`.
    pub(super) fn has(&self, now: Instant) -> bool {
        match self {
            Self::Endless => true,
            Self::Rest(rest) => *rest > 0,
            Self::Live { next, .. } => next.is_some_and(|at| at <= now),
        }
    }

    /// Takes a segment, if there is one at `now`.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        let is_there = self.has(now);
        match self {
            Self::Rest(rest) => *rest = rest.saturating_sub(1),
            Self::Live { pace, begun, next } if is_there => {
                *next = pace.next().map(|time| *begun + time);
            }
            Self::Endless | Self::Live { .. } => {}
        }
        is_there
    }

    /// When the next segment is there; `None` for one that is, and when there will be none.
    pub(super) fn next(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Live { next, .. } => next.filter(|at| *at > now),
            Self::Endless | Self::Rest(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_source_has_a_segment_when_its_last_byte_is_there() {
        let rate = Bitrate::from_mbps(8);
        let mut source = Segmenter::new(TcpSource::Rate(rate), 1_000, Instant::from_millis(5));
        assert!(!source.take(Instant::from_millis(5)));
        assert_eq!(source.next(Instant::from_millis(5)), Some(Instant::from_millis(6)));
        let taken = (0..9).filter(|_| source.take(Instant::from_millis(10))).count();
        assert_eq!(taken, 5);
    }

    #[test]
    fn a_transfer_ends_with_a_part_of_a_segment() {
        let mut source = Segmenter::new(TcpSource::Bytes(2_001), 1_000, Instant::ORIGIN);
        assert_eq!((0..9).filter(|_| source.take(Instant::ORIGIN)).count(), 3);
    }
}
