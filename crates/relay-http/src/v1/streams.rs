//! Streams: reports, and acts of an operator.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;

use super::parse;
use crate::app::Shared;
use crate::problem::Problem;
use crate::relay::StreamAct;
use crate::report::StreamReport;

/// All streams, in the order of their names.
#[utoipa::path(
    get, path = "/v1/streams", operation_id = "listStreams", tag = "streams",
    responses((status = 200, body = Vec<StreamReport>)),
)]
pub(super) async fn list(State(app): State<Shared>) -> Json<Vec<StreamReport>> {
    Json(app.relay().streams().await)
}

/// One stream.
#[utoipa::path(
    get, path = "/v1/streams/{name}", operation_id = "getStream", tag = "streams",
    params(("name" = String, Path, description = "The stream's name; `/` is written `%2F`")),
    responses((status = 200, body = StreamReport), (status = 404, body = Problem)),
)]
pub(super) async fn one(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Json<StreamReport>, Problem> {
    let stream = app.relay().stream(&name).await;
    stream.map(Json).ok_or_else(|| Problem::no_stream(&name))
}

/// The input to which to switch.
#[derive(Deserialize, ToSchema)]
pub(super) struct SwitchTo {
    /// The input's name.
    input: String,
}

/// Takes the stream from another of its inputs.
#[utoipa::path(
    post, path = "/v1/streams/{name}/switch", operation_id = "switchStream", tag = "streams",
    params(("name" = String, Path, description = "The stream's name")),
    request_body = SwitchTo,
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn switch(
    State(app): State<Shared>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<StatusCode, Problem> {
    let SwitchTo { input } = parse(&body)?;
    act(&app, &name, StreamAct::Switch { input }).await
}

/// Begins to record the stream.
#[utoipa::path(
    post, path = "/v1/streams/{name}/record/start", operation_id = "startRecording",
    tag = "streams", params(("name" = String, Path, description = "The stream's name")),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn record_start(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    act(&app, &name, StreamAct::Record(true)).await
}

/// Ends the recording of the stream.
#[utoipa::path(
    post, path = "/v1/streams/{name}/record/stop", operation_id = "stopRecording",
    tag = "streams", params(("name" = String, Path, description = "The stream's name")),
    responses((status = 204), (status = 404, body = Problem), (status = 409, body = Problem)),
)]
pub(super) async fn record_stop(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    act(&app, &name, StreamAct::Record(false)).await
}

/// Begins to send the stream to a destination of its report.
#[utoipa::path(
    post, path = "/v1/streams/{name}/forward/{id}/start", operation_id = "startForward",
    tag = "streams",
    params(
        ("name" = String, Path, description = "The stream's name"),
        ("id" = String, Path, description = "The destination's ID"),
    ),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(super) async fn forward_start(
    State(app): State<Shared>,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    act(&app, &name, StreamAct::Forward { id, start: true }).await
}

/// Ends sending the stream to a destination of its report.
#[utoipa::path(
    post, path = "/v1/streams/{name}/forward/{id}/stop", operation_id = "stopForward",
    tag = "streams",
    params(
        ("name" = String, Path, description = "The stream's name"),
        ("id" = String, Path, description = "The destination's ID"),
    ),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(super) async fn forward_stop(
    State(app): State<Shared>,
    Path((name, id)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    act(&app, &name, StreamAct::Forward { id, start: false }).await
}

/// Sets the counters of the stream's report to zero.
#[utoipa::path(
    post, path = "/v1/streams/{name}/reset-counters", operation_id = "resetCounters",
    tag = "streams", params(("name" = String, Path, description = "The stream's name")),
    responses((status = 204), (status = 404, body = Problem)),
)]
pub(super) async fn reset_counters(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<StatusCode, Problem> {
    act(&app, &name, StreamAct::ResetCounters).await
}

async fn act(app: &Shared, name: &str, act: StreamAct) -> Result<StatusCode, Problem> {
    app.relay().act(name, act).await?;
    Ok(StatusCode::NO_CONTENT)
}
