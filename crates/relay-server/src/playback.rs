//! Viewers of recordings: by SRT, in the page's player, and as a file by HTTP.

use std::collections::VecDeque;
use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual::Outgoing;
use punctual_ends::{Connection, Failure};
use punctual_fmp4::Fragmenter;
use punctual_mpegts::{Inspector, PACKET_LEN, Packet};
use punctual_relay_access::StreamName;
use punctual_relay_http::report::ConnectionRole;
use punctual_relay_http::{ExcerptFile, ExcerptTimes, Fault, PlayFeed, PlayMessage, View};
use punctual_relay_recording::{Excerpt, Playback, PlaybackError, PlayedPart};
use punctual_units::UtcTime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::Instant;

use crate::admitted_call::AdmittedCall;
use crate::connections::ServedConnection;
use crate::hub::Hub;
use crate::play::{name, new_view, play_command};
use crate::recording::{archive, system_time};
use crate::serve::{OVER, over};
use crate::wall;

/// Opens the recordings of a stream at a time.
///
/// # Errors
///
/// The time is none, or nothing was recorded then, in a sentence.
pub(crate) async fn open(hub: &Hub, name: &StreamName, at: &str) -> Result<Playback, Fault> {
    let time = time(at)?;
    let archive = archive(&hub.settings(name).record).map_err(Fault::Failed)?;
    let stream = name.to_string();
    let opened = spawn_blocking(move || Playback::open(&archive, &stream, time)).await;
    opened.map_err(|error| Fault::Failed(error.to_string()))?.map_err(|error| fault(&error))
}

fn time(text: &str) -> Result<UtcTime, Fault> {
    let explain = |_| {
        let text =
            format!("`{text}` is no time: write it as 2026-11-27T20:15:00, with a zone or in UTC");
        Fault::Invalid(text, Vec::new())
    };
    text.parse().map_err(explain)
}

fn fault(error: &PlaybackError) -> Fault {
    match error {
        PlaybackError::Nothing { .. } => Fault::NotFound(error.to_string()),
        _ => Fault::Failed(error.to_string()),
    }
}

/// Plays a recording to a caller at its own pace.
pub(crate) async fn serve(
    hub: &Arc<Hub>,
    connection: Connection,
    call: &AdmittedCall,
    playback: Playback,
    protocol: &'static str,
) {
    let known = hub.connected(call.describe(&connection, ConnectionRole::Viewer, protocol));
    let (messages, reader) = messages(playback);
    let gone = connection.peer_gone();
    tokio::select! {
        sent = send(connection, messages) => if let Err(failure) = sent {
            known.end(failure.to_string());
        },
        () = gone => {}
        () = known.stop.told() => {}
        () = over(call.admitted.lifetime()) => known.end(OVER),
    }
    end(hub, &known, reader).await;
}

/// Notes the end of a connection, and that of what it read.
async fn end(hub: &Hub, known: &ServedConnection, reader: Reading) {
    if let Ok(Err(error)) = reader.await {
        known.end(error);
    }
    hub.disconnected(known);
}

/// Messages with their times since the first.
type TimedMessages = Receiver<(Duration, Bytes)>;

/// The task that reads a recording. It tells why it ended early.
type Reading = JoinHandle<Result<(), String>>;

/// The messages of a recording with their times, ahead of these. Whoever reads them holds no thread
/// while they wait.
fn messages(playback: Playback) -> (TimedMessages, Reading) {
    let (sender, messages) = channel(READ_AHEAD);
    (messages, tokio::spawn(read(playback, sender)))
}

async fn read(mut playback: Playback, sender: Sender<(Duration, Bytes)>) -> Result<(), String> {
    loop {
        let read = spawn_blocking(move || next_parts(playback)).await;
        let (parts, next) = read.map_err(|error| error.to_string())?;
        playback = next;
        for part in parts {
            match part.map_err(|error| error.to_string())? {
                PlayedPart::Message { at, payload } => {
                    if sender.send((at, payload)).await.is_err() {
                        return Ok(());
                    }
                }
                PlayedPart::Wait => tokio::select! {
                    () = tokio::time::sleep(NEWS) => {}
                    () = sender.closed() => return Ok(()),
                },
                PlayedPart::End => return Ok(()),
            }
        }
    }
}

/// The next messages, and what comes after them if they are few.
fn next_parts(mut playback: Playback) -> (Vec<Result<PlayedPart, PlaybackError>>, Playback) {
    let mut parts = Vec::new();
    while parts.len() < READ_AHEAD {
        let part = playback.next_part();
        let is_message = matches!(part, Ok(PlayedPart::Message { .. }));
        parts.push(part);
        if !is_message {
            break;
        }
    }
    (parts, playback)
}

/// Sends each message at its time.
async fn send(mut connection: Connection, mut messages: TimedMessages) -> Result<(), Failure> {
    let start = Instant::now();
    let mut batch = VecDeque::new();
    while let Some((at, payload)) = messages.recv().await {
        tokio::time::sleep_until(start + at).await;
        connection.traffic.count(payload.len());
        batch.push_back(Outgoing::from(payload));
        connection.writer.write(&mut batch).await?;
    }
    connection.writer.close().await;
    Ok(())
}

/// The recordings of a stream from a time on, for the page's player.
///
/// # Errors
///
/// The time is none, or nothing was recorded then.
pub(crate) async fn player(
    hub: &Arc<Hub>,
    view: View,
    at: &str,
) -> Result<Receiver<PlayMessage>, Fault> {
    let playback = open(hub, &name(&view.stream)?, at).await?;
    let known = hub.connected(new_view(&view, "player"));
    let (sender, receiver) = channel(READ_AHEAD);
    let player = RecordingPlayer {
        inspector: Inspector::default(),
        fragmenter: Fragmenter::default(),
        feed: PlayFeed::new(play_command(hub, &view.stream, Some(at)), view.sound),
        sender,
        known,
    };
    let hub = Arc::clone(hub);
    tokio::spawn(async move { player.run(&hub, view.lifetime, playback).await });
    Ok(receiver)
}

/// A player of the page that plays a recording.
struct RecordingPlayer {
    inspector: Inspector,
    fragmenter: Fragmenter,
    feed: PlayFeed,
    sender: Sender<PlayMessage>,
    known: Arc<ServedConnection>,
}

impl RecordingPlayer {
    async fn run(mut self, hub: &Hub, lifetime: Option<Duration>, playback: Playback) {
        let (messages, reader) = messages(playback);
        let (known, gone) = (Arc::clone(&self.known), self.sender.clone());
        tokio::select! {
            () = self.play(messages) => {}
            () = gone.closed() => {}
            () = known.stop.told() => {}
            () = over(lifetime) => known.end(OVER),
        }
        end(hub, &known, reader).await;
    }

    /// Sends each message a little ahead of its time, so that the player has some in hand. A slow
    /// player gets all of them, and later.
    async fn play(&mut self, mut messages: TimedMessages) {
        let start = Instant::now();
        while let Some((at, payload)) = messages.recv().await {
            tokio::time::sleep_until(start + at.saturating_sub(AHEAD)).await;
            self.push(&payload, at);
            while let Some(output) = self.fragmenter.pop() {
                for message in self.feed.next(&output) {
                    if let PlayMessage::Binary(bytes) = &message {
                        self.known.traffic.count(bytes.len());
                    }
                    if self.sender.send(message).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn push(&mut self, payload: &Bytes, at: Duration) {
        for packet in payload.as_chunks::<PACKET_LEN>().0 {
            let Ok(packet) = Packet::new(packet) else { continue };
            self.inspector.push(packet, at);
            if let Some(program) = self.inspector.programs().first() {
                self.fragmenter.set_streams(&program.streams);
            }
            self.fragmenter.push(packet);
        }
    }
}

/// The recordings of a stream between two times, as a file.
///
/// # Errors
///
/// A time is none, or nothing was recorded between them.
pub(crate) async fn excerpt(
    hub: &Arc<Hub>,
    view: View,
    times: &ExcerptTimes,
) -> Result<ExcerptFile, Fault> {
    let stream = name(&view.stream)?;
    let from = time(&times.from)?;
    let until = times.until.as_deref().map_or_else(|| Ok(wall::now().into()), time)?;
    if until <= from {
        let text = format!("the excerpt ends at {until}, which is not after its start {from}");
        return Err(Fault::Invalid(text, Vec::new()));
    }
    let archive = archive(&hub.settings(&stream).record).map_err(Fault::Failed)?;
    let stream = stream.to_string();
    let made = spawn_blocking(move || Excerpt::new(&archive, &stream, from, until)).await;
    let excerpt =
        made.map_err(|error| Fault::Failed(error.to_string()))?.map_err(|error| fault(&error))?;
    let hub = Arc::clone(hub);
    Ok(ExcerptFile {
        start: system_time(excerpt.start()).into(),
        len: excerpt.len(),
        version: excerpt.version(),
        read: Box::new(move |range| {
            let (sender, receiver) = channel(BLOCKS);
            tokio::spawn(download(hub, view, excerpt, range, sender));
            receiver
        }),
    })
}

/// Sends a part of an excerpt.
async fn download(
    hub: Arc<Hub>,
    view: View,
    mut excerpt: Excerpt,
    range: Range<u64>,
    sender: Sender<Bytes>,
) {
    let known = hub.connected(new_view(&view, "http"));
    let copy = async {
        excerpt.skip(range.start);
        let mut left = range.end - range.start;
        while left > 0 {
            let size = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
            let read = spawn_blocking(move || {
                let mut block = vec![0; size];
                let read = excerpt.read_exact(&mut block);
                (read.map(|()| Bytes::from(block)), excerpt)
            });
            let (block, rest) = read.await.map_err(|error| error.to_string())?;
            excerpt = rest;
            let block = block.map_err(|error| error.to_string())?;
            left -= block.len() as u64;
            known.traffic.count(block.len());
            if sender.send(block).await.is_err() {
                break;
            }
        }
        Ok::<(), String>(())
    };
    tokio::select! {
        copied = copy => if let Err(error) = copied {
            known.end(error);
        },
        () = known.stop.told() => {}
        () = over(view.lifetime) => known.end(OVER),
    }
    hub.disconnected(&known);
}

/// The messages that are read ahead.
const READ_AHEAD: usize = 256;

/// The time between two looks for more of a recording that is still written.
const NEWS: Duration = Duration::from_millis(200);

/// A player gets the messages of a recording so much before their time.
const AHEAD: Duration = Duration::from_secs(1);

/// The bytes of a file that are read at once.
const BLOCK: usize = 256 << 10;

/// The blocks that may wait for a client.
const BLOCKS: usize = 2;
