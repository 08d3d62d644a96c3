//! The relay's own API.

mod config;
mod connections;
mod events;
mod open;
mod recordings;
mod server;
mod streams;

use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::Shared;
use crate::problem::Problem;

/// The routes of those who may read.
pub(crate) fn read_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(server::server))
        .routes(routes!(streams::list))
        .routes(routes!(streams::one))
        .routes(routes!(connections::list))
        .routes(routes!(connections::one))
        .routes(routes!(server::refusals))
        .routes(routes!(events::events))
}

/// The routes of those who may operate.
pub(crate) fn operate_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(connections::kick))
        .routes(routes!(streams::switch))
        .routes(routes!(streams::record_start))
        .routes(routes!(streams::record_stop))
        .routes(routes!(streams::forward_start))
        .routes(routes!(streams::forward_stop))
        .routes(routes!(streams::reset_counters))
}

/// The routes of those who may administer.
pub(crate) fn admin_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(config::whole))
        .routes(routes!(config::section, config::put, config::patch, config::delete))
        .routes(routes!(config::check))
        .routes(routes!(config::reload))
        .routes(routes!(server::drain))
}

/// The routes that decide by themselves about a caller.
pub(crate) fn open_routes() -> OpenApiRouter<Shared> {
    OpenApiRouter::new()
        .routes(routes!(open::session))
        .routes(routes!(open::ticket))
        .routes(routes!(recordings::list))
        .routes(routes!(recordings::excerpt))
}

/// An answer of JSON that is written already.
pub(crate) fn json_text(text: String) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Reads a body of JSON.
fn parse<T: DeserializeOwned>(body: &Bytes) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::bad_request(format!("the body is not as documented: {error}")))
}
