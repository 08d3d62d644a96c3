//! Health, for supervisors and load balancers: UDP cannot be probed.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};

use crate::app::Shared;

/// The routes, which anybody may ask.
pub(crate) fn routes() -> Router<Shared> {
    Router::new()
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/health", get(health))
}

/// 200 if the relay should get calls, else 503 with the reasons, one a line.
async fn ready(State(app): State<Shared>) -> Response {
    let health = app.relay().health().await;
    if health.ready {
        return "ok\n".into_response();
    }
    let reasons: String = health.problems.iter().map(|problem| format!("{problem}\n")).collect();
    (StatusCode::SERVICE_UNAVAILABLE, reasons).into_response()
}

/// The whole report, with the status of `/readyz`.
async fn health(State(app): State<Shared>) -> Response {
    let health = app.relay().health().await;
    let status = if health.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(health)).into_response()
}
