//! Streams by HTTP: as a transport stream, for the player of the page, and as HLS.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};

use crate::access::{Caller, Right};
use crate::app::Shared;
use crate::play::PlayMessage;
use crate::problem::Problem;
use crate::receiving::Receiving;
use crate::relay::View;
use crate::serve::HeldPlace;

/// The routes, which decide by themselves about a caller.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/live/{*file}", get(live))
        .route("/hls/{*file}", get(hls))
        .route("/v1/play/{name}", get(play))
}

/// The view of a caller who has this right to a stream.
pub(crate) async fn view(
    app: &Shared,
    caller: &Caller,
    stream: &str,
    right: impl FnOnce(String) -> Right,
) -> Result<View, Problem> {
    let terms = app.require(caller, &right(stream.to_owned())).await?;
    Ok(View {
        stream: stream.to_owned(),
        address: caller.address,
        user: terms.user,
        lifetime: terms.lifetime,
        sound: true,
    })
}

/// `GET /live/NAME.ts`: the stream from a random access point on, without an end.
async fn live(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(file): Path<String>,
) -> Result<Response, Problem> {
    let Some(name) = file.strip_suffix(".ts") else {
        let detail = "a stream by HTTP is `/live/NAME.ts`; its HLS is `/hls/NAME/index.m3u8`";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let view = view(&app, &caller, name, Right::View).await?;
    let packets = app.relay().view_ts(view).await?;
    let body = Body::from_stream(Receiving(packets));
    Ok(([(header::CONTENT_TYPE, "video/mp2t")], body).into_response())
}

/// `GET /hls/NAME/FILE`.
async fn hls(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(path): Path<String>,
) -> Result<Response, Problem> {
    let Some((name, file)) = path.rsplit_once('/') else {
        let detail = "the HLS of a stream is `/hls/NAME/index.m3u8`";
        return Err(Problem::new(StatusCode::NOT_FOUND, detail));
    };
    let view = view(&app, &caller, name, Right::View).await?;
    let file = app.relay().hls(view, file).await?;
    let cache = format!("max-age={}", file.max_age.as_secs());
    let kind = file.content_type.to_owned();
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)];
    Ok((headers, file.body).into_response())
}

/// `GET /v1/play/NAME`, a WebSocket: the messages of the player; with `?at=` those of the
/// recordings from this time on. A browser's page does not see the status of a WebSocket that
/// fails, so that refusals come as close codes: 4000 and the status.
async fn play(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(wish): Query<Wish>,
    Extension(place): Extension<HeldPlace>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let messages = wish.messages(&app, &caller, &name).await;
    // A player sends nothing but answers to pings.
    let upgrade = upgrade.max_message_size(4_096).max_frame_size(4_096);
    upgrade.on_upgrade(async move |socket| {
        match messages {
            Ok(messages) => Player { socket, heard: Instant::now() }.run(messages).await,
            Err(problem) => refuse(socket, &problem).await,
        }
        // A WebSocket counts as a connection to its end.
        drop(place);
    })
}

#[derive(Deserialize)]
struct Wish {
    sound: Option<String>,
    at: Option<String>,
}

impl Wish {
    /// The messages of the stream, or of its recordings.
    async fn messages(
        &self,
        app: &Shared,
        caller: &Caller,
        stream: &str,
    ) -> Result<mpsc::Receiver<PlayMessage>, Problem> {
        let right = if self.at.is_some() { Right::Playback } else { Right::View };
        let view = view(app, caller, stream, right).await?;
        let view = View { sound: self.sound.as_deref() != Some("no"), ..view };
        let messages = match &self.at {
            Some(at) => app.relay().view_recording(view, &with_zone(at)).await,
            None => app.relay().view_player(view).await,
        };
        Ok(messages?)
    }
}

/// A time of a query, in which `+` before a zone that is not percent-encoded came as a space.
pub(crate) fn with_zone(time: &str) -> String {
    if time.contains('T') { time.replace(' ', "+") } else { time.to_owned() }
}

async fn refuse(mut socket: WebSocket, problem: &Problem) {
    let frame = close(4_000 + problem.status().as_u16(), problem.detail());
    let _ = timeout(SEND_TIMEOUT, socket.send(frame)).await;
}

/// A player at the other end of a WebSocket.
struct Player {
    socket: WebSocket,
    /// The time of its latest message or answer to a ping.
    heard: Instant,
}

impl Player {
    /// Sends messages until the stream or the player ends.
    async fn run(mut self, mut messages: mpsc::Receiver<PlayMessage>) {
        let mut ping = tokio::time::interval(PING_INTERVAL);
        loop {
            let message = tokio::select! {
                message = messages.recv() => match message {
                    Some(PlayMessage::Text(text)) => Message::Text(text.into()),
                    Some(PlayMessage::Binary(bytes)) => Message::Binary(bytes),
                    None => close(STREAM_ENDED, "the stream ended"),
                },
                heard = self.socket.recv() => match heard {
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                    Some(Ok(_)) => {
                        self.heard = Instant::now();
                        continue;
                    }
                },
                _ = ping.tick() => {
                    if self.heard.elapsed() > 3 * PING_INTERVAL {
                        return;
                    }
                    Message::Ping(Bytes::new())
                }
            };
            let is_last = matches!(message, Message::Close(_));
            let sent = timeout(SEND_TIMEOUT, self.socket.send(message)).await;
            if is_last || !matches!(sent, Ok(Ok(()))) {
                return;
            }
        }
    }
}

fn close(code: u16, reason: &str) -> Message {
    // A control frame has at most 125 bytes, two of them for the code.
    let end = (0..=reason.len().min(123)).rfind(|at| reason.is_char_boundary(*at)).unwrap_or(0);
    Message::Close(Some(CloseFrame { code, reason: reason[..end].into() }))
}

/// The close code after the last message of a stream.
const STREAM_ENDED: u16 = 4_410;

/// The time after which a player that takes no message is given up.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

const PING_INTERVAL: Duration = Duration::from_secs(10);
