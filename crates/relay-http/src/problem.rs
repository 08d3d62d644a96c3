//! Errors as RFC 9457 has them.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::relay::Fault;
use crate::report::ConfigProblem;

/// The body of an answer that tells why a request was not done: RFC 9457,
/// `application/problem+json`.
#[derive(Clone, Debug, Eq, PartialEq, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The HTTP status.
    status: u16,
    /// The status in words.
    title: &'static str,
    /// The fault, and what would be right.
    detail: String,
    /// The faults of a configuration.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    errors: Vec<ConfigProblem>,
}

impl Problem {
    /// A problem with this status.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { status: status.as_u16(), title, detail: detail.into(), errors: Vec::new() }
    }

    /// 404 for a stream.
    pub(crate) fn no_stream(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no stream `{name}`"))
    }

    /// 404 for a connection.
    pub(crate) fn no_connection(id: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, format!("there is no connection `{id}`"))
    }

    /// 400.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The fault in words.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        let status = match &fault {
            Fault::NotFound(_) => StatusCode::NOT_FOUND,
            Fault::Conflict(_) => StatusCode::CONFLICT,
            Fault::Invalid(..) => StatusCode::UNPROCESSABLE_ENTITY,
            Fault::Stale(_) => StatusCode::PRECONDITION_FAILED,
            Fault::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            Fault::Unsupported(_) => StatusCode::NOT_IMPLEMENTED,
            Fault::Failed(_) => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let mut problem = Self::new(status, fault.to_string());
        if let Fault::Invalid(_, errors) = fault {
            problem.errors = errors;
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self)).into_response();
        let kind = HeaderValue::from_static("application/problem+json");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer realm=\"punctual relay\"");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response
    }
}
