//! The parts of a stream beside its callers: the source that is pulled, destinations, the
//! recording.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use punctual_ends::Stop;
use punctual_relay_access::StreamName;
use punctual_relay_config::StreamSettings;
use punctual_relay_http::report::{ForwardReport, RecordingReport};
use punctual_relay_http::{Done, Fault};

use crate::forward::StreamForward;
use crate::hub::{Hub, StreamFollower};
use crate::live_stream::LiveStream;
use crate::pull::{pull, pull_on_demand};
use crate::recording::Recording;

/// The parts of all streams beside their callers, by the stream's name.
#[derive(Default)]
pub(crate) struct Attached {
    streams: Mutex<BTreeMap<Arc<str>, StreamParts>>,
    /// Tells each pull its end.
    pulls: Arc<Mutex<BTreeMap<Arc<str>, Stop>>>,
}

/// The parts of one stream that has a source.
struct StreamParts {
    forwards: Vec<Arc<StreamForward>>,
    recording: Arc<Recording>,
}

impl Attached {
    /// Ends the pull of a stream.
    pub(crate) fn end_pull(&self, name: &str) {
        if let Some(stop) = lock(&self.pulls).get(name) {
            stop.tell();
        }
    }

    /// The destinations and the recording of a stream, for the API.
    pub(crate) fn reports(
        &self,
        hub: &Hub,
        name: &str,
    ) -> (Vec<ForwardReport>, Option<RecordingReport>) {
        let streams = lock(&self.streams);
        let Some(parts) = streams.get(name) else { return (Vec::new(), None) };
        let forwards = parts.forwards.iter().map(|forward| forward.report(hub)).collect();
        (forwards, parts.recording.report())
    }

    /// Recordings that failed, each in a sentence.
    pub(crate) fn failed_recordings(&self) -> Vec<String> {
        let streams = lock(&self.streams);
        let failed = |(name, parts): (&Arc<str>, &StreamParts)| {
            let why = parts.recording.failure()?;
            Some(format!("the recording of `{name}` failed: {why}"))
        };
        streams.iter().filter_map(failed).collect()
    }

    /// Starts or stops a destination.
    ///
    /// # Errors
    ///
    /// There is no such destination.
    pub(crate) fn forward(
        &self,
        hub: &Arc<Hub>,
        stream: &Arc<LiveStream>,
        id: &str,
        start: bool,
    ) -> Done {
        let streams = lock(&self.streams);
        let forwards = streams.get(stream.name()).map_or(&[][..], |parts| &parts.forwards);
        let Some(forward) = forwards.iter().find(|forward| forward.id() == id) else {
            return Err(Fault::NotFound(format!("`{}` has no destination `{id}`", stream.name())));
        };
        match start {
            true => forward.start(hub, stream),
            false => forward.stop(),
        }
        Ok(())
    }

    /// Starts or stops the recording of a stream.
    ///
    /// # Errors
    ///
    /// The stream has no source.
    pub(crate) fn record(&self, hub: &Arc<Hub>, name: &str, start: bool) -> Done {
        let streams = lock(&self.streams);
        let Some(parts) = streams.get(name) else {
            return Err(Fault::Conflict(format!("`{name}` has no source")));
        };
        match start {
            true => parts.recording.start(hub),
            false => parts.recording.stop(),
        }
        Ok(())
    }
}

impl StreamFollower for Attached {
    fn begin(&self, hub: &Arc<Hub>, stream: &Arc<LiveStream>, settings: &StreamSettings) -> bool {
        let mut streams = lock(&self.streams);
        if streams.contains_key(stream.name()) {
            return false;
        }
        let retry = settings.source.retry;
        let forward =
            |(place, forward)| StreamForward::new(forward, retry, place + 1).map(Arc::new);
        let forwards: Vec<_> = settings.forward.iter().enumerate().filter_map(forward).collect();
        let recording = Arc::new(Recording::new(Arc::clone(stream), &settings.record));
        let parts = StreamParts { forwards: forwards.clone(), recording: Arc::clone(&recording) };
        streams.insert(Arc::clone(stream.name()), parts);
        drop(streams);
        for forward in &forwards {
            forward.start(hub, stream);
        }
        if settings.record.enabled {
            recording.start(hub);
        }
        true
    }

    fn end(&self, name: &str) {
        if let Some(parts) = lock(&self.streams).remove(name) {
            parts.forwards.iter().for_each(|forward| forward.stop());
            parts.recording.stop();
        }
    }

    fn pull(&self, hub: &Arc<Hub>, name: &StreamName, settings: &StreamSettings) {
        let mut pulls = lock(&self.pulls);
        let source = settings.source.clone();
        if source.uri.is_none() || pulls.contains_key(name.as_str()) {
            return;
        }
        let stop = Stop::default();
        pulls.insert(name.shared(), stop.clone());
        let (hub, name, running) = (Arc::clone(hub), name.clone(), Arc::clone(&self.pulls));
        tokio::spawn(async move {
            if source.on_demand {
                pull_on_demand(Arc::clone(&hub), name.clone(), source, stop).await;
            } else {
                pull(Arc::clone(&hub), name.clone(), source, stop).await;
            }
            lock(&running).remove(name.as_str());
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
