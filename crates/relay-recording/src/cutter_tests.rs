use super::*;

const START: u64 = 1_000_000_000;
/// An interval that the tests do not reach.
const NEVER: u64 = 1_000_000;

/// A recording of a stream that the test makes: a message of two packets each 100 ms.
struct Stream {
    cutter: Cutter,
    steps: Vec<WriteStep>,
    number: u64,
    tables: Bytes,
}

impl Stream {
    fn new(segment_s: u64) -> Self {
        let cutter = Cutter::new(Duration::from_secs(segment_s));
        Self { cutter, steps: Vec::new(), number: 0, tables: packets(0, 2) }
    }

    /// Sends messages up to this time in ms, and a random access point at the second packet of each
    /// message whose time is a multiple of `access_ms`, told in the message after.
    fn send(&mut self, from_ms: u64, to_ms: u64, access_ms: u64) {
        let mut access = None;
        for at in (from_ms..to_ms).step_by(100) {
            self.message(at, None);
            if let Some(packet) = access.take() {
                let (pts, tables) = (Some(packet), self.tables.clone());
                self.cutter.mark(RecordedAccess { packet, pts, tables });
            }
            access = (at % access_ms == 0).then_some(self.number - 1);
        }
    }

    fn message(&mut self, at_ms: u64, discontinuity: Option<Discontinuity>) {
        let arrived = Duration::from_millis(at_ms);
        let message = RecordedMessage {
            number: self.number,
            payload: packets(self.number, 2),
            time: UtcTime::from_micros(START) + arrived,
            arrived,
            discontinuity,
        };
        self.number += 2;
        self.cutter.push(message, &mut self.steps);
    }

    fn finish(mut self) -> Vec<WriteStep> {
        self.cutter.finish(&mut self.steps);
        self.steps
    }
}

fn packets(number: u64, count: u64) -> Bytes {
    let packet = |number: u64| {
        let mut packet = [SYNC_BYTE; PACKET_LEN];
        packet[3] = 0x10 | (number & 15) as u8;
        packet[4..12].copy_from_slice(&number.to_be_bytes());
        packet
    };
    (number..number + count).flat_map(packet).collect()
}

/// The beginnings in ms, each with whether it continues.
fn beginnings(steps: &[WriteStep]) -> Vec<(u64, bool)> {
    let ms = |time: UtcTime| (time.micros() - START) / 1_000;
    let of = |step: &WriteStep| match step {
        WriteStep::Begin { time, continues, .. } => Some((ms(*time), *continues)),
        _ => None,
    };
    steps.iter().filter_map(of).collect()
}

fn notes(steps: &[WriteStep]) -> Vec<&IndexEntry> {
    steps.iter().filter_map(note).collect()
}

fn written(steps: &[WriteStep]) -> Vec<u8> {
    steps.iter().flat_map(bytes).copied().collect()
}

fn note(step: &WriteStep) -> Option<&IndexEntry> {
    if let WriteStep::Note(entry) = step { Some(entry) } else { None }
}

fn bytes(step: &WriteStep) -> &[u8] {
    if let WriteStep::Write(bytes) = step { bytes } else { &[] }
}

#[test]
fn segments_begin_at_random_access_points_and_lose_no_byte() {
    let mut stream = Stream::new(2);
    stream.send(0, 10_000, 700);
    let count = stream.number;
    let steps = stream.finish();
    assert_eq!(
        beginnings(&steps),
        [(0, false), (2_100, true), (4_200, true), (6_300, true), (8_400, true)]
    );
    assert_eq!(written(&steps), packets(1, count - 1));
    // Each begins with the packet of its random access point, after the tables.
    for (place, step) in steps.iter().enumerate() {
        let WriteStep::Begin { tables, .. } = step else { continue };
        assert_eq!(tables.len(), 2 * PACKET_LEN);
        let [WriteStep::Note(entry), WriteStep::Write(bytes), ..] = &steps[place + 1..] else {
            panic!("{:?}", &steps[place..place + 3]);
        };
        assert!(entry.random_access && entry.byte == 2 * PACKET_LEN as u64);
        assert_eq!(bytes[..], packets(entry.pts.unwrap(), 1));
    }
}

#[test]
fn entries_tell_the_byte_of_each_random_access_point() {
    let mut stream = Stream::new(60);
    stream.send(0, 3_000, 500);
    let steps = stream.finish();
    let all = written(&steps);
    let points: Vec<_> = notes(&steps).into_iter().filter(|it| it.random_access).collect();
    assert_eq!(points.len(), 6);
    for entry in points {
        let at = entry.byte as usize - 2 * PACKET_LEN;
        assert_eq!(all[at..at + PACKET_LEN], packets(entry.pts.unwrap(), 1));
        let ms = (entry.time.micros() - START) / 1_000;
        assert_eq!(entry.pts.unwrap(), ms / 100 * 2 + 1);
    }
}

#[test]
fn a_gap_is_marked_in_the_same_segment() {
    let mut stream = Stream::new(60);
    stream.send(0, 2_000, 500);
    stream.message(9_000, Some(Discontinuity::Gap));
    stream.send(9_100, 10_000, 500);
    let steps = stream.finish();
    assert_eq!(beginnings(&steps), [(0, false)]);
    let marked: Vec<_> =
        notes(&steps).into_iter().filter(|it| it.discontinuity.is_some()).collect();
    let [entry] = marked[..] else { panic!("{marked:?}") };
    assert_eq!(entry.time.micros(), START + 9_000_000);
    // The first packet of all came before the first random access point; two came with the tables.
    assert_eq!(entry.byte, (2 + 40 - 1) * PACKET_LEN as u64);
}

#[test]
fn a_segment_after_a_gap_does_not_continue_the_one_before() {
    let mut stream = Stream::new(2);
    stream.send(0, 1_000, 500);
    let at = stream.number;
    stream.message(8_000, Some(Discontinuity::Source));
    let tables = stream.tables.clone();
    stream.cutter.mark(RecordedAccess { packet: at, pts: None, tables });
    let steps = stream.finish();
    assert_eq!(beginnings(&steps), [(0, false), (8_000, false)]);
    assert_eq!(notes(&steps).last().unwrap().discontinuity, Some(Discontinuity::Source));
}

#[test]
fn other_tables_begin_a_segment_and_other_counters_do_not() {
    let mut stream = Stream::new(60);
    stream.send(0, 1_000, 500);
    let mut next = stream.tables.to_vec();
    (next[3], next[PACKET_LEN + 3]) = (0x15, 0x16);
    stream.tables = next.clone().into();
    stream.send(1_000, 2_000, 500);
    next[100] ^= 1;
    stream.tables = next.into();
    stream.send(2_000, 3_000, 500);
    assert_eq!(beginnings(&stream.finish()), [(0, false), (2_000, true)]);
}

#[test]
fn without_random_access_points_a_stream_begins_late_and_is_cut_anywhere() {
    let mut stream = Stream::new(2);
    stream.send(50, 12_000, NEVER);
    let steps = stream.finish();
    assert_eq!(beginnings(&steps), [(5_050, false), (7_050, true), (9_050, true), (11_050, true)]);
    assert!(notes(&steps).iter().any(|it| it.byte > 0 && !it.random_access));
}

#[test]
fn bytes_that_are_no_transport_stream_are_recorded_from_the_first() {
    let mut cutter = Cutter::new(Duration::from_secs(1));
    let mut steps = Vec::new();
    for number in 0..30 {
        let arrived = Duration::from_millis(number * 100);
        let time = UtcTime::from_micros(START) + arrived;
        let payload = Bytes::from(vec![number as u8; 5]);
        let message = RecordedMessage { number, payload, time, arrived, discontinuity: None };
        cutter.push(message, &mut steps);
    }
    cutter.finish(&mut steps);
    assert_eq!(beginnings(&steps), [(0, false), (1_000, true), (2_000, true)]);
    assert_eq!(written(&steps).len(), 150);
    assert_eq!(steps.last(), Some(&WriteStep::End(UtcTime::from_micros(START + 2_900_000))));
}

#[test]
fn a_segment_waits_long_for_a_random_access_point_but_not_for_ever() {
    let mut stream = Stream::new(2);
    stream.send(0, 200, 150);
    stream.send(200, 30_000, NEVER);
    assert_eq!(
        beginnings(&stream.finish()),
        [
            (0, false),
            (12_000, true),
            (14_000, true),
            (16_000, true),
            (18_000, true),
            (20_000, true),
            (22_000, true),
            (24_000, true),
            (26_000, true),
            (28_000, true)
        ]
    );
}

#[test]
fn a_frame_of_sound_is_not_an_entry_each() {
    let mut stream = Stream::new(60);
    stream.send(0, 10_000, 100);
    let entries = notes(&stream.finish()).len();
    assert_eq!(entries, 50);
}
