//! Connections: reports, and their end.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::Deserialize;

use crate::app::Shared;
use crate::problem::Problem;
use crate::report::ConnectionReport;

/// A choice by stream.
#[derive(Deserialize, utoipa::IntoParams)]
pub(super) struct OfStream {
    /// Only those of this stream.
    pub(super) stream: Option<String>,
}

/// Connections, oldest first.
#[utoipa::path(
    get, path = "/v1/connections", operation_id = "listConnections", tag = "connections",
    params(OfStream), responses((status = 200, body = Vec<ConnectionReport>)),
)]
pub(super) async fn list(
    State(app): State<Shared>,
    Query(of): Query<OfStream>,
) -> Json<Vec<ConnectionReport>> {
    Json(app.relay().connections(of.stream.as_deref()).await)
}

/// One connection.
#[utoipa::path(
    get, path = "/v1/connections/{id}", operation_id = "getConnection", tag = "connections",
    params(("id" = String, Path, description = "The connection's ID")),
    responses((status = 200, body = ConnectionReport), (status = 404, body = Problem)),
)]
pub(super) async fn one(
    State(app): State<Shared>,
    Path(id): Path<String>,
) -> Result<Json<ConnectionReport>, Problem> {
    let connection = app.relay().connection(&id).await;
    connection.map(Json).ok_or_else(|| Problem::no_connection(&id))
}

/// A ban after the end of a connection.
#[derive(Deserialize, utoipa::IntoParams)]
pub(super) struct Ban {
    /// The seconds for which the address may not call again, up to a day.
    ban_s: Option<u32>,
}

/// Ends a connection.
#[utoipa::path(
    delete, path = "/v1/connections/{id}", operation_id = "kickConnection", tag = "connections",
    params(("id" = String, Path, description = "The connection's ID"), Ban),
    responses((status = 204), (status = 400, body = Problem), (status = 404, body = Problem)),
)]
pub(super) async fn kick(
    State(app): State<Shared>,
    Path(id): Path<String>,
    Query(ban): Query<Ban>,
) -> Result<StatusCode, Problem> {
    if ban.ban_s.is_some_and(|seconds| seconds > LONGEST_BAN_S) {
        let detail = format!("`ban_s` is at most {LONGEST_BAN_S}, a day");
        return Err(Problem::bad_request(detail));
    }
    let ban = ban.ban_s.map(|seconds| Duration::from_secs(seconds.into()));
    app.relay().kick(&id, ban).await?;
    Ok(StatusCode::NO_CONTENT)
}

const LONGEST_BAN_S: u32 = 24 * 60 * 60;
