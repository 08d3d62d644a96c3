//! A recording that runs: the queue, and the thread that writes.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use punctual_units::{UtcTime, without_os_error};

use crate::archive::Archive;
use crate::cutter::{Cutter, RecordedAccess, RecordedMessage, WriteStep};
use crate::event::RecordingEvent;
use crate::index::Discontinuity;
use crate::retention::Retention;
use crate::segment_file::{SegmentFile, SegmentStart};

/// The settings of a recording.
#[derive(Clone, Debug)]
pub struct RecorderSettings {
    /// The name of the stream.
    pub stream: String,
    /// The place of its segments.
    pub archive: Archive,
    /// The time after which a new segment begins, at the next random access point.
    pub segment: Duration,
    /// The limits of the stream's recordings, which are checked when a segment begins and once a
    /// minute.
    pub retention: Retention,
}

/// A stream that is recorded, by a thread of its own.
///
/// No call waits for the disk. At most [`QUEUE_BYTES`](Self::QUEUE_BYTES) wait for it, besides the
/// batch that is being written; beyond that messages are left out until half of them are written,
/// and the recording has a discontinuity there. If the disk is full or fails, the recording ends
/// with [`RecordingEvent::Failed`], and later messages are ignored.
///
/// Bytes are handed to the system at least twice a second, and to the disk every ten seconds and at
/// the end of each segment: a crash of the program costs less than a second of the recording, one
/// of the system ten.
///
/// A recorder that is dropped stops.
pub struct Recorder {
    shared: Arc<RecorderShared>,
}

/// The state of a recording.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct RecorderReport {
    /// The file of the segment that is written.
    pub path: Option<PathBuf>,
    /// Bytes that were written, in all segments.
    pub bytes: u64,
    /// Messages that were left out because the disk was too slow.
    pub lost_messages: u64,
    /// Whether the recording has ended, because it was stopped or failed.
    pub has_ended: bool,
    /// The reason why it failed.
    pub failure: Option<String>,
}

struct RecorderShared {
    queue: Mutex<RecorderQueue>,
    changed: Condvar,
    tell: Box<dyn Fn(RecordingEvent) + Send + Sync>,
}

#[derive(Default)]
struct RecorderQueue {
    items: VecDeque<RecorderItem>,
    bytes: usize,
    /// Messages that were left out since the disk fell behind.
    lost: u64,
    is_behind: bool,
    is_stopped: bool,
    report: RecorderReport,
}

enum RecorderItem {
    Message(RecordedMessage),
    Access(RecordedAccess),
}

impl Recorder {
    /// The most bytes that wait for the disk: five seconds at 27 Mb/s.
    pub const QUEUE_BYTES: usize = 16 << 20;
    /// The most messages that wait for the disk.
    pub const QUEUE_MESSAGES: usize = 1 << 16;

    /// Starts a recording. Segments that a crash left open are closed first. `tell` gets the
    /// events, and must not wait for anything.
    ///
    /// # Errors
    ///
    /// The system gives no thread.
    pub fn start(
        settings: RecorderSettings,
        tell: impl Fn(RecordingEvent) + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(RecorderShared {
            queue: Mutex::default(),
            changed: Condvar::new(),
            tell: Box::new(tell),
        });
        let writer = RecorderWriter::new(Arc::clone(&shared), settings);
        thread::Builder::new().name("recording".to_owned()).spawn(|| writer.run())?;
        Ok(Self { shared })
    }

    /// Records a message.
    pub fn push(&self, mut message: RecordedMessage) {
        let mut queue = self.shared.lock();
        if queue.is_stopped || queue.report.has_ended {
            return;
        }
        let most = if queue.is_behind { Self::QUEUE_BYTES / 2 } else { Self::QUEUE_BYTES };
        if queue.bytes + message.payload.len() > most || queue.items.len() >= Self::QUEUE_MESSAGES {
            queue.lost += 1;
            queue.report.lost_messages += 1;
            if !std::mem::replace(&mut queue.is_behind, true) {
                drop(queue);
                (self.shared.tell)(RecordingEvent::FellBehind);
            }
            return;
        }
        let caught_up = std::mem::take(&mut queue.is_behind);
        let lost = std::mem::take(&mut queue.lost);
        if lost > 0 {
            message.discontinuity.get_or_insert(Discontinuity::Overrun);
        }
        queue.bytes += message.payload.len();
        queue.items.push_back(RecorderItem::Message(message));
        let is_worth_it = queue.bytes >= BATCH;
        drop(queue);
        // Woken for each message, the thread would cost as much as the stream.
        if is_worth_it {
            self.shared.changed.notify_all();
        }
        if caught_up {
            (self.shared.tell)(RecordingEvent::CaughtUp { lost });
        }
    }

    /// Tells that a random access point begins in a message that was pushed before.
    pub fn mark(&self, access: RecordedAccess) {
        let mut queue = self.shared.lock();
        let has_ended = queue.is_stopped || queue.report.has_ended;
        if !has_ended && queue.items.len() < Self::QUEUE_MESSAGES {
            queue.items.push_back(RecorderItem::Access(access));
        }
    }

    /// Ends the recording, once all that was pushed is written. Its last event is
    /// [`RecordingEvent::Ended`].
    pub fn stop(&self) {
        self.shared.lock().is_stopped = true;
        self.shared.changed.notify_all();
    }

    /// Waits until the recording has ended and all its events are told, for this time at the most;
    /// tells whether it has.
    pub fn wait(&self, most: Duration) -> bool {
        let queue = self.shared.lock();
        let waited = self.shared.changed.wait_timeout_while(queue, most, |it| !it.report.has_ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.report.has_ended
    }

    /// Whether the recording has ended, because it was stopped or failed.
    pub fn has_ended(&self) -> bool {
        self.shared.lock().report.has_ended
    }

    /// The state of the recording.
    pub fn report(&self) -> RecorderReport {
        self.shared.lock().report.clone()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.stop();
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("report", &self.report()).finish_non_exhaustive()
    }
}

impl RecorderShared {
    fn lock(&self) -> MutexGuard<'_, RecorderQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread's side.
struct RecorderWriter {
    shared: Arc<RecorderShared>,
    settings: RecorderSettings,
    cutter: Cutter,
    steps: Vec<WriteStep>,
    segment: Option<SegmentFile>,
    recording: Option<UtcTime>,
    /// The time of the day, and that of the clock that nobody sets, of the latest message.
    latest: (UtcTime, Duration),
    cleaned: Option<Duration>,
    synced: Duration,
    bytes: u64,
}

impl RecorderWriter {
    fn new(shared: Arc<RecorderShared>, settings: RecorderSettings) -> Self {
        Self {
            shared,
            cutter: Cutter::new(settings.segment),
            settings,
            steps: Vec::new(),
            segment: None,
            recording: None,
            latest: (UtcTime::default(), Duration::ZERO),
            cleaned: None,
            synced: Duration::ZERO,
            bytes: 0,
        }
    }

    fn run(mut self) {
        if let Err(error) = self.close_unfinished().and_then(|()| self.record()) {
            let place = match &self.segment {
                Some(segment) => segment.path().display().to_string(),
                None => self.settings.archive.names().root().display().to_string(),
            };
            let reason = format!("{place}: {}", without_os_error(&error.to_string()));
            self.fail(reason);
        }
        // Before anybody who waits for the end goes on.
        (self.shared.tell)(RecordingEvent::Ended);
        let mut queue = self.shared.lock();
        queue.report.has_ended = true;
        queue.report.path = None;
        queue.report.bytes = self.bytes;
        queue.items = VecDeque::new();
        queue.bytes = 0;
        drop(queue);
        self.shared.changed.notify_all();
    }

    fn close_unfinished(&self) -> io::Result<()> {
        let RecorderSettings { archive, stream, .. } = &self.settings;
        for path in archive.close_unfinished(stream)? {
            tracing::info!("{}: closed, as the program had ended without that", path.display());
        }
        Ok(())
    }

    fn record(&mut self) -> io::Result<()> {
        loop {
            let Some(items) = self.take() else { break };
            for item in items {
                match item {
                    RecorderItem::Message(message) => {
                        self.latest = (message.time, message.arrived);
                        self.cutter.push(message, &mut self.steps);
                        self.follow()?;
                    }
                    RecorderItem::Access(access) => self.cutter.mark(access),
                }
            }
            self.keep_times()?;
        }
        self.cutter.finish(&mut self.steps);
        self.follow()
    }

    /// The items that wait, once they are enough or half a second old; `None` at the end.
    fn take(&self) -> Option<VecDeque<RecorderItem>> {
        let queue = self.shared.lock();
        let is_early = |queue: &mut RecorderQueue| queue.bytes < BATCH && !queue.is_stopped;
        let waited = self.shared.changed.wait_timeout_while(queue, BATCH_TIME, is_early);
        let mut queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        if queue.items.is_empty() && queue.is_stopped {
            return None;
        }
        queue.bytes = 0;
        Some(std::mem::take(&mut queue.items))
    }

    /// Carries out the steps that the cutter has decided.
    fn follow(&mut self) -> io::Result<()> {
        for step in std::mem::take(&mut self.steps) {
            match step {
                WriteStep::Begin { time, continues, tables } => {
                    self.begin(time, continues, &tables)?;
                }
                WriteStep::Write(bytes) => self.write(&bytes)?,
                WriteStep::Note(entry) => {
                    if let Some(segment) = &mut self.segment {
                        segment.note(&entry);
                    }
                }
                WriteStep::End(time) => self.end(time)?,
            }
        }
        Ok(())
    }

    fn begin(&mut self, time: UtcTime, continues: bool, tables: &Bytes) -> io::Result<()> {
        let RecorderSettings { stream, archive, .. } = &self.settings;
        let recording = self.recording;
        let start = SegmentStart { stream, recording, time, continues, tables };
        let segment = SegmentFile::create(archive.names(), &start)?;
        self.recording.get_or_insert(segment.time());
        let path = segment.path().to_owned();
        self.shared.lock().report.path = Some(path.clone());
        self.segment = Some(segment);
        (self.shared.tell)(RecordingEvent::SegmentBegan { path });
        self.clean();
        Ok(())
    }

    fn write(&mut self, bytes: &Bytes) -> io::Result<()> {
        let Some(segment) = &mut self.segment else { return Ok(()) };
        segment.write(bytes);
        self.bytes += bytes.len() as u64;
        if segment.is_full() { segment.flush() } else { Ok(()) }
    }

    fn end(&mut self, time: UtcTime) -> io::Result<()> {
        let Some(mut segment) = self.segment.take() else { return Ok(()) };
        if let Err(error) = segment.flush() {
            self.segment = Some(segment);
            return Err(error);
        }
        let (path, duration) = (segment.path().to_owned(), time.since(segment.time()));
        let bytes = segment.complete(time)?;
        (self.shared.tell)(RecordingEvent::SegmentCompleted { path, duration, bytes });
        Ok(())
    }

    /// Flushes, and syncs and cleans when it is time, by the times of arrival.
    fn keep_times(&mut self) -> io::Result<()> {
        let now = self.latest.1;
        if let Some(segment) = &mut self.segment {
            segment.flush()?;
        }
        self.shared.lock().report.bytes = self.bytes;
        if now.saturating_sub(self.synced) >= SYNC_PERIOD {
            self.synced = now;
            if let Some(segment) = &mut self.segment {
                segment.sync()?;
            }
        }
        if self.cleaned.is_some_and(|cleaned| now.saturating_sub(cleaned) >= CLEAN_PERIOD) {
            self.clean();
        }
        Ok(())
    }

    /// Removes what the retention does not keep. That this fails ends no recording.
    fn clean(&mut self) {
        self.cleaned = Some(self.latest.1);
        let RecorderSettings { stream, archive, retention, .. } = &self.settings;
        match archive.clean(stream, retention, self.latest.0) {
            Ok(paths) if paths.is_empty() => {}
            Ok(paths) => (self.shared.tell)(RecordingEvent::Removed { paths }),
            Err(error) => tracing::warn!("{stream}: {error}; old segments are not removed"),
        }
    }

    fn fail(&mut self, reason: String) {
        if let Some(segment) = self.segment.take() {
            let (path, start) = (segment.path().to_owned(), segment.time());
            let duration = self.latest.0.since(start);
            let bytes = segment.give_up();
            (self.shared.tell)(RecordingEvent::SegmentCompleted { path, duration, bytes });
        }
        self.shared.lock().report.failure = Some(reason.clone());
        (self.shared.tell)(RecordingEvent::Failed { reason });
    }
}

/// The bytes for which the thread wakes up.
const BATCH: usize = 256 << 10;
/// The time after which it wakes up for fewer.
const BATCH_TIME: Duration = Duration::from_millis(500);
/// The time between two syncs.
const SYNC_PERIOD: Duration = Duration::from_secs(10);
/// The time between two checks of the retention.
const CLEAN_PERIOD: Duration = Duration::from_secs(60);
