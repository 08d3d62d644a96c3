//! HTTP as a client: callouts, and keys of JSON web tokens.

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::builderstates::WantsProtocols1;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use punctual_units::{DisplayDuration, without_os_error};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, ConfigBuilder, WantsVerifier};
use thiserror::Error;

use crate::one_certificate::OneCertificate;
use crate::query::decoded;

/// The address of a server that the relay asks: `http://` or `https://`, with a login before the
/// host if it wants one. The login and the query are not shown.
#[derive(Clone, Eq, PartialEq)]
pub struct Url {
    uri: Uri,
    authorization: Option<HeaderValue>,
}

/// A text that is no address of a server.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("the address must be http://HOST/… or https://HOST/…{0}")]
pub struct UrlError(String);

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        let error = |why: &str| UrlError(why.to_owned());
        let (scheme, rest) = text.split_once("://").ok_or_else(|| error(""))?;
        if !["http", "https"].contains(&scheme) {
            return Err(error(""));
        }
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (place, path) = rest.split_at(end);
        let (login, host) = match place.rsplit_once('@') {
            Some((login, host)) => (Some(login), host),
            None => (None, place),
        };
        if host.is_empty() || host.starts_with(':') {
            return Err(error("; the host is missing"));
        }
        let path = path.split('#').next().unwrap_or_default();
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let uri = format!("{scheme}://{host}{path}").parse();
        let uri = uri.map_err(|_| error("; a character in it must be percent-encoded"))?;
        let authorization = login.map(|login| {
            let (user, password) = login.split_once(':').unwrap_or((login, ""));
            let pair = format!("{}:{}", decoded(user), decoded(password));
            let mut value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)))
                .expect("base64 is fit for a header");
            value.set_sensitive(true);
            value
        });
        Ok(Self { uri, authorization })
    }
}

impl Url {
    fn is_secure(&self) -> bool {
        self.uri.scheme_str() == Some("https")
    }
}

/// Without the login and the query.
impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.uri.authority().map_or("", |it| it.as_str());
        write!(f, "{}://{host}{}", self.uri.scheme_str().unwrap_or_default(), self.uri.path())
    }
}

impl fmt::Debug for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{self}\"")
    }
}

/// A client of one server.
#[derive(Clone)]
pub struct Web {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    url: Url,
    timeout: Duration,
}

/// A server's answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) is_json: bool,
    pub(crate) body: Bytes,
}

/// A server that gave no answer.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum WebError {
    /// The system's certificates of authorities cannot be used.
    #[error("no certificates of authorities were found on this system, which https needs: {0}")]
    Roots(String),
    /// The file with the server's certificate cannot be used.
    #[error("{0}")]
    Certificate(String),
    /// No answer came in time.
    #[error("no answer came from {url} within {:#}", DisplayDuration(*.time))]
    Timeout {
        /// The server, without secrets.
        url: String,
        /// The time.
        time: Duration,
    },
    /// The answer is too long.
    #[error("the answer of {url} has more than {most} bytes")]
    TooLong {
        /// The server, without secrets.
        url: String,
        /// The most bytes.
        most: usize,
    },
    /// The connection failed.
    #[error("{url}: {why}")]
    Failed {
        /// The server, without secrets.
        url: String,
        /// The failure.
        why: String,
    },
}

impl Web {
    /// A client of the server at `url`, which waits so long for a whole answer.
    ///
    /// # Errors
    ///
    /// The URL has `https`, and the system's certificates of authorities cannot be used.
    pub fn new(url: Url, timeout: Duration) -> Result<Self, WebError> {
        let builder = HttpsConnectorBuilder::new();
        let builder = if url.is_secure() {
            let roots = |error: std::io::Error| WebError::Roots(error.to_string());
            let provider = aws_lc_rs::default_provider();
            builder.with_provider_and_native_roots(provider).map_err(roots)?
        } else {
            // Nothing is trusted, because nothing is asked by TLS.
            let none = rustls::RootCertStore::empty();
            builder.with_tls_config(tls()?.with_root_certificates(none).with_no_client_auth())
        };
        Ok(Self::by(builder.https_or_http(), url, timeout))
    }

    /// A client of the server whose certificate is the first one in a file, whatever its name.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no certificate.
    pub fn of_certificate(url: Url, timeout: Duration, file: &Path) -> Result<Self, WebError> {
        let trusted = OneCertificate::from_file(file).map_err(WebError::Certificate)?;
        let config = tls()?.dangerous().with_custom_certificate_verifier(Arc::new(trusted));
        let builder = HttpsConnectorBuilder::new().with_tls_config(config.with_no_client_auth());
        Ok(Self::by(builder.https_or_http(), url, timeout))
    }

    fn by(builder: HttpsConnectorBuilder<WantsProtocols1>, url: Url, timeout: Duration) -> Self {
        let mut http = HttpConnector::new();
        http.enforce_http(false);
        http.set_nodelay(true);
        http.set_connect_timeout(Some(timeout));
        let connector = builder.enable_http1().wrap_connector(http);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(MAX_IDLE)
            .build(connector);
        Self { client, url, timeout }
    }

    pub(crate) fn url(&self) -> &Url {
        &self.url
    }

    /// Gets what lies at the address, of at most `most` bytes.
    pub(crate) async fn get(&self, most: usize) -> Result<Answer, WebError> {
        self.ask(Method::GET, HeaderMap::new(), Bytes::new(), most).await
    }

    /// Gets the status and the text of what lies at the address.
    ///
    /// # Errors
    ///
    /// No answer came.
    pub async fn read(&self) -> Result<(StatusCode, String), WebError> {
        let answer = self.get(ANSWER_MOST).await?;
        Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned()))
    }

    /// Sends a body with these headers, and gives the status of the answer.
    ///
    /// # Errors
    ///
    /// No answer came.
    pub async fn send(&self, headers: HeaderMap, body: Bytes) -> Result<StatusCode, WebError> {
        Ok(self.ask(Method::POST, headers, body, ANSWER_MOST).await?.status)
    }

    /// Sends a body of this type.
    pub(crate) async fn post(
        &self,
        content_type: &'static str,
        body: Bytes,
        most: usize,
    ) -> Result<Answer, WebError> {
        let content_type = HeaderValue::from_static(content_type);
        self.ask(Method::POST, HeaderMap::from_iter([(CONTENT_TYPE, content_type)]), body, most)
            .await
    }

    async fn ask(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Bytes,
        most: usize,
    ) -> Result<Answer, WebError> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = self.url.uri.clone();
        *request.headers_mut() = headers;
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, HeaderValue::from_static(PROGRAM));
        if let Some(authorization) = &self.url.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        let answer = async {
            let response =
                self.client.request(request).await.map_err(|error| self.failed(&error))?;
            let (head, body) = response.into_parts();
            let body =
                Limited::new(body, most).collect().await.map_err(|error| match error
                    .is::<LengthLimitError>(
                ) {
                    true => WebError::TooLong { url: self.url.to_string(), most },
                    false => self.failed(&*error),
                })?;
            let is_json = head.headers.get(CONTENT_TYPE).is_some_and(is_json);
            Ok(Answer { status: head.status, is_json, body: body.to_bytes() })
        };
        let late = |_| WebError::Timeout { url: self.url.to_string(), time: self.timeout };
        tokio::time::timeout(self.timeout, answer).await.map_err(late)?
    }

    /// The failure in the words of its deepest cause.
    fn failed(&self, error: &dyn Error) -> WebError {
        let mut cause = error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        let why = without_os_error(&cause.to_string()).into_owned();
        WebError::Failed { url: self.url.to_string(), why }
    }
}

impl fmt::Debug for Web {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.url.fmt(f)
    }
}

/// The start of the settings for TLS.
fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, WebError> {
    ClientConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .map_err(|error| WebError::Roots(error.to_string()))
}

fn is_json(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default().to_ascii_lowercase();
    let kind = text.split(';').next().unwrap_or_default().trim();
    kind == "application/json" || kind.ends_with("+json")
}

/// The time after which an unused connection is closed.
const IDLE: Duration = Duration::from_secs(30);
/// The most bytes of an answer that is small.
const ANSWER_MOST: usize = 64 << 10;
/// The most unused connections.
const MAX_IDLE: usize = 16;
const PROGRAM: &str = concat!("punctual-relay/", env!("CARGO_PKG_VERSION"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_login_and_query() {
        let url: Url = "https://ann:hush@auth.example:8443/srt?key=hush".parse().expect("a URL");
        assert_eq!(format!("{url} {url:?}"), {
            let shown = "https://auth.example:8443/srt";
            format!("{shown} \"{shown}\"")
        });
        assert_eq!(url.uri.query(), Some("key=hush"));
        assert!(url.authorization.is_some() && url.is_secure());
        let plain: Url = "http://[::1]:80?x=1".parse().expect("a URL");
        assert_eq!(plain.to_string(), "http://[::1]:80/");
    }

    #[test]
    fn texts_that_are_no_addresses_are_refused() {
        for text in
            ["", "auth.example", "ftp://h/", "http://", "http:///x", "http://h/a b", "x://y"]
        {
            let error = text.parse::<Url>().expect_err("no URL").to_string();
            assert!(error.starts_with("the address must be http://HOST"), "{text}: {error}");
        }
    }
}
