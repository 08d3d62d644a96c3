//! The relay as a whole: its state, refused calls, and its end.

use axum::Json;
use axum::extract::{Query, State};
use axum::http::StatusCode;

use super::connections::OfStream;
use crate::app::Shared;
use crate::problem::Problem;
use crate::report::{RefusalReport, ServerReport};

/// The relay as a whole.
#[utoipa::path(
    get, path = "/v1/server", operation_id = "getServer", tag = "server",
    responses((status = 200, body = ServerReport)),
)]
pub(super) async fn server(State(app): State<Shared>) -> Json<ServerReport> {
    Json(app.relay().server().await)
}

/// The latest refused calls, newest first.
#[utoipa::path(
    get, path = "/v1/refusals", operation_id = "listRefusals", tag = "server",
    params(OfStream), responses((status = 200, body = Vec<RefusalReport>)),
)]
pub(super) async fn refusals(
    State(app): State<Shared>,
    Query(of): Query<OfStream>,
) -> Json<Vec<RefusalReport>> {
    let mut refusals = app.relay().refusals().await;
    if of.stream.is_some() {
        refusals.retain(|refusal| refusal.stream == of.stream);
    }
    Json(refusals)
}

/// Begins to drain: the relay is not ready, takes no new calls, ends viewers in slices, then
/// publishers, and then itself.
#[utoipa::path(
    post, path = "/v1/drain", operation_id = "drain", tag = "server",
    responses((status = 202), (status = 409, body = Problem)),
)]
pub(super) async fn drain(State(app): State<Shared>) -> Result<StatusCode, Problem> {
    app.relay().drain().await?;
    Ok(StatusCode::ACCEPTED)
}
