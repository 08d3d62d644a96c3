//! Viewers of recordings, by SRT.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use punctual::Outgoing;
use punctual_ends::{Connection, Failure};
use punctual_relay_access::StreamName;
use punctual_relay_http::report::ConnectionRole;
use punctual_relay_recording::{Playback, PlayedPart};
use punctual_units::UtcTime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::time::Instant;

use crate::admitted_call::AdmittedCall;
use crate::hub::Hub;
use crate::recording::archive;

/// Opens the recordings of a stream at a time.
///
/// # Errors
///
/// The time is none, or nothing was recorded then, in a sentence.
pub(crate) async fn open(hub: &Hub, name: &StreamName, at: &str) -> Result<Playback, String> {
    let time: UtcTime = at.parse().map_err(|_| {
        format!("`{at}` is no time: write it as 2026-11-27T20:15:00, with a zone or in UTC")
    })?;
    let archive = archive(&hub.settings(name).record)?;
    let stream = name.to_string();
    let opened = tokio::task::spawn_blocking(move || Playback::open(&archive, &stream, time));
    let opened = opened.await.map_err(|error| error.to_string())?;
    opened.map_err(|error| error.to_string())
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
    let (sender, messages) = channel(READ_AHEAD);
    let reader = tokio::task::spawn_blocking(move || read(playback, &sender));
    let gone = connection.peer_gone();
    tokio::select! {
        sent = send(connection, messages) => if let Err(failure) = sent {
            known.end(failure.to_string());
        },
        () = gone => {}
        () = known.stop.told() => {}
    }
    if let Ok(Err(error)) = reader.await {
        known.end(error);
    }
    hub.disconnected(&known);
}

/// Reads the parts of a recording ahead of their time.
fn read(mut playback: Playback, sender: &Sender<(Duration, Bytes)>) -> Result<(), String> {
    loop {
        match playback.next_part().map_err(|error| error.to_string())? {
            PlayedPart::Message { at, payload } => {
                if sender.blocking_send((at, payload)).is_err() {
                    return Ok(());
                }
            }
            PlayedPart::Wait if sender.is_closed() => return Ok(()),
            PlayedPart::Wait => std::thread::sleep(NEWS),
            PlayedPart::End => return Ok(()),
        }
    }
}

/// Sends each message at its time.
async fn send(
    mut connection: Connection,
    mut messages: Receiver<(Duration, Bytes)>,
) -> Result<(), Failure> {
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

/// The messages that are read ahead.
const READ_AHEAD: usize = 256;

/// The time between two looks for more of a recording that is still written.
const NEWS: Duration = Duration::from_millis(200);
