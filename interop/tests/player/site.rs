use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use interop::READ_CLOCK;
use punctual_fmp4::{Fragmenter, Output, Recent, Segmenter};
use punctual_mpegts::{Framer, Inspector};
use punctual_relay_http::{PLAYER_JS, PlayFeed, PlayMessage};
use tokio::sync::{broadcast, watch};

/// A server with one stream and one page that plays it.
pub(crate) struct Site {
    /// The port of its page.
    pub(crate) port: u16,
    /// The port that an encoder sends its transport stream to, over TCP.
    pub(crate) input: u16,
    shared: Arc<Shared>,
    _runtime: tokio::runtime::Runtime,
}

struct Shared {
    kept: Mutex<Kept>,
    live: broadcast::Sender<Output>,
    /// Whether the network stands still.
    is_held: watch::Sender<bool>,
}

#[derive(Default)]
struct Kept {
    fragmenter: Fragmenter,
    recent: Recent,
    segmenter: Segmenter,
}

impl Site {
    pub(crate) fn start() -> Self {
        let (live, _) = broadcast::channel(4096);
        let shared =
            Arc::new(Shared { kept: Mutex::default(), live, is_held: watch::Sender::new(false) });
        let runtime = tokio::runtime::Runtime::new().expect("threads can be started");
        let app = Router::new()
            .route("/", get(async || Html(include_str!("page.html"))))
            .route("/read_clock.js", get(read_clock))
            .route("/player.js", get(player))
            .route("/play", get(play))
            .route("/hls/{file}", get(hls))
            .with_state(Arc::clone(&shared));
        let port = runtime.block_on(async {
            let address = SocketAddr::from(([127, 0, 0, 1], 0));
            let listener = tokio::net::TcpListener::bind(address).await.expect("a port is free");
            let port = listener.local_addr().expect("a socket has an address").port();
            tokio::spawn(async { axum::serve(listener, app).await });
            port
        });
        let input = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let input_port = input.local_addr().expect("a socket has an address").port();
        let reader = Arc::clone(&shared);
        thread::spawn(move || reader.read_encoders(&input));
        Self { port, input: input_port, shared, _runtime: runtime }
    }

    /// Lets the network to all viewers stand still, and go on.
    pub(crate) fn hold(&self, is_held: bool) {
        self.shared.is_held.send_replace(is_held);
    }
}

impl Shared {
    /// Reads the stream of each encoder that calls, one after the other.
    fn read_encoders(&self, input: &TcpListener) {
        let start = Instant::now();
        while let Ok((mut stream, _)) = input.accept() {
            let (mut framer, mut inspector) = (Framer::default(), Inspector::default());
            let mut block = [0; 16_384];
            while let Ok(length @ 1..) = stream.read(&mut block) {
                framer.push(&block[..length]);
                self.take_packets(&mut framer, &mut inspector, start.elapsed());
            }
        }
    }

    fn take_packets(&self, framer: &mut Framer, inspector: &mut Inspector, now: Duration) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(packet) = framer.next_packet() {
            inspector.push(packet, now);
            if let Some(program) = inspector.programs().first() {
                kept.fragmenter.set_streams(&program.streams);
            }
            kept.fragmenter.push(packet);
            while let Some(output) = kept.fragmenter.pop() {
                kept.recent.push(&output);
                kept.segmenter.push(&output);
                let _ = self.live.send(output);
            }
        }
    }

    async fn serve(&self, mut socket: WebSocket, has_sound: bool) {
        let mut feed = PlayFeed::new("ffplay srt://host:8890".to_owned(), has_sound);
        let (first, mut live) = {
            let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            (feed.begin(&kept.recent), self.live.subscribe())
        };
        let mut messages = first;
        let mut held = self.is_held.subscribe();
        loop {
            for message in messages {
                if held.wait_for(|is_held| !is_held).await.is_err() {
                    return;
                }
                let message = match message {
                    PlayMessage::Text(text) => Message::text(text),
                    PlayMessage::Binary(bytes) => Message::binary(bytes),
                };
                if socket.send(message).await.is_err() {
                    return;
                }
            }
            messages = match live.recv().await {
                Ok(output) => feed.next(&output),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    feed.skip_to_key_frame();
                    Vec::new()
                }
                Err(broadcast::error::RecvError::Closed) => return,
            };
        }
    }
}

async fn read_clock() -> Response {
    ([(CONTENT_TYPE, "text/javascript")], READ_CLOCK).into_response()
}

async fn player() -> Response {
    ([(CONTENT_TYPE, "text/javascript")], PLAYER_JS).into_response()
}

async fn play(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let has_sound = query.as_deref() != Some("sound=no");
    upgrade.on_upgrade(async move |socket| shared.serve(socket, has_sound).await)
}

async fn hls(State(shared): State<Arc<Shared>>, Path(file): Path<String>) -> Response {
    let kept = shared.kept.lock().unwrap_or_else(PoisonError::into_inner);
    let number =
        |prefix, suffix| file.strip_prefix(prefix)?.strip_suffix(suffix)?.parse::<u64>().ok();
    let found = if file == "index.m3u8" {
        kept.segmenter.playlist().map(Into::into)
    } else if let Some(number) = number("init-", ".mp4") {
        kept.segmenter.init(number).map(|init| init.bytes.clone())
    } else {
        let segment = number("", ".m4s").and_then(|number| kept.segmenter.segment(number));
        segment.map(|segment| segment.bytes.clone())
    };
    found.map_or(StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response)
}
