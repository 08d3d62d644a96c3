//! A caller's own rights, and tickets for players.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::parse;
use crate::access::{Caller, Right, Verdict};
use crate::app::Shared;
use crate::problem::Problem;
use crate::relay::Ticket;

/// The rights of a caller.
#[derive(Serialize, ToSchema)]
pub(super) struct SessionReport {
    /// The caller's name, if the caller has one.
    user: Option<String>,
    /// Whether the caller may read reports.
    read: bool,
    /// Whether the caller may kick, switch, record and forward.
    operate: bool,
    /// Whether the caller may change the configuration.
    administer: bool,
}

/// The rights of the caller of this request.
#[utoipa::path(
    get, path = "/v1/session", operation_id = "getSession", tag = "access",
    responses((status = 200, body = SessionReport)),
)]
pub(super) async fn session(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
) -> Json<SessionReport> {
    let access = app.access();
    let read = access.decide(&caller, &Right::Read).await;
    let may = |verdict| matches!(verdict, Verdict::Allowed(_));
    let operate = may(access.decide(&caller, &Right::Operate).await);
    let administer = may(access.decide(&caller, &Right::Administer).await);
    let (user, read) = match read {
        Verdict::Allowed(terms) => (terms.user, true),
        Verdict::Unknown | Verdict::Forbidden => (None, false),
    };
    Json(SessionReport { user, read, operate, administer })
}

/// The stream of a ticket.
#[derive(Deserialize, ToSchema)]
pub(super) struct TicketFor {
    /// The stream's name.
    stream: String,
    /// Whether the ticket is for the recordings of the stream instead.
    #[serde(default)]
    recordings: bool,
}

/// Makes a ticket for `?ticket=`, with which a player that cannot send headers views one stream, or
/// its recordings.
#[utoipa::path(
    post, path = "/v1/tickets", operation_id = "makeTicket", tag = "access",
    request_body = TicketFor,
    responses(
        (status = 200, body = Ticket), (status = 401, body = Problem),
        (status = 403, body = Problem), (status = 503, body = Problem),
    ),
)]
pub(super) async fn ticket(
    State(app): State<Shared>,
    Extension(caller): Extension<Caller>,
    body: Bytes,
) -> Result<Json<Ticket>, Problem> {
    let TicketFor { stream, recordings } = parse(&body)?;
    let right = if recordings { Right::Playback(stream) } else { Right::View(stream) };
    app.require(&caller, &right).await?;
    let ticket = app.access().ticket(&caller, &right).await;
    ticket.map(Json).ok_or_else(|| {
        let detail = "there are too many tickets now; they expire by themselves";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
    })
}
