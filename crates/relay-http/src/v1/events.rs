//! Server-sent events: the events of the relay, and the numbers of all streams once a second.

use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{self, KeepAlive, Sse};
use serde::Deserialize;
use tokio::sync::{broadcast, mpsc};
use tokio::time::MissedTickBehavior;

use crate::app::Shared;
use crate::numbers::NumbersReport;
use crate::receiving::Receiving;
use crate::relay::Relay;
use crate::report::Event;

/// The events that a client wants.
#[derive(Deserialize, utoipa::IntoParams)]
pub(super) struct Wanted {
    /// Only the events of this stream.
    stream: Option<String>,
    /// Whether to send numbers once a second; they are sent if it is left out.
    numbers: Option<bool>,
    /// Send this number of the latest events first, up to 1,000. With `Last-Event-ID` it has no
    /// effect.
    #[serde(default)]
    past: usize,
}

/// Server-sent events. `event` is the kind of an event of the relay, with an `Event` as `data`;
/// `numbers`, once a second, with `Numbers` as `data`; or `gap` if events since `Last-Event-ID` are
/// lost, for instance because the relay was started again.
#[utoipa::path(
    get, path = "/v1/events", operation_id = "followEvents", tag = "events",
    params(Wanted, ("Last-Event-ID" = Option<String>, Header, description = "Go on after it")),
    responses((status = 200, body = NumbersReport, content_type = "text/event-stream")),
)]
pub(super) async fn events(
    State(app): State<Shared>,
    Query(wanted): Query<Wanted>,
    headers: HeaderMap,
) -> impl IntoResponse {
    let (sender, receiver) = mpsc::channel(64);
    let after = headers.get("last-event-id").map(|it| it.to_str().unwrap_or("").to_owned());
    tokio::spawn(follow(app, wanted, after, sender));
    Sse::new(Receiving(receiver)).keep_alive(KeepAlive::new().interval(Duration::from_secs(10)))
}

type ToClient = mpsc::Sender<sse::Event>;

/// Ends when the client is gone.
async fn follow(app: Shared, wanted: Wanted, after: Option<String>, to_client: ToClient) {
    let relay = app.relay();
    let mut following = relay.events().follow(after.as_deref(), wanted.past);
    let is_wanted = |event: &Event| wanted.stream.is_none() || event.stream == wanted.stream;
    if following.has_gap && to_client.send(gap()).await.is_err() {
        return;
    }
    for event in following.past.iter().filter(|event| is_wanted(event)) {
        if to_client.send(told(relay, event)).await.is_err() {
            return;
        }
    }
    let mut second = tokio::time::interval(Duration::from_secs(1));
    second.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let message = tokio::select! {
            event = following.to_come.recv() => match event {
                Ok(event) if is_wanted(&event) => told(relay, &event),
                Ok(_) => continue,
                Err(broadcast::error::RecvError::Lagged(_)) => gap(),
                Err(broadcast::error::RecvError::Closed) => return,
            },
            _ = second.tick(), if wanted.numbers != Some(false) => {
                let numbers = app.numbers().latest(relay).await;
                sse::Event::default().event("numbers").data(&*numbers)
            }
            () = to_client.closed() => return,
        };
        if to_client.send(message).await.is_err() {
            return;
        }
    }
}

fn told(relay: &dyn Relay, event: &Event) -> sse::Event {
    let kind = serde_json::to_value(event.kind).unwrap_or_default();
    let data = serde_json::to_string(event).unwrap_or_default();
    sse::Event::default()
        .event(kind.as_str().unwrap_or_default())
        .id(relay.events().place(event.id))
        .data(data)
}

fn gap() -> sse::Event {
    sse::Event::default().event("gap").data("{}")
}
