//! The latest messages of a stream, each held once for all viewers.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::RandomAccess;
use punctual_units::Instant;

/// A message of a stream.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Message {
    /// The payload: of a transport stream, whole packets.
    pub payload: Bytes,
    /// When it is to be at a viewer, less the viewer's latency: its origin time for the viewer's
    /// connection.
    pub origin: Instant,
    /// Whether it does not follow the message before it: it is the first of another source, or the
    /// first after a skip.
    pub is_break: bool,
}

/// A message in the ring.
#[derive(Clone, Debug)]
pub(super) struct HeldMessage {
    pub(super) message: Message,
    /// When it came in. Its origin time may be much older: a relay that stalled gets its messages
    /// late.
    pub(super) arrival: Instant,
    /// The number of the source that it came from: another source has another clock, other tables
    /// and other counters.
    pub(super) source: u64,
}

/// A place where a viewer may start.
#[derive(Clone, Debug)]
pub(super) struct EntryPoint {
    /// The number of the message.
    pub(super) message: u64,
    /// The number of the packet in the message.
    pub(super) packet: usize,
    /// The latest tables before it, as they came.
    pub(super) tables: Bytes,
    pub(super) access: RandomAccess,
}

/// The latest messages, by running numbers.
#[derive(Debug, Default)]
pub(super) struct Ring {
    messages: VecDeque<HeldMessage>,
    /// The number of the first one.
    first: u64,
    bytes: usize,
    points: VecDeque<EntryPoint>,
}

impl Ring {
    pub(super) fn push(&mut self, held: HeldMessage) {
        self.bytes += held.message.payload.len();
        self.messages.push_back(held);
    }

    /// Notes a place to start in the messages up to the newest. Of very many, the latest are kept.
    pub(super) fn note_point(&mut self, mut point: EntryPoint) {
        if point.message < self.first {
            return;
        }
        if let Some(before) = self.points.back().filter(|before| before.tables == point.tables) {
            point.tables = before.tables.clone();
        }
        if self.points.len() == MOST_POINTS {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }

    /// Forgets messages older than `span` at `now`, but none after the latest random access point
    /// unless it is older than [`LONGEST_GOP`]; and the oldest if there are too many bytes.
    pub(super) fn forget(&mut self, now: Instant, span: Duration) {
        let latest = self.points.back().map_or(u64::MAX, |point| point.message);
        while let Some(oldest) = self.messages.front() {
            let age = now.saturating_since(oldest.arrival);
            let is_wanted = age < span || self.first >= latest && age < LONGEST_GOP;
            if is_wanted && self.bytes <= MOST_BYTES {
                break;
            }
            self.bytes -= oldest.message.payload.len();
            self.messages.pop_front();
            self.first += 1;
        }
        while self.points.front().is_some_and(|point| point.message < self.first) {
            self.points.pop_front();
        }
    }

    pub(super) fn get(&self, number: u64) -> Option<&HeldMessage> {
        let place = number.checked_sub(self.first)?;
        self.messages.get(usize::try_from(place).ok()?)
    }

    /// The number of the oldest message.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The number of the message that comes next.
    pub(super) fn end(&self) -> u64 {
        self.first + self.messages.len() as u64
    }

    pub(super) fn newest_point(&self) -> Option<&EntryPoint> {
        self.points.back()
    }

    /// The newest place to start in the messages of this source.
    pub(super) fn newest_point_of(&self, source: u64) -> Option<&EntryPoint> {
        let is_of =
            |point: &&EntryPoint| self.get(point.message).is_some_and(|held| held.source == source);
        self.newest_point().filter(is_of)
    }

    /// The first place to start at this message or later.
    pub(super) fn point_from(&self, message: u64) -> Option<&EntryPoint> {
        self.points.iter().find(|point| point.message >= message)
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets all, when nobody publishes and nobody views any more.
    pub(super) fn clear(&mut self) {
        self.first = self.end();
        self.messages.clear();
        self.points.clear();
        self.bytes = 0;
    }
}

/// The longest group of pictures that is kept whole for viewers that start at its beginning.
const LONGEST_GOP: Duration = Duration::from_secs(12);

/// The most places to start that are kept: 10 s of a stream in which each of 25 pictures a second
/// is one.
const MOST_POINTS: usize = 256;

/// The most bytes of one stream: 12 s at 85 Mb/s.
const MOST_BYTES: usize = 128 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn held(at: u64, len: usize) -> HeldMessage {
        let message = Message {
            payload: vec![0; len].into(),
            origin: Instant::from_millis(at),
            is_break: false,
        };
        HeldMessage { message, arrival: Instant::from_millis(at), source: 0 }
    }

    fn point(message: u64) -> EntryPoint {
        let access = RandomAccess { packet: 0, pid: 256, pts: None };
        EntryPoint { message, packet: 0, tables: vec![0; 188].into(), access }
    }

    #[test]
    fn places_to_start_are_bounded_and_share_their_tables() {
        let mut ring = Ring::default();
        for number in 0..100_000 {
            ring.push(held(number / 1_000, 10));
            ring.note_point(point(number));
        }
        assert_eq!(ring.points.len(), MOST_POINTS);
        assert_eq!(ring.newest_point().map(|point| point.message), Some(99_999));
        let tables: Vec<_> = ring.points.iter().map(|point| point.tables.as_ptr()).collect();
        assert!(tables.iter().all(|it| *it == tables[0]));
    }

    #[test]
    fn the_latest_group_of_pictures_stays_whole_and_older_messages_go() {
        let mut ring = Ring::default();
        for number in 0..100 {
            if number % 40 == 0 {
                ring.note_point(point(number));
            }
            ring.push(held(number * 100, 10));
            ring.forget(Instant::from_millis(number * 100), Duration::from_secs(1));
        }
        assert_eq!(ring.first(), 80, "the latest point is 1.9 s old");
        assert_eq!((ring.end(), ring.bytes()), (100, 200));
        assert_eq!(ring.point_from(0).map(|point| point.message), Some(80));
        assert!(ring.point_from(81).is_none());
        assert!(ring.get(79).is_none() && ring.get(80).is_some() && ring.get(100).is_none());
    }

    #[test]
    fn messages_without_random_access_points_are_bounded_too() {
        let mut ring = Ring::default();
        ring.note_point(point(0));
        for number in 0..1_000 {
            ring.push(held(number * 100, 10));
            ring.forget(Instant::from_millis(number * 100), Duration::from_secs(1));
        }
        assert_eq!(ring.end() - ring.first(), 10, "one second");
        for number in 1_000..1_300 {
            ring.push(held(100_000, 1 << 20));
            ring.forget(Instant::from_millis(number), Duration::from_secs(1));
        }
        assert!(ring.bytes() <= MOST_BYTES);
    }
}
