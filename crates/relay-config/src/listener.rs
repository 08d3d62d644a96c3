//! `[[listen]]`: the addresses at which callers publish and view.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use punctual_relay_access::{Network, NetworkError, StreamName};

use crate::problem::Faults;
use crate::rows::{KeyFacts, KeyRow, ReloadEffect, Shown, store};
use crate::toml_text::{shown_list, shown_option, shown_plain, shown_text, shown_time};
use crate::value::{MOST_TEXT, Value};

/// One listening socket.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ListenerSettings {
    /// The address for SRT over UDP; exactly one of `srt` and `quic` is set.
    pub srt: Option<SocketAddr>,
    /// The address for SRT over QUIC.
    pub quic: Option<SocketAddr>,
    /// The certificate for QUIC and its key; without it a certificate is generated.
    pub tls: TlsFiles,
    /// The stream of callers that send no stream ID.
    pub stream: Option<StreamName>,
    /// The mode of callers whose stream ID names none.
    pub mode: CallerMode,
    /// The least latency; a caller's longer wish wins.
    pub latency: Duration,
    /// The time without a packet after which a connection ends.
    pub peer_idle_timeout: Duration,
    /// The most callers at one time.
    pub max_callers: u32,
    /// The most callers of one address at one time; 0: no limit.
    pub max_callers_per_address: u32,
    /// The most calls of a second.
    pub calls_per_second: u32,
    /// The networks whose callers are accepted; all, if there is none.
    pub allow: Vec<Network>,
    /// The networks whose callers are refused, also if `allow` has them.
    pub deny: Vec<Network>,
}

/// The files of a certificate and of its key.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct TlsFiles {
    /// The certificate with its chain, in PEM.
    pub certificate: Option<PathBuf>,
    /// The key, in PEM.
    pub key: Option<PathBuf>,
}

/// The purpose of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CallerMode {
    /// The caller publishes.
    Publish,
    /// The caller views.
    #[default]
    Request,
}

impl ListenerSettings {
    /// The address, whatever the carriage; `None` before the check.
    pub fn address(&self) -> Option<SocketAddr> {
        self.srt.or(self.quic)
    }

    /// The address as a URI, which identifies the listener: `srt://[::]:8890`.
    pub fn uri(&self) -> String {
        match (self.srt, self.quic) {
            (None, Some(address)) => format!("srt+quic://{address}"),
            (srt, _) => srt.map_or_else(String::new, |address| format!("srt://{address}")),
        }
    }

    /// A table that says nothing: no address.
    pub(crate) fn unset() -> Self {
        Self { srt: None, ..Self::default() }
    }

    /// The fault of several keys together.
    pub(crate) fn fault(&self) -> Option<String> {
        let message = match (self.srt, self.quic) {
            (None, None) => "it has no address: write `srt = \":8890\"` or `quic = \":8890\"`",
            (Some(_), Some(_)) => {
                "it has `srt` and `quic`; a table is one socket: write a `[[listen]]` for each"
            }
            (Some(_), None) if self.tls != TlsFiles::default() => {
                "`tls-cert` and `tls-key` belong to `quic`; SRT over UDP encrypts by passphrases"
            }
            _ => return self.tls.fault(),
        };
        Some(message.to_owned())
    }
}

impl Default for ListenerSettings {
    /// SRT over UDP on port 8890 of all addresses.
    fn default() -> Self {
        Self {
            srt: Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), DEFAULT_PORT)),
            quic: None,
            tls: TlsFiles::default(),
            stream: None,
            mode: CallerMode::Request,
            latency: Duration::from_millis(120),
            peer_idle_timeout: Duration::from_secs(5),
            max_callers: 10_000,
            max_callers_per_address: 0,
            calls_per_second: 200,
            allow: Vec::new(),
            deny: Vec::new(),
        }
    }
}

impl TlsFiles {
    /// The fault if only one of both files is named.
    pub(crate) fn fault(&self) -> Option<String> {
        let (given, missing) = match (&self.certificate, &self.key) {
            (Some(_), None) => ("tls-cert", "tls-key"),
            (None, Some(_)) => ("tls-key", "tls-cert"),
            _ => return None,
        };
        Some(format!("it has `{given}` without `{missing}`; a certificate needs both"))
    }
}

/// Reads a list of networks.
pub(crate) fn networks(value: &Value<'_>) -> Result<Vec<Network>, Faults> {
    value.list(MOST_NETWORKS, |part| {
        let text = part.text(100)?;
        text.parse().map_err(|error: NetworkError| Faults::from(error.to_string()))
    })
}

/// Networks in TOML.
pub(crate) fn shown_networks<'a>(networks: &[Network]) -> Shown<'a> {
    shown_list(networks.iter().map(ToString::to_string))
}

const fn facts(
    name: &'static str,
    form: &'static str,
    reload: ReloadEffect,
    habit: &'static str,
    meaning: &'static str,
) -> KeyFacts {
    KeyFacts { section: "listen", name, form, meaning, habit, reload }
}

use ReloadEffect::{Live, NewConnections, Restart};

/// The keys of `[[listen]]`.
pub(crate) const LISTEN: &[KeyRow<ListenerSettings>] = &[
    KeyRow {
        facts: facts(
            "srt",
            "an address with a port, like \"[::]:8890\" or \":8890\"",
            Live,
            "MediaMTX: srtAddress",
            "the address for SRT over UDP; each table is one socket",
        ),
        set: |it, value| store(&mut it.srt, value.address().map(Some)),
        show: |it| shown_option(it.srt.map(|address| address.to_string())),
    },
    KeyRow {
        facts: facts(
            "quic",
            "an address with a port, like \"[::]:8890\" or \":8890\"",
            Live,
            "",
            "the address for SRT over QUIC, in a table of its own",
        ),
        set: |it, value| store(&mut it.quic, value.address().map(Some)),
        show: |it| shown_option(it.quic.map(|address| address.to_string())),
    },
    KeyRow {
        facts: facts(
            "tls-cert",
            "the path of a file in PEM",
            Restart,
            "",
            "the certificate for `quic`, with its chain; without it one is generated at the start",
        ),
        set: |it, value| store(&mut it.tls.certificate, value.file().map(Some)),
        show: |it| shown_path(it.tls.certificate.as_ref()),
    },
    KeyRow {
        facts: facts(
            "tls-key",
            "the path of a file in PEM",
            Restart,
            "",
            "the key of the certificate",
        ),
        set: |it, value| store(&mut it.tls.key, value.file().map(Some)),
        show: |it| shown_path(it.tls.key.as_ref()),
    },
    KeyRow {
        facts: facts(
            "stream",
            "the name of a stream, like \"live/cam\"",
            NewConnections,
            "OvenMediaEngine: StreamMap",
            "the stream of callers that send no stream ID",
        ),
        set: |it, value| {
            let name = StreamName::new(value.text(MOST_TEXT)?);
            it.stream = Some(name.map_err(|error| error.to_string())?);
            Ok(())
        },
        show: |it| shown_option(it.stream.as_ref().map(StreamName::as_str)),
    },
    KeyRow {
        facts: facts(
            "mode",
            "\"publish\" or \"request\"",
            NewConnections,
            "SRT: m",
            "the purpose of callers whose stream ID names none",
        ),
        set: |it, value| store(&mut it.mode, value.choice(MODES)),
        show: |it| shown_text(word(MODES, it.mode)),
    },
    KeyRow {
        facts: facts(
            "latency",
            "a time from \"0s\" to \"65.535s\"",
            NewConnections,
            "srtrelay: latency",
            "the least latency; a longer wish of the caller or of the stream wins",
        ),
        set: |it, value| store(&mut it.latency, value.time(LATENCIES)),
        show: |it| shown_time(it.latency),
    },
    KeyRow {
        facts: facts(
            "peer-idle-timeout",
            "a time from \"100ms\" to \"24h\"",
            NewConnections,
            "MediaMTX: readTimeout",
            "the time without a packet after which a connection ends",
        ),
        set: |it, value| {
            let range = Duration::from_millis(100)..=Duration::from_secs(86_400);
            store(&mut it.peer_idle_timeout, value.time(range))
        },
        show: |it| shown_time(it.peer_idle_timeout),
    },
    KeyRow {
        facts: facts(
            "max-callers",
            "a number from 1 to 1,000,000",
            NewConnections,
            "",
            "the most callers at one time; further ones are refused",
        ),
        set: |it, value| store(&mut it.max_callers, value.small_count(1..=1_000_000)),
        show: |it| shown_plain(&it.max_callers),
    },
    KeyRow {
        facts: facts(
            "max-callers-per-address",
            "a number from 0 to 1,000,000; 0: no limit",
            NewConnections,
            "",
            "the most callers from one IP address at one time",
        ),
        set: |it, value| store(&mut it.max_callers_per_address, value.small_count(0..=1_000_000)),
        show: |it| shown_plain(&it.max_callers_per_address),
    },
    KeyRow {
        facts: facts(
            "calls-per-second",
            "a number from 1 to 1,000,000",
            NewConnections,
            "",
            "the most calls of a second; further ones are refused with one datagram each",
        ),
        set: |it, value| store(&mut it.calls_per_second, value.small_count(1..=1_000_000)),
        show: |it| shown_plain(&it.calls_per_second),
    },
    KeyRow {
        facts: facts(
            "allow",
            "a list of IP addresses and networks, like [\"192.0.2.0/24\"]",
            NewConnections,
            "Nimble Streamer",
            "the networks whose callers are accepted; an empty list accepts all",
        ),
        set: |it, value| store(&mut it.allow, networks(value)),
        show: |it| shown_networks(&it.allow),
    },
    KeyRow {
        facts: facts(
            "deny",
            "a list of IP addresses and networks, like [\"192.0.2.0/24\"]",
            NewConnections,
            "Nimble Streamer",
            "the networks whose callers are refused, also if `allow` has them",
        ),
        set: |it, value| store(&mut it.deny, networks(value)),
        show: |it| shown_networks(&it.deny),
    },
];

/// The word of a value.
pub(crate) fn word<T: Copy + PartialEq>(words: &[(&'static str, T)], value: T) -> &'static str {
    words.iter().find(|(_, it)| *it == value).map_or("", |(word, _)| word)
}

/// A path as the value of a key.
pub(crate) fn shown_path<'a>(path: Option<&PathBuf>) -> Shown<'a> {
    shown_option(path.map(|path| path.to_string_lossy().into_owned()))
}

const MODES: &[(&str, CallerMode)] =
    &[("publish", CallerMode::Publish), ("request", CallerMode::Request)];

/// The latencies that SRT's handshake can carry.
pub(crate) const LATENCIES: std::ops::RangeInclusive<Duration> =
    Duration::ZERO..=Duration::from_millis(65_535);

const DEFAULT_PORT: u16 = 8890;
const MOST_NETWORKS: usize = 1_000;
