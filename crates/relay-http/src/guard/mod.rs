//! The checks that every request passes before a handler sees it.
//!
//! Any page in a browser on this machine or in this network can send requests to the relay. So the
//! host has to be one of this relay's names, which defeats DNS rebinding; requests that change
//! something, and WebSockets, have to come from the relay's own page or from an origin of the
//! configuration; and other origins cannot read answers.

mod origin;

use std::net::IpAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use base64::Engine as _;

use self::origin::{Origins, authority};
use crate::access::{Caller, Credential};
use crate::app::{App, Settings, Shared};
use crate::problem::Problem;

/// The address of the other end of a connection, without proxies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// Puts the checks around all routes.
pub(crate) fn around(app: &Arc<App>, routes: Router<Shared>) -> Router<Shared> {
    let origins = Arc::new(Origins::new(&app.settings().origins));
    routes
        .layer(from_fn_with_state(Arc::clone(app), whole_body))
        .layer(from_fn_with_state((Arc::clone(app), origins), check))
}

async fn check(
    State((app, origins)): State<(Shared, Arc<Origins>)>,
    Extension(PeerAddress(peer)): Extension<PeerAddress>,
    mut request: Request,
    next: Next,
) -> Response {
    if let Err(problem) = check_host(&request, &origins) {
        return problem.into_response();
    }
    let origin = request.headers().get(header::ORIGIN).cloned();
    let allowed = origin.filter(|origin| origins.has(origin.as_bytes()));
    let mut response = if let Some(answer) = preflight(&request) {
        // Without the headers of `allow` the browser keeps the request back.
        answer
    } else if let Err(problem) = check_origin(&request, allowed.is_some()) {
        problem.into_response()
    } else {
        let caller = caller(peer, &request, app.settings());
        request.extensions_mut().insert(caller);
        next.run(request).await
    };
    if let Some(origin) = allowed {
        allow(response.headers_mut(), origin);
    }
    harden(response.headers_mut());
    response
}

/// The host has to be a name of this relay. Health is asked by load balancers under any name.
fn check_host(request: &Request, origins: &Origins) -> Result<(), Problem> {
    if matches!(request.uri().path(), "/livez" | "/readyz") {
        return Ok(());
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, more) = (hosts.next(), hosts.next());
    let Some(host) = host.filter(|_| more.is_none()).and_then(|host| host.to_str().ok()) else {
        return Err(Problem::bad_request("a request has one `Host` header"));
    };
    if origins.is_own_host(host) {
        return Ok(());
    }
    let detail = format!(
        "`{}` is no known name of this relay: call it by an IP address or `localhost`, or add \
         `http://{}` to `http.origins`",
        host.escape_default(),
        host.escape_default()
    );
    Err(Problem::new(StatusCode::MISDIRECTED_REQUEST, detail))
}

/// The answer to the question of a browser whether it may send a request.
fn preflight(request: &Request) -> Option<Response> {
    let is_preflight = request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    is_preflight.then(|| StatusCode::NO_CONTENT.into_response())
}

/// A request that changes something, and a WebSocket, comes from the relay's own page, from an
/// allowed origin, or from no browser at all.
fn check_origin(request: &Request, is_allowed: bool) -> Result<(), Problem> {
    let headers = request.headers();
    let is_safe = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS)
        && !headers.contains_key(header::UPGRADE);
    if is_safe || is_allowed {
        return Ok(());
    }
    let host = headers.get(header::HOST).map(HeaderValue::as_bytes).unwrap_or_default();
    let origin = headers.get(header::ORIGIN).map(HeaderValue::as_bytes);
    let from_own_page = origin.is_none_or(|it| authority(it).is_some_and(|it| it == host));
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    let same_site = site.is_none_or(|it| matches!(it, b"same-origin" | b"none"));
    if from_own_page && same_site {
        return Ok(());
    }
    let detail = "a page of another origin may not do this; `http.origins` lists those that may";
    Err(Problem::new(StatusCode::FORBIDDEN, detail))
}

/// Lets a page of this origin read the answer.
fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, If-Match, Last-Event-ID",
        ),
        (header::ACCESS_CONTROL_EXPOSE_HEADERS, "ETag"),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

/// Headers of every answer. A page sets its own policies.
fn harden(headers: &mut HeaderMap) {
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    }
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    headers.entry(resource).or_insert(HeaderValue::from_static("same-origin"));
}

/// The caller: the peer, or the address that a trusted proxy tells, and the proof of who calls.
fn caller(peer: IpAddr, request: &Request, settings: &Settings) -> Caller {
    let mut address = peer;
    let forwarded = request.headers().get_all("x-forwarded-for");
    let hops: Vec<&str> = forwarded
        .iter()
        .filter_map(|it| it.to_str().ok())
        .flat_map(|it| it.split(','))
        .map(str::trim)
        .collect();
    // The last hop is that of the nearest proxy; one that is trusted tells the hop before it.
    for hop in hops.iter().rev() {
        if !(settings.trusts_proxy)(address) {
            break;
        }
        let Ok(before) = hop.parse() else { break };
        address = before;
    }
    Caller { address: address.to_canonical(), credential: credential(request) }
}

fn credential(request: &Request) -> Credential {
    let header = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
    if let Some((scheme, value)) = header.and_then(|it| it.split_once(' ')) {
        let value = value.trim();
        if scheme.eq_ignore_ascii_case("bearer") {
            return Credential::Bearer(value.to_owned());
        }
        if scheme.eq_ignore_ascii_case("basic") {
            let bytes = base64::engine::general_purpose::STANDARD.decode(value).ok();
            let text = bytes.and_then(|it| String::from_utf8(it).ok());
            if let Some((user, password)) = text.as_deref().and_then(|it| it.split_once(':')) {
                let (user, password) = (user.to_owned(), password.to_owned());
                return Credential::Basic { user, password };
            }
        }
        return Credential::None;
    }
    let query = request.uri().query().unwrap_or_default();
    let ticket = query.split('&').find_map(|pair| pair.strip_prefix("ticket="));
    ticket.map_or(Credential::None, |ticket| Credential::Ticket(ticket.to_owned()))
}

/// Reads the body before a handler begins, in bounded time and up to a bounded size.
async fn whole_body(State(app): State<Shared>, request: Request, next: Next) -> Response {
    let has_body = !matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if !has_body {
        return next.run(request).await;
    }
    let settings = app.settings();
    let (parts, body) = request.into_parts();
    let read = to_bytes(body, settings.max_body);
    match tokio::time::timeout(settings.body_timeout, read).await {
        Ok(Ok(bytes)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok(Err(_)) => {
            let detail = format!("the body is broken or has more than {} bytes", settings.max_body);
            closing(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
        }
        Err(_) => {
            let detail = format!("the body took longer than {:?}", settings.body_timeout);
            closing(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
        }
    }
}

/// A problem after which the connection is of no use.
fn closing(problem: Problem) -> Response {
    let mut response = problem.into_response();
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
