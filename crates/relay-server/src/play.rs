//! Streams for viewers by HTTP: transport packets, fragments for the page's player, HLS.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use punctual_fmp4::{Fragmenter, Output, Recent, Segmenter};
use punctual_mpegts::{PACKET_LEN, Packet};
use punctual_relay::{Message, Start, Viewer, ViewerId};
use punctual_relay_access::StreamName;
use punctual_relay_http::report::ConnectionRole;
use punctual_relay_http::{Fault, HlsFile, PlayFeed, PlayMessage, View};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::connections::{NewConnection, ServedConnection};
use crate::hub::Hub;
use crate::live_stream::LiveStream;
use crate::outlet::{ChannelOutlet, Outlet};
use crate::serve::{OVER, over};

/// The fragments of each stream that somebody watches in a browser.
#[derive(Default)]
pub(crate) struct Players {
    feeds: Mutex<HashMap<Arc<str>, Arc<BrowserFeed>>>,
}

/// The fragments of one stream.
struct BrowserFeed {
    state: Mutex<FeedState>,
}

struct FeedState {
    recent: Recent,
    segmenter: Segmenter,
    players: Vec<FeedPlayer>,
    /// When HLS was last asked for, or a player was there.
    used: Instant,
    has_ended: bool,
}

struct FeedPlayer {
    feed: PlayFeed,
    messages: Sender<PlayMessage>,
    /// When the time is over that it was admitted for.
    until: Option<Instant>,
    connection: Arc<ServedConnection>,
}

/// The stream as packets, from a random access point on.
///
/// # Errors
///
/// There is no such stream, or it takes no more viewers.
pub(crate) async fn packets(hub: &Arc<Hub>, view: View) -> Result<Receiver<Bytes>, Fault> {
    let stream = wanted(hub, &view).await?;
    let known = hub.connected(new_view(&view, "http"));
    let id = ViewerId(known.id);
    let (sender, receiver) = channel(ROOM);
    let gone = sender.clone();
    let outlet = HttpOutlet { sender, connection: Arc::clone(&known) };
    let viewer = Viewer { user: view.user, start: Some(Start::Gop), is_internal: false };
    match stream.view(id, viewer, Box::new(outlet)) {
        Ok(turn) => hub.settle(&stream, turn),
        Err(refused) => {
            hub.disconnected(&known);
            return Err(Fault::Unavailable(refused.to_string()));
        }
    }
    let hub = Arc::clone(hub);
    tokio::spawn(async move {
        tokio::select! {
            () = gone.closed() => {}
            () = known.stop.told() => {}
            () = over(view.lifetime) => known.end(OVER),
        }
        stream.unview(id);
        hub.disconnected(&known);
    });
    Ok(receiver)
}

/// A viewer of packets by HTTP.
struct HttpOutlet {
    sender: Sender<Bytes>,
    connection: Arc<ServedConnection>,
}

impl Outlet for HttpOutlet {
    fn take(&mut self, message: &Message) -> bool {
        match self.sender.try_send(message.payload.clone()) {
            Ok(()) => {
                self.connection.traffic.count(message.payload.len());
                true
            }
            Err(TrySendError::Full(_)) => false,
            Err(TrySendError::Closed(_)) => true,
        }
    }

    fn flush(&mut self) -> bool {
        !self.sender.is_closed() && !self.connection.stop.is_told()
    }

    fn link(&self) -> Option<punctual_relay::ViewerLink> {
        None
    }
}

/// The stream for the page's player.
///
/// # Errors
///
/// There is no such stream.
pub(crate) async fn player(
    hub: &Arc<Hub>,
    players: &Arc<Players>,
    view: View,
) -> Result<Receiver<PlayMessage>, Fault> {
    let stream = wanted(hub, &view).await?;
    let feed = players.feed(hub, &stream);
    let connection = hub.connected(new_view(&view, "player"));
    let (sender, receiver) = channel(PLAYER_ROOM);
    let mut state = feed.lock();
    let mut player = FeedPlayer {
        feed: PlayFeed::new(play_command(hub, &view.stream, None), view.sound),
        messages: sender,
        until: view.lifetime.map(|time| Instant::now() + time),
        connection,
    };
    let first = player.feed.begin(&state.recent);
    player.send(first);
    state.players.push(player);
    drop(state);
    Ok(receiver)
}

/// A file of the stream's HLS.
///
/// # Errors
///
/// There is no such stream or file.
pub(crate) async fn hls(
    hub: &Arc<Hub>,
    players: &Arc<Players>,
    view: View,
    file: &str,
) -> Result<HlsFile, Fault> {
    let stream = wanted(hub, &view).await?;
    let feed = players.feed(hub, &stream);
    let absent = || Fault::NotFound(format!("the HLS of `{}` has no file `{file}`", view.stream));
    if file == "index.m3u8" {
        let body = feed.playlist().await;
        let body = body.ok_or_else(|| {
            Fault::Unavailable(format!("`{}` has no segment yet: try again", view.stream))
        })?;
        let content_type = "application/vnd.apple.mpegurl";
        return Ok(HlsFile { content_type, max_age: Duration::ZERO, body: body.into() });
    }
    let state = feed.lock();
    let number = |text: &str| text.parse::<u64>().ok();
    let body = match file.strip_suffix(".m4s").and_then(number) {
        Some(number) => state.segmenter.segment(number).map(|segment| segment.bytes.clone()),
        None => {
            let init = file.strip_prefix("init-").and_then(|it| it.strip_suffix(".mp4"));
            let init = init.and_then(number).and_then(|number| state.segmenter.init(number));
            init.map(|init| init.bytes.clone())
        }
    };
    let body = body.ok_or_else(absent)?;
    Ok(HlsFile { content_type: "video/mp4", max_age: Duration::from_secs(60), body })
}

async fn wanted(hub: &Arc<Hub>, view: &View) -> Result<Arc<LiveStream>, Fault> {
    let name = name(&view.stream)?;
    let absent = || Fault::NotFound(format!("nobody publishes `{name}`"));
    hub.wanted(&name).await.ok_or_else(absent)
}

/// A connection for this view.
pub(crate) fn new_view(view: &View, protocol: &'static str) -> NewConnection {
    NewConnection {
        role: ConnectionRole::Viewer,
        protocol,
        stream: view.stream.as_str().into(),
        user: view.user.clone(),
        address: view.address.to_string(),
        stream_id: String::new(),
        latency_wish_ms: 0,
        end: None,
        traffic: Arc::default(),
        admitted: None,
    }
}

/// The command that plays a stream from this machine in another program, or its recordings from a
/// time on.
pub(crate) fn play_command(hub: &Hub, stream: &str, at: Option<&str>) -> String {
    let configuration = hub.configuration();
    let port = configuration.listeners.iter().find_map(|it| it.srt).map_or(8_890, |it| it.port());
    let at = at.map(|at| format!(",at={at}")).unwrap_or_default();
    format!("ffplay 'srt://HOST:{port}?streamid=#!::r={stream},m=request{at}'")
}

/// A stream's name as it came by HTTP.
///
/// # Errors
///
/// It is no name.
pub(crate) fn name(text: &str) -> Result<StreamName, Fault> {
    StreamName::new(text).map_err(|error| Fault::Invalid(error.to_string(), Vec::new()))
}

impl Players {
    /// The fragments of a stream, which begin now if nobody watched before.
    fn feed(self: &Arc<Self>, hub: &Arc<Hub>, stream: &Arc<LiveStream>) -> Arc<BrowserFeed> {
        let mut feeds = self.feeds.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(feed) = feeds.get(stream.name())
            && feed.use_again()
        {
            return Arc::clone(feed);
        }
        let feed = Arc::new(BrowserFeed {
            state: Mutex::new(FeedState {
                recent: Recent::default(),
                segmenter: Segmenter::default(),
                players: Vec::new(),
                used: Instant::now(),
                has_ended: false,
            }),
        });
        feeds.insert(Arc::clone(stream.name()), Arc::clone(&feed));
        let (hub, stream, running) = (Arc::clone(hub), Arc::clone(stream), Arc::clone(&feed));
        let players = Arc::clone(self);
        tokio::spawn(async move {
            running.run(&hub, &stream).await;
            let mut feeds = players.feeds.lock().unwrap_or_else(PoisonError::into_inner);
            if feeds.get(stream.name()).is_some_and(|feed| Arc::ptr_eq(feed, &running)) {
                feeds.remove(stream.name());
            }
        });
        feed
    }
}

impl BrowserFeed {
    /// Makes fragments until nobody watches any more, or the stream ends.
    async fn run(&self, hub: &Arc<Hub>, stream: &Arc<LiveStream>) {
        let (outlet, mut messages) = ChannelOutlet::with_room(ROOM);
        let id = hub.internal_viewer();
        let viewer = Viewer { user: None, start: Some(Start::Gop), is_internal: true };
        match stream.view(id, viewer, Box::new(outlet)) {
            Ok(turn) => hub.settle(stream, turn),
            Err(_) => return self.end(hub),
        }
        let mut fragmenter = Fragmenter::default();
        let mut look = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                message = messages.recv() => match message {
                    Some(message) => self.push(hub, stream, &mut fragmenter, &message.payload),
                    None => break,
                },
                _ = look.tick() => if self.is_unused(hub) {
                    break;
                }
            }
        }
        stream.unview(id);
        self.end(hub);
    }

    fn push(&self, hub: &Hub, stream: &LiveStream, fragmenter: &mut Fragmenter, payload: &Bytes) {
        stream.look(|machine| {
            if let Some(program) = machine.inspector().programs().first() {
                fragmenter.set_streams(&program.streams);
            }
        });
        let (packets, _) = payload.as_chunks::<PACKET_LEN>();
        for packet in packets {
            if let Ok(packet) = Packet::new(packet) {
                fragmenter.push(packet);
            }
        }
        while let Some(output) = fragmenter.pop() {
            self.lock().send(hub, &output);
        }
    }

    /// The playlist, as soon as there is a segment.
    async fn playlist(&self) -> Option<String> {
        let mut wait = tokio::time::interval(Duration::from_millis(100));
        for _ in 0..SEGMENT_WAITS {
            wait.tick().await;
            if let Some(playlist) = self.lock().segmenter.playlist() {
                return Some(playlist);
            }
        }
        None
    }

    /// Notes a use; returns `false` if it is too late.
    fn use_again(&self) -> bool {
        let mut state = self.lock();
        state.used = Instant::now();
        !state.has_ended
    }

    fn is_unused(&self, hub: &Hub) -> bool {
        let mut state = self.lock();
        state.remove_gone(hub);
        if !state.players.is_empty() {
            state.used = Instant::now();
        }
        let is_unused = state.used.elapsed() > UNUSED;
        state.has_ended |= is_unused;
        is_unused
    }

    fn end(&self, hub: &Hub) {
        let mut state = self.lock();
        state.has_ended = true;
        for player in state.players.drain(..) {
            hub.disconnected(&player.connection);
        }
    }

    fn lock(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    fn send(&mut self, hub: &Hub, output: &Output) {
        self.recent.push(output);
        self.segmenter.push(output);
        for player in &mut self.players {
            let messages = player.feed.next(output);
            player.send(messages);
        }
        self.remove_gone(hub);
    }

    fn remove_gone(&mut self, hub: &Hub) {
        let now = Instant::now();
        self.players.retain(|player| {
            if player.until.is_some_and(|until| now >= until) {
                player.connection.end(OVER);
            }
            let is_here = !player.messages.is_closed() && !player.connection.stop.is_told();
            if !is_here {
                hub.disconnected(&player.connection);
            }
            is_here
        });
    }
}

impl FeedPlayer {
    /// Sends messages; if there is no room, it goes on at the next key frame.
    fn send(&mut self, messages: Vec<PlayMessage>) {
        for message in messages {
            let size = match &message {
                PlayMessage::Text(_) => 0,
                PlayMessage::Binary(bytes) => bytes.len(),
            };
            match self.messages.try_send(message) {
                Ok(()) => self.connection.traffic.count(size),
                Err(_) => self.feed.skip_to_key_frame(),
            }
        }
    }
}

/// The messages that may wait for a viewer by HTTP: a second at 6 Mb/s.
const ROOM: usize = 512;

/// The fragments that may wait for a player: some seconds, with those since the key frame.
const PLAYER_ROOM: usize = 2_048;

/// The time without players and requests after which no more fragments are made.
const UNUSED: Duration = Duration::from_secs(20);

/// Looks for the first segment, 100 ms apart.
const SEGMENT_WAITS: u32 = 100;
