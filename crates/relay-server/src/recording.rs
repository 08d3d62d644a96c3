//! The recording of a stream.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use punctual_mpegts::{Inspector, PACKET_LEN, Packet};
use punctual_relay::{Message, Start, Viewer, ViewerId};
use punctual_relay_config::RecordSettings;
use punctual_relay_hooks::HookSegment;
use punctual_relay_http::report::{EventKind, RecordingReport, RecordingState};
use punctual_relay_recording::{
    Archive, Discontinuity, RecordedAccess, RecordedMessage, Recorder, RecorderSettings,
    RecordingEvent, Retention, SegmentNames,
};
use punctual_units::UtcTime;

use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::outlet::Outlet;
use crate::wall;

/// The recording of one stream, which may run or not.
pub(crate) struct Recording {
    stream: Arc<LiveStream>,
    settings: RecordSettings,
    run: Mutex<Option<RecordingRun>>,
}

/// A recording that was started.
struct RecordingRun {
    recorder: Arc<Recorder>,
    viewer: ViewerId,
    started_at: SystemTime,
    ended_at: Option<SystemTime>,
    segments: Arc<Mutex<u32>>,
}

impl Recording {
    pub(crate) fn new(stream: Arc<LiveStream>, settings: &RecordSettings) -> Self {
        Self { stream, settings: settings.clone(), run: Mutex::new(None) }
    }

    /// Starts it, unless it runs.
    pub(crate) fn start(&self, hub: &Arc<Hub>) {
        let mut run = self.lock();
        if run.as_ref().is_some_and(RecordingRun::is_running) {
            return;
        }
        match self.begin(hub) {
            Ok(begun) => *run = Some(begun),
            Err(why) => {
                let text = format!("`{}` cannot be recorded: {why}", self.stream.name());
                hub.tell(EventKind::RecordFailed, Some(self.stream.name()), None, text);
            }
        }
    }

    fn begin(&self, hub: &Arc<Hub>) -> Result<RecordingRun, String> {
        let archive = archive(&self.settings)?;
        let most = |number: u64| (number > 0).then_some(number);
        let age = self.settings.delete_after;
        let settings = RecorderSettings {
            stream: self.stream.name().to_string(),
            archive,
            segment: self.settings.segment,
            retention: Retention {
                delete_after: (!age.is_zero()).then_some(age),
                max_bytes: most(self.settings.max_bytes),
            },
        };
        let (name, teller) = (Arc::clone(self.stream.name()), Arc::clone(hub));
        let segments = Arc::new(Mutex::new(0));
        let counted = Arc::clone(&segments);
        let recorder = Recorder::start(settings, move |event| {
            if matches!(event, RecordingEvent::SegmentBegan { .. }) {
                *counted.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            }
            tell(&teller, &name, &event);
        });
        let recorder = Arc::new(recorder.map_err(|error| error.to_string())?);
        let viewer = hub.internal_viewer();
        let outlet =
            RecorderOutlet { recorder: Arc::clone(&recorder), inspector: Inspector::default() };
        let as_received = Viewer { user: None, start: Some(Start::Live), is_internal: true };
        let turn = self.stream.view(viewer, as_received, Box::new(outlet));
        hub.settle(&self.stream, turn.map_err(|error| error.to_string())?);
        let (started_at, ended_at) = (wall::now(), None);
        Ok(RecordingRun { recorder, viewer, started_at, ended_at, segments })
    }

    /// Stops it.
    pub(crate) fn stop(&self) {
        if let Some(run) = &mut *self.lock()
            && run.ended_at.is_none()
        {
            self.stream.unview(run.viewer);
            run.recorder.stop();
            run.ended_at = Some(wall::now());
        }
    }

    /// Why it failed, if it did.
    pub(crate) fn failure(&self) -> Option<String> {
        self.lock().as_ref()?.recorder.report().failure
    }

    /// The running or latest recording, for the API.
    pub(crate) fn report(&self) -> Option<RecordingReport> {
        let run = self.lock();
        let run = run.as_ref()?;
        let report = run.recorder.report();
        let file = report.path.unwrap_or_default();
        Some(RecordingReport {
            stream: self.stream.name().to_string(),
            state: match (&report.failure, run.is_running()) {
                (Some(_), _) => RecordingState::Failed,
                (None, true) => RecordingState::Running,
                (None, false) => RecordingState::Ended,
            },
            started_at: run.started_at.into(),
            ended_at: run.ended_at.map(Into::into),
            segments: *run.segments.lock().unwrap_or_else(PoisonError::into_inner),
            bytes: report.bytes,
            free_bytes: free_bytes(&file),
            file: file.display().to_string(),
            errors: report.failure.is_some().into(),
            last_error: report.failure,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<RecordingRun>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordingRun {
    fn is_running(&self) -> bool {
        self.ended_at.is_none() && !self.recorder.has_ended()
    }
}

/// All recordings on the disk of a stream, or of all streams whose recordings the configuration
/// knows, newest first.
pub(crate) async fn all(hub: &Hub, stream: Option<&str>) -> Vec<RecordingReport> {
    let configuration = hub.configuration();
    let sections = configuration.streams.sections().iter().map(|it| &it.settings.record);
    let mut archives: Vec<RecordSettings> = Vec::new();
    for settings in std::iter::once(&configuration.streams.defaults().record).chain(sections) {
        if archives.iter().all(|known| known.path != settings.path) {
            archives.push(settings.clone());
        }
    }
    let wanted = stream.map(str::to_owned);
    let found = tokio::task::spawn_blocking(move || {
        archives.iter().flat_map(|it| on_disk(it, wanted.as_deref())).collect::<Vec<_>>()
    });
    let mut found = found.await.unwrap_or_default();
    found.sort_by_key(|recording| std::cmp::Reverse(recording.started_at));
    found
}

fn on_disk(settings: &RecordSettings, wanted: Option<&str>) -> Vec<RecordingReport> {
    let Ok(archive) = archive(settings) else { return Vec::new() };
    let streams = match wanted {
        Some(stream) => vec![stream.to_owned()],
        None => archive.streams().unwrap_or_default(),
    };
    let recordings = streams.iter().flat_map(|it| archive.recordings(it).unwrap_or_default());
    recordings
        .map(|it| {
            let file = it.segments.last().map(|segment| segment.path.clone()).unwrap_or_default();
            let is_running = it.is_running();
            RecordingReport {
                state: if is_running { RecordingState::Running } else { RecordingState::Ended },
                started_at: system_time(it.start()).into(),
                ended_at: (!is_running).then(|| system_time(it.end()).into()),
                segments: u32::try_from(it.segments.len()).unwrap_or(u32::MAX),
                bytes: it.bytes(),
                free_bytes: free_bytes(&file),
                file: file.display().to_string(),
                errors: 0,
                last_error: None,
                stream: it.stream,
            }
        })
        .collect()
}

/// A time of a recording as the system has times.
pub(crate) fn system_time(time: UtcTime) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(time.micros())
}

/// The archive of these settings.
///
/// # Errors
///
/// The pattern of names is invalid.
pub(crate) fn archive(settings: &RecordSettings) -> Result<Archive, String> {
    let names: SegmentNames =
        settings.path.to_string().parse().map_err(|error| format!("{error}"))?;
    Ok(Archive::new(names))
}

fn tell(hub: &Hub, name: &str, event: &RecordingEvent) {
    let segment = |path: &Path, duration, bytes| {
        let path = path.to_owned();
        HookSegment { path, duration, bytes }
    };
    match event {
        RecordingEvent::SegmentBegan { path } => {
            let text = format!("`{name}` is recorded to {}", path.display());
            let segment = segment(path, None, None);
            hub.tell_segment(EventKind::RecordSegmentCreate, name, text, segment);
        }
        RecordingEvent::SegmentCompleted { path, duration, bytes } => {
            let text = format!("the segment {} is complete", path.display());
            let segment = segment(path, Some(*duration), Some(*bytes));
            hub.tell_segment(EventKind::RecordSegmentComplete, name, text, segment);
        }
        RecordingEvent::FellBehind => {
            let text = format!("the disk is too slow for the recording of `{name}`");
            hub.tell(EventKind::RecordFailed, Some(name), None, text);
        }
        RecordingEvent::Failed { reason } => {
            let text = format!("the recording of `{name}` has ended: {reason}");
            hub.tell(EventKind::RecordFailed, Some(name), None, text);
        }
        _ => {}
    }
}

/// The bytes that are free where a file is.
fn free_bytes(file: &Path) -> Option<u64> {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail * space.f_frsize)
}

/// Hands a stream to its recorder, with the random access points.
struct RecorderOutlet {
    recorder: Arc<Recorder>,
    inspector: Inspector,
}

impl Outlet for RecorderOutlet {
    fn take(&mut self, message: &Message) -> bool {
        let number = self.inspector.packets();
        let arrived = Duration::from_nanos(message.origin.as_nanos());
        let is_transport_stream = message.payload.len().is_multiple_of(PACKET_LEN);
        self.recorder.push(RecordedMessage {
            number,
            payload: message.payload.clone(),
            time: wall::now().into(),
            arrived,
            discontinuity: message.is_break.then_some(Discontinuity::Source),
        });
        if is_transport_stream {
            self.mark(&message.payload, arrived);
        }
        true
    }

    fn flush(&mut self) -> bool {
        !self.recorder.has_ended()
    }

    fn link(&self) -> Option<punctual_relay::ViewerLink> {
        None
    }
}

impl RecorderOutlet {
    fn mark(&mut self, payload: &Bytes, arrived: Duration) {
        for packet in payload.as_chunks::<PACKET_LEN>().0 {
            let Ok(packet) = Packet::new(packet) else { continue };
            if let Some(access) = self.inspector.push(packet, arrived) {
                let tables = self.inspector.tables();
                let (packet, pts) = (access.packet, access.pts);
                self.recorder.mark(RecordedAccess { packet, pts, tables });
            }
        }
    }
}
