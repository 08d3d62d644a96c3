//! `[http]` and `[drain]`: the page, the API and the metrics; the end of the relay.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use punctual_relay_access::{Network, Url};

use crate::listener::{TlsFiles, networks, shown_networks, shown_path};
use crate::problem::Faults;
use crate::rows::{KeyFacts, KeyRow, ReloadEffect, Shown, store};
use crate::secret::SecretValue;
use crate::toml_text::{quoted, shown_list, shown_text, shown_time};
use crate::value::Value;

/// The page, the API and the metrics.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HttpSettings {
    /// The address of page, API, metrics and health; `None`: there is no HTTP.
    pub listen: Option<SocketAddr>,
    /// A further address for metrics and health only.
    pub metrics: Option<SocketAddr>,
    /// The certificate and its key; without them it is plain HTTP.
    pub tls: TlsFiles,
    /// Proxies whose `X-Forwarded-For` tells the address of the client.
    pub trusted_proxies: Vec<Network>,
    /// Origins of other pages that may use the API; `*`: all.
    pub origins: Vec<String>,
}

/// The end of the relay after SIGTERM or by the API.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct DrainSettings {
    /// The time after which the relay ends, whoever is still connected.
    pub timeout: Duration,
    /// The time over which viewers are ended in slices.
    pub spread: Duration,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self {
            listen: Some(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 9997)),
            metrics: None,
            tls: TlsFiles::default(),
            trusted_proxies: Vec::new(),
            origins: Vec::new(),
        }
    }
}

impl Default for DrainSettings {
    fn default() -> Self {
        Self { timeout: Duration::from_secs(30), spread: Duration::from_secs(10) }
    }
}

impl DrainSettings {
    /// The fault of both keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        (self.spread > self.timeout).then(|| "`spread` is longer than `timeout`".to_owned())
    }
}

/// An address, or `off`.
fn address_or_off(value: &Value<'_>) -> Result<Option<SocketAddr>, Faults> {
    match value.text(100)? {
        "off" => Ok(None),
        _ => value.address().map(Some),
    }
}

fn shown_address<'a>(address: Option<SocketAddr>) -> Shown<'a> {
    shown_text(address.map_or_else(|| "off".to_owned(), |address| address.to_string()))
}

fn origins(value: &Value<'_>) -> Result<Vec<String>, Faults> {
    value.list(100, |part| {
        let text = part.filled_text(300)?;
        let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
        let is_host =
            |host: &str| !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ', '*']);
        match host {
            _ if text == "*" => Ok(text.to_owned()),
            Some(host) if is_host(host) => Ok(text.to_ascii_lowercase()),
            _ => Err(Faults::from(format!("`{text}` is not an origin like https://tv.example"))),
        }
    })
}

const fn facts(
    name: &'static str,
    form: &'static str,
    reload: ReloadEffect,
    habit: &'static str,
    meaning: &'static str,
) -> KeyFacts {
    KeyFacts { section: "http", name, form, meaning, habit, reload }
}

use ReloadEffect::{Live, NewConnections, Restart};

/// The keys of `[http]`.
pub(crate) const HTTP: &[KeyRow<HttpSettings>] = &[
    KeyRow {
        facts: facts(
            "listen",
            "an address with a port, like \"127.0.0.1:9997\" or \":9997\", or \"off\"",
            Restart,
            "MediaMTX: apiAddress",
            "the address of page, API, metrics and health",
        ),
        set: |it, value| store(&mut it.listen, address_or_off(value)),
        show: |it| shown_address(it.listen),
    },
    KeyRow {
        facts: facts(
            "metrics",
            "an address with a port, like \":9998\", or \"off\"",
            Restart,
            "MediaMTX: metricsAddress",
            "a further address, for metrics and health only",
        ),
        set: |it, value| store(&mut it.metrics, address_or_off(value)),
        show: |it| shown_address(it.metrics),
    },
    KeyRow {
        facts: facts(
            "tls-cert",
            "the path of a file in PEM",
            NewConnections,
            "MediaMTX: apiServerCert",
            "the certificate with its chain; without it the relay speaks plain HTTP",
        ),
        set: |it, value| store(&mut it.tls.certificate, value.file().map(Some)),
        show: |it| shown_path(it.tls.certificate.as_ref()),
    },
    KeyRow {
        facts: facts(
            "tls-key",
            "the path of a file in PEM",
            NewConnections,
            "MediaMTX: apiServerKey",
            "the key of the certificate",
        ),
        set: |it, value| store(&mut it.tls.key, value.file().map(Some)),
        show: |it| shown_path(it.tls.key.as_ref()),
    },
    KeyRow {
        facts: facts(
            "trusted-proxies",
            "a list of IP addresses and networks, like [\"10.0.0.0/8\"]",
            Live,
            "MediaMTX: apiTrustedProxies",
            "proxies whose `X-Forwarded-For` names the client's address",
        ),
        set: |it, value| store(&mut it.trusted_proxies, networks(value)),
        show: |it| shown_networks(&it.trusted_proxies),
    },
    KeyRow {
        facts: facts(
            "origins",
            "a list of origins, like [\"https://tv.example\"], or [\"*\"] for all",
            Live,
            "MediaMTX: apiAllowOrigins",
            "other pages that may use the API in a browser",
        ),
        set: |it, value| store(&mut it.origins, origins(value)),
        show: |it| shown_list(&it.origins),
    },
];

/// The keys of `[drain]`.
pub(crate) const DRAIN: &[KeyRow<DrainSettings>] = &[
    KeyRow {
        facts: KeyFacts {
            section: "drain",
            name: "timeout",
            form: "a time from \"0s\" to \"1d\"",
            meaning: "the time after which a drained relay ends, whoever is still connected",
            habit: "",
            reload: Live,
        },
        set: |it, value| store(&mut it.timeout, value.time(Duration::ZERO..=DAY)),
        show: |it| shown_time(it.timeout),
    },
    KeyRow {
        facts: KeyFacts {
            section: "drain",
            name: "spread",
            form: "a time from \"0s\" to \"1d\", at most `timeout`",
            meaning: "the time over which viewers are ended in slices; publishers end last",
            habit: "",
            reload: Live,
        },
        set: |it, value| store(&mut it.spread, value.time(Duration::ZERO..=DAY)),
        show: |it| shown_time(it.spread),
    },
];

const DAY: Duration = Duration::from_secs(86_400);

/// A URL of HTTP, as the value of a key.
pub(crate) fn url(value: &Value<'_>) -> Result<Option<SecretValue>, Faults> {
    let text = value.text(2_000)?;
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse::<Url>() {
        Ok(_) => Ok(Some(SecretValue::written(text))),
        Err(error) => Err(error.to_string().into()),
    }
}

/// A URL; `…` stands for its login and its query, which may be secrets.
pub(crate) fn shown_url<'a>(url: Option<&'a SecretValue>) -> Shown<'a> {
    let Some(value) = url else { return Shown::Nothing };
    let text = value.secret.expose();
    let shown = text.parse().map_or_else(|_| String::new(), |url: Url| url.to_string());
    let rest = if shown == text { "" } else { "…" };
    Shown::Hidden(vec![value], quoted(&(shown + rest)))
}
