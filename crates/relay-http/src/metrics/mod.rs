//! Metrics for Prometheus, in its text format.
//!
//! Labels are streams, directions and reasons: never addresses or IDs of connections, which would
//! make a new series with each call.

mod encode;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;

use self::encode::Scrape;
use crate::app::Shared;
use crate::problem::Problem;

/// `GET /metrics`.
pub(crate) async fn answer(State(app): State<Shared>) -> Response {
    let relay = app.relay();
    let (server, health) = (relay.server().await, relay.health().await);
    let streams = app.kept_streams().rows(relay.streams().await);
    let mut registry = Registry::with_prefix("punctual_relay");
    registry.register_collector(Box::new(Scrape { server, is_ready: health.ready, streams }));
    let mut text = String::new();
    match prometheus_text::encode(&mut text, &registry) {
        Ok(()) => {
            let kind = "text/plain; version=0.0.4; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => {
            let detail = format!("the metrics cannot be written: {error}");
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
        }
    }
}
