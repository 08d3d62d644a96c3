//! Destinations to which the relay sends a stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use punctual::{Outgoing, SendOptions};
use punctual_ends::{Connection, Failure, Opener, Role, SrtEnd, Stop};
use punctual_relay::{Message, Viewer, ViewerId};
use punctual_relay_config::{ForwardSettings, RetryRange};
use punctual_relay_http::report::{ConnectionRole, EventKind, ForwardReport};
use punctual_uri::Uri;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use crate::connections::NewConnection;
use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::outlet::{ChannelOutlet, SrtOutlet};
use crate::pull::{latency_wish_ms, protocol};
use crate::settings::Backoff;
use crate::wall;

/// A destination, with what became of it.
pub(crate) struct StreamForward {
    id: String,
    uri: Uri,
    shown: String,
    retry: RetryRange,
    state: Mutex<ForwardState>,
}

#[derive(Default)]
struct ForwardState {
    /// Told when an operator stops it; `None` while it is not wanted.
    run: Option<Stop>,
    is_up: bool,
    since: Option<SystemTime>,
    last_error: Option<String>,
    connection: Option<u64>,
    bytes_before: u64,
}

impl StreamForward {
    /// A destination with these settings, the `number`th of its stream; `None` without a URI.
    pub(crate) fn new(
        settings: &ForwardSettings,
        retry: RetryRange,
        number: usize,
    ) -> Option<Self> {
        let to = settings.to.as_ref()?;
        let id = match settings.name.as_str() {
            "" => number.to_string(),
            name => name.to_owned(),
        };
        let (uri, shown) = (to.parse().ok()?, to.shown().to_owned());
        Some(Self { id, uri, shown, retry, state: Mutex::default() })
    }

    /// Its name in the API.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Sends the stream to it until `stop`, or until an operator stops it.
    pub(crate) fn start(self: &Arc<Self>, hub: &Arc<Hub>, stream: &Arc<LiveStream>) {
        let run = Stop::default();
        if self.state().run.replace(run.clone()).is_some_and(|old| !old.is_told()) {
            self.state().run = Some(run.clone());
        }
        let (forward, hub, stream) = (Arc::clone(self), Arc::clone(hub), Arc::clone(stream));
        tokio::spawn(async move { forward.run(&hub, &stream, &run).await });
    }

    /// Stops it.
    pub(crate) fn stop(&self) {
        if let Some(run) = self.state().run.take() {
            run.tell();
        }
    }

    /// The state for the API.
    pub(crate) fn report(&self, hub: &Hub) -> ForwardReport {
        let state = self.state();
        let connection = state.connection.and_then(|id| hub.connections.get(id));
        let bytes = connection.as_ref().map_or(0, |it| it.traffic.bytes());
        let rtt = connection.as_ref().and_then(|it| it.statistics());
        ForwardReport {
            id: self.id.clone(),
            to: self.shown.clone(),
            wanted: state.run.is_some(),
            up: state.is_up,
            since: state.since.map(Into::into),
            bytes: state.bytes_before + bytes,
            rtt_ms: rtt.map(|(total, _)| total.rtt.as_secs_f64() * 1e3),
            last_error: state.last_error.clone(),
            connection: state.connection.map(|id| hub.api_id(id)),
        }
    }

    async fn run(&self, hub: &Arc<Hub>, stream: &Arc<LiveStream>, run: &Stop) {
        let mut backoff = Backoff::new(self.retry);
        while !run.is_told() {
            let begun = Instant::now();
            let ended = self.send(hub, stream, run).await;
            backoff.was_open(begun.elapsed());
            if run.is_told() {
                break;
            }
            let why = ended.err().map_or("the destination ended".to_owned(), |it| it.to_string());
            let pause = backoff.pause();
            let text = format!(
                "`{}` is not sent to {}: {why}; again in {:.1} s",
                stream.name(),
                self.shown,
                pause.as_secs_f64()
            );
            self.state().last_error = Some(why);
            hub.tell(EventKind::ForwardDown, Some(stream.name()), None, text);
            run.or(tokio::time::sleep(pause)).await;
        }
    }

    /// Opens the destination once, and sends the stream to it.
    async fn send(&self, hub: &Hub, stream: &LiveStream, run: &Stop) -> Result<(), Failure> {
        let opener = Opener::new(&self.uri, Role::Destination, MESSAGE);
        let mut opener = opener.with_stop(run.clone());
        let Some(opened) = run.or(opener.open()).await else { return Ok(()) };
        let connection = opened?;
        let known = hub.connected(self.new_connection(stream, &connection));
        self.is_up(Some(known.id));
        let text = format!("`{}` is sent to {}", stream.name(), self.shown);
        hub.tell(EventKind::ForwardUp, Some(stream.name()), Some(known.id), text);
        let id = ViewerId(known.id);
        let viewer = Viewer { is_internal: true, ..Viewer::default() };
        let sent = match SrtOutlet::of(&connection) {
            Some((outlet, dropped)) => {
                let added = stream.view(id, viewer, Box::new(outlet));
                drop(added);
                tokio::select! {
                    _ = dropped => Ok(()),
                    () = connection.peer_gone() => Ok(()),
                    () = known.stop.told() => Ok(()),
                    () = run.told() => Ok(()),
                }
            }
            None => {
                let (outlet, messages) = ChannelOutlet::with_room(ROOM);
                let added = stream.view(id, viewer, Box::new(outlet));
                drop(added);
                tokio::select! {
                    sent = write(connection, messages) => sent,
                    () = known.stop.told() => Ok(()),
                    () = run.told() => Ok(()),
                }
            }
        };
        stream.unview(id);
        self.state().bytes_before += known.traffic.bytes();
        self.is_up(None);
        hub.disconnected(&known);
        sent
    }

    fn is_up(&self, connection: Option<u64>) {
        let mut state = self.state();
        state.is_up = connection.is_some();
        state.connection = connection;
        state.since = Some(wall::now());
    }

    fn new_connection(&self, stream: &LiveStream, connection: &Connection) -> NewConnection {
        NewConnection {
            role: ConnectionRole::Forward,
            protocol: protocol(&self.uri),
            stream: Arc::clone(stream.name()),
            user: None,
            address: connection.socket.as_ref().map_or_else(|| self.shown.clone(), SrtEnd::peer),
            stream_id: String::new(),
            latency_wish_ms: latency_wish_ms(&self.uri),
            end: connection.socket.clone(),
            traffic: Arc::clone(&connection.traffic),
            admitted: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, ForwardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes messages to a destination that is not SRT.
async fn write(mut connection: Connection, mut messages: Receiver<Message>) -> Result<(), Failure> {
    let mut batch = VecDeque::new();
    while let Some(message) = messages.recv().await {
        connection.traffic.count(message.payload.len());
        let options = SendOptions { origin: Some(message.origin), ..SendOptions::default() };
        batch.push_back(Outgoing { payload: message.payload, options });
        connection.writer.write(&mut batch).await?;
    }
    connection.writer.close().await;
    Ok(())
}

/// The longest message that a destination takes whole.
const MESSAGE: usize = 1_456;

/// The messages that may wait for a destination: about a second at 6 Mb/s.
const ROOM: usize = 512;
