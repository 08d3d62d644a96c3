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

async fn view(app: &Shared, caller: &Caller, stream: &str) -> Result<View, Problem> {
    let user = app.require(caller, &Right::View(stream.to_owned())).await?;
    Ok(View { stream: stream.to_owned(), address: caller.address, user, sound: true })
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
    let view = view(&app, &caller, name).await?;
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
    let view = view(&app, &caller, name).await?;
    let file = app.relay().hls(view, file).await?;
    let cache = format!("max-age={}", file.max_age.as_secs());
    let kind = file.content_type.to_owned();
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cache)];
    Ok((headers, file.body).into_response())
}

/// `GET /v1/play/NAME`, a WebSocket: the messages of the player. A browser's page does not see the
/// status of a WebSocket that fails, so that refusals come as close codes: 4000 and the status.
async fn play(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    Path(name): Path<String>,
    Query(Wish { sound }): Query<Wish>,
    Extension(place): Extension<HeldPlace>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let sound = sound.as_deref() != Some("no");
    let messages = match view(&app, &caller, &name).await {
        Ok(view) => app.relay().view_player(View { sound, ..view }).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
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
