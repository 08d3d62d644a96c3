//! Recordings of a real clip, on a disk: what is written, what a crash and a full disk leave, and
//! what is played.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::cast_possible_truncation, reason = "numbers in tests are small")]
#![expect(clippy::disallowed_methods, reason = "the tests wait for threads and processes")]
#![expect(clippy::disallowed_types, reason = "a thread is stopped by a channel that it shares")]

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio, exit};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{sleep, spawn};
use std::time::Duration;
use std::{env, fs};

use bytes::Bytes;
use punctual_mpegts::{Inspector, PACKET_LEN, Packet};
use punctual_relay_recording::{
    Archive, Discontinuity, Excerpt, IndexEntry, Playback, PlaybackError, PlayedPart,
    RecordedAccess, RecordedMessage, Recorder, RecorderSettings, RecordingEvent, Retention,
};
use punctual_units::UtcTime;

const STREAM: &str = "live/cam";
const HOUR: Duration = Duration::from_secs(3_600);

fn clip() -> Bytes {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../assets/clip.ts");
    let mut clip = fs::read(path).unwrap();
    clip.truncate(clip.len() / PACKET_LEN * PACKET_LEN);
    clip.into()
}

fn start() -> UtcTime {
    "2026-11-27T20:15:00Z".parse().unwrap()
}

fn archive(folder: &Path) -> Archive {
    let names = format!("{}/%path/%Y-%m-%d_%H-%M-%S-%f", folder.display());
    Archive::new(names.parse().unwrap())
}

fn recorder(folder: &Path, segment: Duration) -> (Recorder, Receiver<RecordingEvent>) {
    let (sender, events) = channel();
    let settings = RecorderSettings {
        stream: STREAM.to_owned(),
        archive: archive(folder),
        segment,
        retention: Retention::default(),
    };
    let recorder = Recorder::start(settings, move |event| drop(sender.send(event))).unwrap();
    (recorder, events)
}

/// A publisher that sends the clip again and again, of 12 s.
struct Publisher {
    clip: Bytes,
    inspector: Inspector,
    /// The time since the start.
    now: Duration,
    discontinuity: Option<Discontinuity>,
}

impl Publisher {
    fn new() -> Self {
        let (inspector, now) = (Inspector::default(), Duration::ZERO);
        Self { clip: clip(), inspector, now, discontinuity: None }
    }

    /// The time that a message of the clip takes.
    fn spacing(&self) -> Duration {
        Duration::from_secs(12) * (7 * PACKET_LEN as u32) / self.clip.len() as u32
    }

    fn message(&mut self, payload: &Bytes, recorder: &Recorder) {
        recorder.push(RecordedMessage {
            number: self.inspector.packets(),
            payload: payload.clone(),
            time: start() + self.now,
            arrived: self.now,
            discontinuity: self.discontinuity.take(),
        });
        for packet in payload.as_chunks().0 {
            if let Some(found) = self.inspector.push(Packet::new(packet).unwrap(), self.now) {
                let (packet, pts) = (found.packet, found.pts);
                recorder.mark(RecordedAccess { packet, pts, tables: self.inspector.tables() });
            }
        }
        self.now += self.spacing();
    }

    fn send_clip(&mut self, recorder: &Recorder) {
        let clip = self.clip.clone();
        for at in (0..clip.len()).step_by(7 * PACKET_LEN) {
            self.message(&clip.slice(at..clip.len().min(at + 7 * PACKET_LEN)), recorder);
        }
    }
}

fn finish(recorder: &Recorder) {
    recorder.stop();
    assert!(recorder.wait(Duration::from_secs(60)), "the recording ends");
}

/// Records the clip `times` times, with this gap in between.
fn record(folder: &Path, segment: Duration, times: u32, gap: Duration) -> Vec<RecordingEvent> {
    let (recorder, events) = recorder(folder, segment);
    let mut publisher = Publisher::new();
    for _ in 0..times {
        publisher.send_clip(&recorder);
        publisher.now += gap;
        publisher.discontinuity = Some(Discontinuity::Gap);
    }
    finish(&recorder);
    assert_eq!(recorder.report().failure, None);
    events.try_iter().collect()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    archive(folder).segments(STREAM).unwrap().into_iter().map(|it| it.path).collect()
}

/// The first line of a segment's index, and its entries.
fn index(segment: &Path) -> (serde_json::Value, Vec<IndexEntry>) {
    let text = fs::read_to_string(segment.with_extension("jsonl")).unwrap();
    let mut lines = text.lines();
    let head = serde_json::from_str(lines.next().unwrap()).unwrap();
    (head, lines.filter_map(|line| serde_json::from_str(line).ok()).collect())
}

fn tables_of(segment: &Path) -> usize {
    index(segment).0["tables"].as_u64().unwrap() as usize
}

/// All messages, with the time of the last one.
fn play(playback: &mut Playback) -> (Vec<u8>, Duration) {
    let (mut bytes, mut latest) = (Vec::new(), Duration::ZERO);
    loop {
        match playback.next_part().unwrap() {
            PlayedPart::Message { at, payload } => {
                assert!(at >= latest, "{at:?} after {latest:?}");
                bytes.extend_from_slice(&payload);
                latest = at;
            }
            PlayedPart::End => return (bytes, latest),
            PlayedPart::Wait => panic!("the recording has ended"),
        }
    }
}

fn is_about(time: Duration, seconds: f64) -> bool {
    (time.as_secs_f64() - seconds).abs() < 0.3
}

#[test]
fn segments_join_to_the_stream_and_each_can_be_played_alone() {
    let folder = tempfile::tempdir().unwrap();
    let events = record(folder.path(), Duration::from_secs(3), 1, Duration::ZERO);
    let paths = segments(folder.path());
    assert!((3..=5).contains(&paths.len()), "{paths:?}");
    let first = paths[0].strip_prefix(folder.path()).unwrap().to_str().unwrap();
    assert!(first.starts_with("live/cam/2026-11-27_20-15-00-"), "{paths:?}");

    let mut joined = Vec::new();
    for path in &paths {
        let bytes = fs::read(path).unwrap();
        let tables = tables_of(path);
        assert!(tables > 0 && tables.is_multiple_of(PACKET_LEN));
        assert_eq!(Packet::new(bytes.first_chunk().unwrap()).unwrap().pid(), 0);
        joined.extend_from_slice(&bytes[tables..]);
        let (_, entries) = index(path);
        assert!(entries[0].random_access && entries[0].byte == tables as u64);
        for entry in entries.iter().filter(|entry| entry.random_access) {
            let at = entry.byte as usize;
            let packet = Packet::new(bytes[at..].first_chunk().unwrap()).unwrap();
            assert!(packet.is_random_access() && packet.starts_payload_unit());
            assert!(entry.pts.is_some());
        }
    }
    assert!(clip().ends_with(&joined), "the clip, but for what is before its first picture");
    assert!(joined.len() > clip().len() * 95 / 100);

    let began = events.iter().filter(|it| matches!(it, RecordingEvent::SegmentBegan { .. }));
    assert_eq!(began.count(), paths.len());
    let completed = events.iter().filter_map(|it| match it {
        RecordingEvent::SegmentCompleted { duration, bytes, .. } => Some((*duration, *bytes)),
        _ => None,
    });
    let (time, bytes) = completed.fold((Duration::ZERO, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    assert!(is_about(time, 12.0), "{time:?}");
    assert_eq!(bytes, paths.iter().map(|path| fs::metadata(path).unwrap().len()).sum::<u64>());
    assert_eq!(events.last(), Some(&RecordingEvent::Ended));
}

#[test]
fn a_recording_is_played_from_a_time_across_segments_at_its_pace() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), Duration::from_secs(3), 1, Duration::ZERO);
    let at = start() + Duration::from_millis(4_500);
    let mut playback = Playback::open(&archive(folder.path()), STREAM, at).unwrap();
    assert!(playback.start() <= at, "{}", playback.start());
    let offset = playback.start().since(start()).as_secs_f64();
    let (bytes, time) = play(&mut playback);
    assert!(is_about(time, 12.0 - offset), "{time:?} from {offset} s on");
    let tables = tables_of(&segments(folder.path())[0]);
    let clip = clip();
    let place = clip.len() - (bytes.len() - tables);
    assert_eq!(bytes[tables..], clip[place..], "no byte is missing or twice at a border");
    assert!(Packet::new(clip[place..].first_chunk().unwrap()).unwrap().is_random_access());

    let late = Playback::open(&archive(folder.path()), STREAM, start() + HOUR).unwrap_err();
    assert!(matches!(late, PlaybackError::Nothing { .. }), "{late}");
    assert!(Playback::open(&archive(folder.path()), "live/other", start()).is_err());
}

#[test]
fn a_gap_leaves_one_segment_with_a_mark_and_takes_no_time_when_played() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), HOUR, 2, Duration::from_secs(8));
    let [path] = &segments(folder.path())[..] else { panic!("one segment") };
    let (_, entries) = index(path);
    let marks: Vec<_> = entries.iter().filter(|entry| entry.discontinuity.is_some()).collect();
    let [mark] = marks[..] else { panic!("{marks:?}") };
    assert_eq!(mark.discontinuity, Some(Discontinuity::Gap));
    assert!(is_about(mark.time.since(start()), 20.0));

    let mut playback = Playback::open(&archive(folder.path()), STREAM, start()).unwrap();
    let (bytes, time) = play(&mut playback);
    assert_eq!(bytes.len() as u64, fs::metadata(path).unwrap().len());
    assert!(is_about(time, 24.0), "{time:?}");
    // A time within the gap begins at the picture before it.
    let within = start() + Duration::from_secs(15);
    let playback = Playback::open(&archive(folder.path()), STREAM, within).unwrap();
    assert!(playback.start().since(start()) < Duration::from_secs(12));
}

#[test]
fn an_excerpt_is_one_transport_stream_between_two_times() {
    let folder = tempfile::tempdir().unwrap();
    record(folder.path(), Duration::from_secs(3), 1, Duration::ZERO);
    let archive = archive(folder.path());
    let cut = |from: u64, to: u64| {
        let (from, to) = (Duration::from_secs(from), Duration::from_secs(to));
        let mut excerpt = Excerpt::new(&archive, STREAM, start() + from, start() + to).unwrap();
        let (len, mut bytes) = (excerpt.len(), Vec::new());
        excerpt.read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() as u64, len);
        bytes
    };
    let tables = tables_of(&segments(folder.path())[0]);
    let clip = clip();
    let whole = cut(0, 99);
    assert_eq!(whole[tables..], clip[clip.len() - (whole.len() - tables)..]);
    let part = cut(4, 8);
    let inside = &part[tables..];
    let at = clip.windows(inside.len()).step_by(PACKET_LEN).position(|it| it == inside);
    let at = at.expect("a part of the clip") * PACKET_LEN;
    let is_access =
        |at: usize| Packet::new(clip[at..].first_chunk().unwrap()).unwrap().is_random_access();
    assert!(is_access(at) && is_access(at + inside.len()));
    assert!(part.len() * 3 > clip.len(), "at least the 4 s of 12");
    assert!(Excerpt::new(&archive, STREAM, start() + HOUR, start() + 2 * HOUR).is_err());
}

#[test]
fn an_excerpt_goes_on_at_any_byte_and_tells_whether_it_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, _) = recorder(folder.path(), Duration::from_secs(4));
    Publisher::new().send_clip(&recorder);
    finish(&recorder);
    assert!(segments(folder.path()).len() > 1);
    let archive = archive(folder.path());
    let excerpt = |from: u64| {
        let from = start() + Duration::from_secs(from);
        Excerpt::new(&archive, STREAM, from, start() + HOUR).unwrap()
    };
    let (mut whole, mut bytes) = (excerpt(0), Vec::new());
    let first = whole.start().since(start());
    assert!(first < Duration::from_millis(100), "the first random access point is at {first:?}");
    whole.read_to_end(&mut bytes).unwrap();
    for skipped in [0, 1, bytes.len() / 2, bytes.len() - 1, bytes.len(), 2 * bytes.len()] {
        let (mut rest, mut found) = (excerpt(0), Vec::new());
        rest.skip(skipped as u64);
        rest.read_to_end(&mut found).unwrap();
        assert!(found == bytes[skipped.min(bytes.len())..], "{skipped}");
    }
    let mut twice = excerpt(0);
    let mut ten = [0; 10];
    twice.read_exact(&mut ten).unwrap();
    twice.skip(20);
    twice.read_exact(&mut ten).unwrap();
    assert_eq!(ten, bytes[30..40]);
    let later = excerpt(5);
    assert!(later.start() > start() && later.start() <= start() + Duration::from_secs(5));
    assert_eq!(excerpt(0).version(), excerpt(0).version());
    assert_ne!(excerpt(0).version(), later.version());
}

#[test]
fn a_running_recording_is_listed_and_played_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, _) = recorder(folder.path(), HOUR);
    let mut publisher = Publisher::new();
    publisher.send_clip(&recorder);
    let archive = archive(folder.path());
    let mut playback = poll("bytes on the disk", || {
        Playback::open(&archive, STREAM, start() + Duration::from_secs(1)).ok()
    });
    assert!(archive.recordings(STREAM).unwrap()[0].is_running());
    let mut played = 0;
    poll("the end so far", || {
        loop {
            match playback.next_part().unwrap() {
                PlayedPart::Message { payload, .. } => played += payload.len(),
                PlayedPart::Wait => return (played > 0).then_some(()),
                PlayedPart::End => panic!("it runs"),
            }
        }
    });
    publisher.send_clip(&recorder);
    finish(&recorder);
    let (rest, _) = play(&mut playback);
    let bytes = fs::metadata(&segments(folder.path())[0]).unwrap().len();
    assert_eq!((played + rest.len()) as u64, bytes);
    assert!(!archive.recordings(STREAM).unwrap()[0].is_running());
}

#[test]
fn bytes_that_are_no_transport_stream_are_played_by_the_index() {
    let folder = tempfile::tempdir().unwrap();
    let (recorder, _) = recorder(folder.path(), Duration::from_secs(4));
    for number in 0..100 {
        let arrived = Duration::from_millis(number * 100);
        recorder.push(RecordedMessage {
            number,
            payload: vec![number as u8; 1_000].into(),
            time: start() + arrived,
            arrived,
            discontinuity: None,
        });
    }
    finish(&recorder);
    assert_eq!(segments(folder.path()).len(), 3);
    let mut playback = Playback::open(&archive(folder.path()), STREAM, start()).unwrap();
    let (bytes, time) = play(&mut playback);
    assert_eq!(bytes, (0..100).flat_map(|number| [number; 1_000]).collect::<Vec<_>>());
    assert!(is_about(time, 9.9), "{time:?}");
}

#[test]
fn a_slow_disk_loses_messages_with_a_mark_and_never_delays_the_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (sender, events) = channel();
    let (disk, slow) = channel::<()>();
    let slow = std::sync::Mutex::new(slow);
    let settings = RecorderSettings {
        stream: STREAM.to_owned(),
        archive: archive(folder.path()),
        segment: HOUR,
        retention: Retention::default(),
    };
    let recorder = Recorder::start(settings, move |event| {
        // The thread that writes stands still, as at a disk that does not answer.
        if matches!(event, RecordingEvent::SegmentBegan { .. }) {
            let _ = slow.lock().unwrap().recv();
        }
        drop(sender.send(event));
    })
    .unwrap();
    let mut publisher = Publisher::new();
    let next = || events.recv_timeout(Duration::from_secs(60)).unwrap();
    let times = 3 * Recorder::QUEUE_BYTES / publisher.clip.len();
    (0..times).for_each(|_| publisher.send_clip(&recorder));
    assert_eq!(next(), RecordingEvent::FellBehind);
    let lost = recorder.report().lost_messages;
    assert!(lost > 0);
    drop(disk);
    assert!(matches!(next(), RecordingEvent::SegmentBegan { .. }));
    poll("the queue", || {
        publisher.send_clip(&recorder);
        events.try_iter().find(|it| matches!(it, RecordingEvent::CaughtUp { .. }))
    });
    publisher.send_clip(&recorder);
    finish(&recorder);
    assert!(recorder.report().lost_messages >= lost);
    let (_, entries) = index(&segments(folder.path())[0]);
    let overruns = entries.iter().filter(|it| it.discontinuity == Some(Discontinuity::Overrun));
    assert_eq!(overruns.count(), 1);
}

#[test]
fn a_folder_that_cannot_be_made_ends_the_recording_with_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("live"), "a file").unwrap();
    let (recorder, events) = recorder(folder.path(), HOUR);
    Publisher::new().send_clip(&recorder);
    assert!(recorder.wait(Duration::from_secs(60)));
    let events: Vec<_> = events.try_iter().collect();
    let [RecordingEvent::Failed { reason }, RecordingEvent::Ended] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(reason.contains(&folder.path().display().to_string()), "{reason}");
    assert_eq!(recorder.report().failure.as_ref(), Some(reason));
    assert_eq!(fs::read_to_string(folder.path().join("live")).unwrap(), "a file");
}

#[cfg(unix)]
#[test]
fn a_full_disk_ends_the_recording_with_whole_packets_and_an_alarm() {
    let folder = tempfile::tempdir().unwrap();
    // The child may write files of 600 blocks; then the system says that a file is too large.
    let limit = "ulimit -f 600; trap '' XFSZ; exec \"$0\" \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", limit]).arg(env::current_exe().unwrap());
    assert!(child(command, "fills", folder.path()).wait().unwrap().success());
    let [segment] = &archive(folder.path()).segments(STREAM).unwrap()[..] else {
        panic!("one segment");
    };
    assert!(!segment.is_open && segment.bytes > 0 && segment.bytes % PACKET_LEN as u64 == 0);
    let mut playback = Playback::open(&archive(folder.path()), STREAM, start()).unwrap();
    assert_eq!(play(&mut playback).0.len() as u64, segment.bytes);
}

#[cfg(unix)]
#[test]
fn a_killed_program_leaves_a_pair_that_is_played_closed_and_followed() {
    let folder = tempfile::tempdir().unwrap();
    let command = Command::new(env::current_exe().unwrap());
    let mut killed = child(command, "runs", folder.path());
    let archive = archive(folder.path());
    let path = poll("segments", || {
        let segments = archive.segments(STREAM).unwrap();
        segments.get(2).filter(|it| it.bytes > 300_000).map(|it| it.path.clone())
    });
    // Between two segments none is open.
    poll("an open segment", || {
        archive.segments(STREAM).unwrap().last().unwrap().is_open.then_some(())
    });
    killed.kill().unwrap();
    killed.wait().unwrap();

    let left = archive.segments(STREAM).unwrap();
    assert!(left.iter().all(|it| !it.is_open));
    let (bytes, _) = play(&mut Playback::open(&archive, STREAM, start()).unwrap());
    assert!(bytes.len() > 600_000);
    for segment in &left {
        let (_, entries) = index(&segment.path);
        assert!(entries.iter().all(|entry| entry.byte <= segment.bytes), "{path:?}");
        assert!(entries.iter().any(|entry| entry.random_access));
    }

    // The next recording closes what was left, and begins a segment of its own.
    let (recorder, _) = recorder(folder.path(), HOUR);
    let mut publisher = Publisher::new();
    publisher.now = HOUR;
    publisher.send_clip(&recorder);
    finish(&recorder);
    let last = &left.last().unwrap().path;
    let text = fs::read_to_string(last.with_extension("jsonl")).unwrap();
    assert!(text.ends_with("\"recovered\":true}\n"), "{text}");
    assert_eq!(fs::metadata(last).unwrap().len() % PACKET_LEN as u64, 0);
    assert_eq!(archive.segments(STREAM).unwrap().len(), left.len() + 1);
    assert_eq!(archive.recordings(STREAM).unwrap().len(), 2);
}

/// A process of this program that plays this role, in [`child_of_a_test`]. It ends when its
/// standard input does, so that it does not outlive a test that failed.
fn child(mut command: Command, role: &str, folder: &Path) -> Child {
    command.args(["--exact", "child_of_a_test", "--nocapture"]).stdin(Stdio::piped());
    command.env("RECORDING_ROLE", role).env("RECORDING_FOLDER", folder);
    command.spawn().unwrap()
}

/// Does nothing but in a process that another test started.
#[test]
fn child_of_a_test() {
    let Ok(role) = env::var("RECORDING_ROLE") else { return };
    let folder = PathBuf::from(env::var("RECORDING_FOLDER").unwrap());
    let mut publisher = Publisher::new();
    if role == "fills" {
        let (recorder, events) = recorder(&folder, HOUR);
        for _ in 0..10 {
            publisher.send_clip(&recorder);
        }
        assert!(recorder.wait(Duration::from_secs(60)), "the recording ends by itself");
        publisher.send_clip(&recorder);
        let failed = events.try_iter().find(|it| matches!(it, RecordingEvent::Failed { .. }));
        let Some(RecordingEvent::Failed { reason }) = failed else { panic!("no alarm") };
        assert!(reason.contains("File too large") && !reason.contains("os error"), "{reason}");
        return;
    }
    spawn(|| {
        let _ended = io::copy(&mut io::stdin(), &mut io::sink());
        exit(1);
    });
    let (recorder, _) = recorder(&folder, Duration::from_secs(6));
    loop {
        publisher.send_clip(&recorder);
        sleep(Duration::from_millis(100));
    }
}

fn poll<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    for _ in 0..3_000 {
        if let Some(found) = ready() {
            return found;
        }
        sleep(Duration::from_millis(20));
    }
    panic!("{what}: not within a minute");
}
