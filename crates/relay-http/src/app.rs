//! The relay's HTTP service: its state.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;

use crate::access::{Access, Allowed, Caller, Right, Verdict};
use crate::kept_streams::KeptStreams;
use crate::numbers::Numbers;
use crate::problem::Problem;
use crate::relay::Relay;

/// The relay's HTTP service.
pub struct App {
    relay: Arc<dyn Relay>,
    access: Arc<dyn Access>,
    settings: Settings,
    numbers: Numbers,
    kept_streams: KeptStreams,
}

/// The service as handlers share it.
pub(crate) type Shared = Arc<App>;

/// The settings of the service.
#[derive(Clone)]
pub struct Settings {
    /// Origins of pages that may use the API and whose host names are this relay's:
    /// `https://relay.example:9997`.
    pub origins: Vec<String>,
    /// Whether the proxy at this address tells the caller's address by `X-Forwarded-For`.
    pub trusts_proxy: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// The streams that have series of their own in metrics; the sum of the rest has the name
    /// `other`.
    pub metrics_max_streams: usize,
    /// The most bytes in the body of a request.
    pub max_body: usize,
    /// The time for the body of a request.
    pub body_timeout: Duration,
}

impl Default for Settings {
    /// No foreign origin, no proxy, 500 streams, and 256 KiB in 10 s.
    fn default() -> Self {
        Self {
            origins: Vec::new(),
            trusts_proxy: Arc::new(|_| false),
            metrics_max_streams: 500,
            max_body: 256 << 10,
            body_timeout: Duration::from_secs(10),
        }
    }
}

impl App {
    /// The service of this relay, for those whom `access` lets in.
    pub fn new(relay: Arc<dyn Relay>, access: Arc<dyn Access>, settings: Settings) -> Arc<Self> {
        let kept_streams = KeptStreams::new(settings.metrics_max_streams);
        Arc::new(Self { relay, access, settings, numbers: Numbers::default(), kept_streams })
    }

    /// The relay.
    pub(crate) fn relay(&self) -> &dyn Relay {
        &*self.relay
    }

    /// Those whom the service lets in.
    pub(crate) fn access(&self) -> &dyn Access {
        &*self.access
    }

    /// The settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The numbers of all streams, shared by all pages.
    pub(crate) fn numbers(&self) -> &Numbers {
        &self.numbers
    }

    /// The streams that have series of their own.
    pub(crate) fn kept_streams(&self) -> &KeptStreams {
        &self.kept_streams
    }

    /// Lets a caller pass who has the right, and gives the terms.
    ///
    /// # Errors
    ///
    /// 401 or 403.
    pub(crate) async fn require(&self, caller: &Caller, right: &Right) -> Result<Allowed, Problem> {
        match self.access.decide(caller, right).await {
            Verdict::Allowed(terms) => Ok(terms),
            Verdict::Unknown => Err(Problem::new(
                StatusCode::UNAUTHORIZED,
                "a token is missing or wrong: send `Authorization: Bearer TOKEN`",
            )),
            Verdict::Forbidden => {
                let detail = format!("this caller may not {}", verb(right));
                Err(Problem::new(StatusCode::FORBIDDEN, detail))
            }
        }
    }
}

fn verb(right: &Right) -> String {
    match right {
        Right::Read => "read the relay's state".to_owned(),
        Right::Operate => "operate the relay".to_owned(),
        Right::Administer => "administer the relay".to_owned(),
        Right::Metrics => "read metrics".to_owned(),
        Right::View(stream) => format!("view the stream `{stream}`"),
        Right::Playback(stream) => format!("take the recordings of `{stream}`"),
    }
}
