//! The page: plain files in the program, under a strict Content-Security-Policy.

use axum::Router;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use crate::app::Shared;
use crate::play::PLAYER_JS;

/// The routes, which anybody may ask: the page itself knows nothing.
pub(crate) fn routes() -> Router<Shared> {
    let page = get(async || html(include_str!("page/index.html"), "'none'"));
    // Any page may embed the player, which has no buttons that change the relay.
    let watch = get(async || html(include_str!("page/watch.html"), "*"));
    let mut routes = Router::new().route("/", page).route("/watch/{*name}", watch);
    for (path, kind, text) in FILES {
        let file = get(async move || answer(kind, text).into_response());
        routes = routes.route(path, file);
    }
    routes
}

/// The files that the pages name: path, media type, text.
const FILES: [(&str, &str, &str); 12] = [
    ("/page/relay.css", "text/css", include_str!("page/relay.css")),
    ("/page/relay.js", JAVASCRIPT, include_str!("page/relay.js")),
    ("/page/api.js", JAVASCRIPT, include_str!("page/api.js")),
    ("/page/dom.js", JAVASCRIPT, include_str!("page/dom.js")),
    ("/page/chart.js", JAVASCRIPT, include_str!("page/chart.js")),
    ("/page/history.js", JAVASCRIPT, include_str!("page/history.js")),
    ("/page/recordings.js", JAVASCRIPT, include_str!("page/recordings.js")),
    ("/page/table.js", JAVASCRIPT, include_str!("page/table.js")),
    ("/page/stream.js", JAVASCRIPT, include_str!("page/stream.js")),
    ("/page/watch.js", JAVASCRIPT, include_str!("page/watch.js")),
    ("/page/player.js", JAVASCRIPT, PLAYER_JS),
    ("/page/icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
];

const JAVASCRIPT: &str = "text/javascript";

fn answer(kind: &'static str, text: &'static str) -> impl IntoResponse {
    // The browser asks again after an upgrade of the relay.
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, "no-cache")], text)
}

fn html(text: &'static str, ancestors: &str) -> Response {
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
         connect-src 'self'; media-src 'self' blob:; frame-src 'self'; base-uri 'none'; \
         form-action 'none'; frame-ancestors {ancestors}"
    );
    ([(header::CONTENT_SECURITY_POLICY, policy)], answer("text/html; charset=utf-8", text))
        .into_response()
}
