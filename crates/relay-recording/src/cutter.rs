//! Where segments begin, and which places the index has: decisions without a disk or a clock.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use punctual_mpegts::{PACKET_LEN, SYNC_BYTE};
use punctual_units::UtcTime;

use crate::index::{Discontinuity, IndexEntry};

/// A message of a stream, as it was received: whole packets of a transport stream, or anything
/// else.
#[derive(Clone, Debug)]
pub struct RecordedMessage {
    /// The number of its first packet in the stream. Messages that are no packets count as one.
    pub number: u64,
    /// Its bytes.
    pub payload: Bytes,
    /// The time of its arrival by the clock of the day.
    pub time: UtcTime,
    /// The time of its arrival by a clock that nobody sets, since any origin.
    pub arrived: Duration,
    /// The reason why it does not follow the message before it, if it does not.
    pub discontinuity: Option<Discontinuity>,
}

/// A random access point of a stream.
#[derive(Clone, Debug)]
pub struct RecordedAccess {
    /// The number of the packet at which it begins. The message with that packet came before, less
    /// than 200 ms ago.
    pub packet: u64,
    /// The presentation time stamp, in ticks of 90 kHz.
    pub pts: Option<u64>,
    /// The packets of the tables in force there.
    pub tables: Bytes,
}

/// A step of writing a recording.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum WriteStep {
    /// A segment begins with these bytes of tables.
    Begin { time: UtcTime, continues: bool, tables: Bytes },
    /// These bytes of the stream come next.
    Write(Bytes),
    /// The index has this place.
    Note(IndexEntry),
    /// The segment ends.
    End(UtcTime),
}

/// Cuts a stream into segments.
///
/// A segment begins at a random access point, [`segment`](Self::new) after the one before began or
/// later, and where the tables change. A stream without random access points is cut at any message.
/// Messages are held for [`HOLD`](Self::HOLD), because a random access point may be known only some
/// packets after its first.
#[derive(Debug)]
pub(crate) struct Cutter {
    segment: Duration,
    held: VecDeque<(RecordedMessage, Vec<RecordedAccess>)>,
    open: Option<OpenSegment>,
    /// The arrival of the first message, until the first segment begins.
    waiting: Option<Duration>,
    tables: Bytes,
    discontinuity: Option<Discontinuity>,
    has_begun: bool,
}

/// The segment that is written.
#[derive(Debug)]
struct OpenSegment {
    time: UtcTime,
    arrived: Duration,
    byte: u64,
    tables: Bytes,
    has_access: bool,
    noted: Duration,
    /// The arrival of the latest message.
    latest: Duration,
}

impl Cutter {
    /// The time for which messages are held.
    pub(crate) const HOLD: Duration = Duration::from_millis(200);

    /// A cutter that makes segments of this length.
    pub(crate) fn new(segment: Duration) -> Self {
        Self {
            segment,
            held: VecDeque::new(),
            open: None,
            waiting: None,
            tables: Bytes::new(),
            discontinuity: None,
            has_begun: false,
        }
    }

    /// Takes in the next message, and adds to `steps` what is certain now.
    pub(crate) fn push(&mut self, message: RecordedMessage, steps: &mut Vec<WriteStep>) {
        let now = message.arrived;
        self.held.push_back((message, Vec::new()));
        let is_certain = |it: &RecordedMessage| it.arrived + Self::HOLD <= now;
        while self.held.front().is_some_and(|(it, _)| is_certain(it)) {
            let Some((message, points)) = self.held.pop_front() else { break };
            self.settle(&message, &points, steps);
        }
    }

    /// Takes in a random access point of a message that came before. One of a message that is held
    /// no more is left out.
    pub(crate) fn mark(&mut self, access: RecordedAccess) {
        let has = |message: &RecordedMessage| {
            let packets = (message.payload.len() / PACKET_LEN) as u64;
            (message.number..message.number + packets).contains(&access.packet)
        };
        if let Some((_, points)) = self.held.iter_mut().rev().find(|(message, _)| has(message)) {
            points.push(access);
        }
    }

    /// Ends the recording.
    pub(crate) fn finish(&mut self, steps: &mut Vec<WriteStep>) {
        while let Some((message, points)) = self.held.pop_front() {
            self.settle(&message, &points, steps);
        }
        if let Some(open) = self.open.take() {
            steps.push(WriteStep::End(open.time_at(open.latest)));
        }
    }

    fn settle(
        &mut self,
        message: &RecordedMessage,
        points: &[RecordedAccess],
        steps: &mut Vec<WriteStep>,
    ) {
        self.discontinuity = message.discontinuity.or(self.discontinuity);
        let mut written = 0;
        if points.first().is_none_or(|access| access.packet > message.number) {
            self.start_of_message(message, steps);
        }
        for access in points {
            let offset = usize::try_from(access.packet - message.number).unwrap_or(0) * PACKET_LEN;
            if offset < written {
                continue;
            }
            self.write(message.payload.slice(written..offset), steps);
            written = offset;
            self.access(access, message, steps);
        }
        self.write(message.payload.slice(written..), steps);
        if let Some(open) = &mut self.open {
            open.latest = message.arrived;
        }
    }

    /// A message begins with no random access point.
    fn start_of_message(&mut self, message: &RecordedMessage, steps: &mut Vec<WriteStep>) {
        let now = message.arrived;
        let is_due = match &self.open {
            None => {
                let since = *self.waiting.get_or_insert(now);
                now.saturating_sub(since) >= START_WAIT || !is_transport_stream(&message.payload)
            }
            Some(open) => {
                let age = now.saturating_sub(open.arrived);
                let wait =
                    if open.has_access { self.segment.max(ACCESS_WAIT) } else { Duration::ZERO };
                age >= self.segment + wait
            }
        };
        if is_due {
            self.begin(message, steps);
        }
        let is_late = |open: &OpenSegment| now.saturating_sub(open.noted) >= ENTRY_MOST;
        if is_due || self.discontinuity.is_some() || self.open.as_ref().is_some_and(is_late) {
            self.note(now, None, steps);
        }
    }

    fn access(
        &mut self,
        access: &RecordedAccess,
        message: &RecordedMessage,
        steps: &mut Vec<WriteStep>,
    ) {
        let now = message.arrived;
        self.tables = access.tables.clone();
        let begins = self.open.as_ref().is_none_or(|open| {
            now.saturating_sub(open.arrived) >= self.segment
                || !are_same(&open.tables, &access.tables)
        });
        if begins {
            self.begin(message, steps);
        }
        let Some(open) = &mut self.open else { return };
        let is_first = !std::mem::replace(&mut open.has_access, true);
        let is_spaced = now.saturating_sub(open.noted) >= ENTRY_LEAST;
        if is_first || is_spaced || self.discontinuity.is_some() {
            self.note(now, Some(access), steps);
        }
    }

    fn begin(&mut self, message: &RecordedMessage, steps: &mut Vec<WriteStep>) {
        let continues = self.has_begun && self.discontinuity.is_none();
        if let Some(before) = self.open.take() {
            steps.push(WriteStep::End(before.time_at(message.arrived)));
        }
        let (time, tables) = (message.time, self.tables.clone());
        self.open = Some(OpenSegment {
            time,
            arrived: message.arrived,
            byte: tables.len() as u64,
            tables: tables.clone(),
            has_access: false,
            noted: message.arrived,
            latest: message.arrived,
        });
        self.has_begun = true;
        steps.push(WriteStep::Begin { time, continues, tables });
    }

    fn note(&mut self, now: Duration, access: Option<&RecordedAccess>, steps: &mut Vec<WriteStep>) {
        let Some(open) = &mut self.open else { return };
        open.noted = now;
        steps.push(WriteStep::Note(IndexEntry {
            time: open.time_at(now),
            byte: open.byte,
            pts: access.and_then(|access| access.pts),
            random_access: access.is_some(),
            discontinuity: self.discontinuity.take(),
        }));
    }

    fn write(&mut self, bytes: Bytes, steps: &mut Vec<WriteStep>) {
        if let Some(open) = &mut self.open
            && !bytes.is_empty()
        {
            open.byte += bytes.len() as u64;
            steps.push(WriteStep::Write(bytes));
        }
    }
}

impl OpenSegment {
    /// The time of the day at an arrival: within a segment the clock of the day is not read again.
    fn time_at(&self, arrived: Duration) -> UtcTime {
        self.time + arrived.saturating_sub(self.arrived)
    }
}

/// Whether a message is made of packets of a transport stream.
pub(crate) fn is_transport_stream(payload: &[u8]) -> bool {
    let (packets, rest) = payload.as_chunks::<PACKET_LEN>();
    rest.is_empty() && !packets.is_empty() && packets.iter().all(|packet| packet[0] == SYNC_BYTE)
}

/// Whether two series of packets have the same tables: all but their continuity counters.
fn are_same(one: &[u8], other: &[u8]) -> bool {
    let same = |(place, (a, b)): (usize, (&u8, &u8))| {
        let mask = if place % PACKET_LEN == 3 { 0xF0 } else { 0xFF };
        a & mask == b & mask
    };
    one.len() == other.len() && one.iter().zip(other).enumerate().all(same)
}

/// The longest wait for the first random access point of a recording.
const START_WAIT: Duration = Duration::from_secs(5);
/// The shortest extra time in which a stream with random access points may reach the next one.
const ACCESS_WAIT: Duration = Duration::from_secs(10);
/// The longest time between two entries of the index.
const ENTRY_MOST: Duration = Duration::from_secs(1);
/// The shortest time between two entries without a discontinuity: each frame of sound is a random
/// access point.
const ENTRY_LEAST: Duration = Duration::from_millis(200);

#[cfg(test)]
#[path = "cutter_tests.rs"]
mod tests;
