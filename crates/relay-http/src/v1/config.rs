//! The configuration: the whole, sections of streams, a check, and reading it again.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, StatusCode, header};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::parse;
use crate::app::Shared;
use crate::problem::Problem;
use crate::relay::{ConfigSection, SectionChange, SectionEdit};
use crate::report::{ConfigProblem, ReloadReport};

/// The configuration in force, with the origin of each value. Secrets are left out.
#[utoipa::path(
    get, path = "/v1/config", operation_id = "getConfig", tag = "config",
    responses((status = 200, body = Value)),
)]
pub(super) async fn whole(State(app): State<Shared>) -> Json<Value> {
    Json(app.relay().configuration().await)
}

/// The section of a stream or a pattern. `ETag` has its version.
#[utoipa::path(
    get, path = "/v1/config/streams/{name}", operation_id = "getStreamConfig", tag = "config",
    params(("name" = String, Path, description = "A stream's name or a pattern of names")),
    responses((status = 200, body = Value), (status = 404, body = Problem)),
)]
pub(super) async fn section(
    State(app): State<Shared>,
    Path(name): Path<String>,
) -> Result<Section, Problem> {
    let found = app.relay().stream_section(&name).await;
    found.map(shown).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, format!("the configuration has no section `{name}`"))
    })
}

/// How to change a section.
#[derive(Deserialize, utoipa::IntoParams)]
pub(super) struct Manner {
    /// Whether the change outlives a restart. It is written to a file of its own.
    #[serde(default)]
    persist: bool,
}

/// Sets the section of a stream or a pattern to these values. With `If-Match` only the version of
/// that `ETag`.
#[utoipa::path(
    put, path = "/v1/config/streams/{name}", operation_id = "putStreamConfig", tag = "config",
    params(("name" = String, Path, description = "A stream's name or a pattern of names"), Manner),
    request_body = Value,
    responses(
        (status = 200, body = Value), (status = 412, body = Problem),
        (status = 422, body = Problem),
    ),
)]
pub(super) async fn put(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(manner): Query<Manner>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Section, Problem> {
    change(&app, name, &manner, &headers, SectionEdit::Put(parse(&body)?)).await
}

/// Changes these values of the section; `null` takes a value away. With `If-Match` only the version
/// of that `ETag`.
#[utoipa::path(
    patch, path = "/v1/config/streams/{name}", operation_id = "patchStreamConfig", tag = "config",
    params(("name" = String, Path, description = "A stream's name or a pattern of names"), Manner),
    request_body = Value,
    responses(
        (status = 200, body = Value), (status = 412, body = Problem),
        (status = 422, body = Problem),
    ),
)]
pub(super) async fn patch(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(manner): Query<Manner>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Section, Problem> {
    change(&app, name, &manner, &headers, SectionEdit::Patch(parse(&body)?)).await
}

/// Takes the section away. With `If-Match` only the version of that `ETag`.
#[utoipa::path(
    delete, path = "/v1/config/streams/{name}", operation_id = "deleteStreamConfig",
    tag = "config",
    params(("name" = String, Path, description = "A stream's name or a pattern of names"), Manner),
    responses((status = 204), (status = 404, body = Problem), (status = 412, body = Problem)),
)]
pub(super) async fn delete(
    State(app): State<Shared>,
    Path(name): Path<String>,
    Query(manner): Query<Manner>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let deleted = change(&app, name, &manner, &headers, SectionEdit::Delete).await;
    deleted.map(|_| StatusCode::NO_CONTENT)
}

type Section = ([(HeaderName, String); 1], Json<Value>);

fn shown(section: ConfigSection) -> Section {
    ([(header::ETAG, format!("\"{}\"", section.version))], Json(section.values))
}

async fn change(
    app: &Shared,
    name: String,
    manner: &Manner,
    headers: &HeaderMap,
    edit: SectionEdit,
) -> Result<Section, Problem> {
    if let SectionEdit::Put(values) | SectionEdit::Patch(values) = &edit
        && !values.is_object()
    {
        return Err(Problem::bad_request("the body is an object with keys of a stream's section"));
    }
    let if_version = match headers.get(header::IF_MATCH) {
        None => None,
        Some(tag) => Some(version(tag.as_bytes()).ok_or_else(|| {
            Problem::bad_request("`If-Match` has the one `ETag` of a section, in quotes")
        })?),
    };
    let change = SectionChange { name, edit, if_version, persist: manner.persist };
    Ok(shown(app.relay().change_section(change).await?))
}

/// The version in an entity tag.
fn version(tag: &[u8]) -> Option<String> {
    let tag = str::from_utf8(tag).ok()?.trim();
    let version = tag.strip_prefix('"')?.strip_suffix('"')?;
    (!version.contains('"')).then(|| version.to_owned())
}

/// The faults of a configuration.
#[derive(Serialize, ToSchema)]
pub(super) struct CheckReport {
    /// Whether the relay would take it.
    valid: bool,
    /// Its faults, in their order in the file.
    errors: Vec<ConfigProblem>,
}

/// Checks a configuration file and changes nothing. The body is TOML.
#[utoipa::path(
    post, path = "/v1/config:check", operation_id = "checkConfig", tag = "config",
    request_body(content = String, content_type = "application/toml"),
    responses((status = 200, body = CheckReport), (status = 400, body = Problem)),
)]
pub(super) async fn check(
    State(app): State<Shared>,
    body: Bytes,
) -> Result<Json<CheckReport>, Problem> {
    let file =
        str::from_utf8(&body).map_err(|_| Problem::bad_request("a configuration is UTF-8"))?;
    let errors = app.relay().check(file).await;
    Ok(Json(CheckReport { valid: errors.is_empty(), errors }))
}

/// Reads the configuration files again and applies the difference, or changes nothing.
#[utoipa::path(
    post, path = "/v1/reload", operation_id = "reload", tag = "config",
    responses((status = 200, body = ReloadReport), (status = 422, body = Problem)),
)]
pub(super) async fn reload(State(app): State<Shared>) -> Result<Json<ReloadReport>, Problem> {
    Ok(Json(app.relay().reload().await?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entity_tag_has_quotes() {
        assert_eq!(version(b"\"v1\""), Some("v1".to_owned()));
        for wrong in ["v1", "\"v1", "W/\"v1\"", "\"a\", \"b\"", "*", ""] {
            assert_eq!(version(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
