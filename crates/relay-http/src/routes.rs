//! The routes of the service, and the right that each needs.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Extension, Router};
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;

use crate::access::{Caller, Right};
use crate::app::{App, Shared};
use crate::problem::Problem;
use crate::{compat, guard, health, metrics, page, v1, watch};

/// The whole service: API, page, player, metrics and health.
pub fn router(app: &Arc<App>) -> Router {
    let (api, document) = api(app).split_for_parts();
    let document: Arc<str> = document.to_pretty_json().unwrap_or_default().into();
    let serve_document = move || async move { v1::json_text(document.to_string()) };
    let read_only = Router::new()
        .merge(compat::read_routes())
        .route_layer(from_fn_with_state(needs(app, Right::Read), pass));
    let operate = Router::new()
        .merge(compat::operate_routes())
        .route_layer(from_fn_with_state(needs(app, Right::Operate), pass));
    let metrics = Router::new()
        .route("/metrics", get(metrics::answer))
        .route_layer(from_fn_with_state(needs(app, Right::Metrics), pass));
    let routes = api
        .merge(read_only)
        .merge(operate)
        .merge(metrics)
        .merge(watch::routes())
        .merge(health::routes())
        .merge(page::routes())
        .route("/v1/openapi.json", get(serve_document))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method);
    guard::around(app, routes).with_state(Arc::clone(app))
}

/// Metrics and health alone, for a port of their own.
pub fn metrics_router(app: &Arc<App>) -> Router {
    let metrics = Router::new()
        .route("/metrics", get(metrics::answer))
        .route_layer(from_fn_with_state(needs(app, Right::Metrics), pass));
    let routes = metrics.merge(health::routes()).fallback(nothing_here);
    guard::around(app, routes).with_state(Arc::clone(app))
}

/// The OpenAPI document of `/v1`.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let all = v1::read_routes()
        .merge(v1::operate_routes())
        .merge(v1::admin_routes())
        .merge(v1::open_routes());
    with_document(all).into_openapi()
}

fn api(app: &Arc<App>) -> OpenApiRouter<Shared> {
    let all = v1::read_routes()
        .route_layer(from_fn_with_state(needs(app, Right::Read), pass))
        .merge(
            v1::operate_routes().route_layer(from_fn_with_state(needs(app, Right::Operate), pass)),
        )
        .merge(
            v1::admin_routes().route_layer(from_fn_with_state(needs(app, Right::Administer), pass)),
        )
        .merge(v1::open_routes())
        .layer(from_fn(as_problem));
    with_document(all)
}

/// Gives the refusal of a path or a query that cannot be read, which is plain text, as a problem.
async fn as_problem(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let kind = response.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_refusal = response.status().is_client_error() || response.status().is_server_error();
    if !is_refusal || !kind.is_some_and(|it| it.starts_with(b"text/plain")) {
        return response;
    }
    let status = response.status();
    let text = to_bytes(response.into_body(), 4_096).await.unwrap_or_default();
    Problem::new(status, String::from_utf8_lossy(&text)).into_response()
}

fn with_document(routes: OpenApiRouter<Shared>) -> OpenApiRouter<Shared> {
    OpenApiRouter::with_openapi(Document::openapi()).merge(routes)
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "Punctual relay",
        description = "Streams, connections, recordings and configuration of a relay. Names of \
                       streams are one segment of a path: `/` in a name is written `%2F`. Errors \
                       are RFC 9457.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    modifiers(&Security),
)]
struct Document;

struct Security;

impl utoipa::Modify for Security {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        use utoipa::openapi::security::{
            Http, HttpAuthScheme, SecurityRequirement, SecurityScheme,
        };
        let components = openapi.components.get_or_insert_default();
        let scheme = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
        components.add_security_scheme("token", scheme);
        let token = SecurityRequirement::new::<_, [&str; 0], &str>("token", []);
        openapi.security = Some(vec![token]);
    }
}

/// A right that the routes of a router need.
#[derive(Clone)]
struct Needs {
    app: Arc<App>,
    right: Right,
}

fn needs(app: &Arc<App>, right: Right) -> Needs {
    Needs { app: Arc::clone(app), right }
}

async fn pass(
    State(Needs { app, right }): State<Needs>,
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    match app.require(&caller, &right).await {
        Ok(_) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

async fn nothing_here(request: Request) -> Problem {
    let path = request.uri().path();
    let detail = format!("there is nothing at `{path}`; `/v1/openapi.json` lists the API");
    Problem::new(StatusCode::NOT_FOUND, detail)
}

async fn wrong_method(request: Request) -> Problem {
    let detail = format!("`{}` has no method {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
