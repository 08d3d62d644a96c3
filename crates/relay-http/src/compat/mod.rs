//! The endpoints of other servers that people's programs read.

mod mediamtx;
mod srt_live_server;

use axum::Router;
use axum::routing::{any, get, post};

use crate::app::Shared;

/// The routes of those who may read.
pub(crate) fn read_routes() -> Router<Shared> {
    Router::new()
        .route("/v3/info", get(mediamtx::info))
        .route("/v3/paths/list", get(mediamtx::paths))
        .route("/v3/paths/get/{*name}", get(mediamtx::path))
        .route("/v3/srtconns/list", get(mediamtx::connections))
        .route("/v3/srtconns/get/{id}", get(mediamtx::connection))
        .route("/v3/{*rest}", any(mediamtx::not_here))
        .route("/stats", get(srt_live_server::all))
        .route("/stats/{*publisher}", get(srt_live_server::one))
}

/// The routes of those who may operate.
pub(crate) fn operate_routes() -> Router<Shared> {
    Router::new().route("/v3/srtconns/kick/{id}", post(mediamtx::kick))
}
