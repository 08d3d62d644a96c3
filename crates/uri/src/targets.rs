//! The targets that are named by the parts of a URI, except those of SRT.

use std::path::PathBuf;
#[cfg(feature = "quic")]
use std::sync::Arc;

#[cfg(feature = "quic")]
use punctual::Carriage;
#[cfg(feature = "quic")]
use punctual::quic::{CongestionControl, MESSAGE_PROTOCOLS, Protocol};

#[cfg(feature = "quic")]
use crate::QuicTarget;
use crate::error::{Problem, UriError};
use crate::file::{FILE_KEYS, FileTarget};
#[cfg(feature = "quic")]
use crate::key::{find, names};
use crate::parts::{Parts, parse_query, percent_decode};
use crate::query::apply_query;
#[cfg(feature = "quic")]
use crate::query::unknown_among;
#[cfg(feature = "quic")]
use crate::quic::{QUIC_KEYS, QuicKeys};
#[cfg(feature = "quic")]
use crate::quic_messages::{MESSAGE_KEYS, MessageKeys};
use crate::redact::redacted;
use crate::tcp::{TCP_KEYS, TcpTarget};
use crate::udp::{UDP_KEYS, UdpTarget};

/// The file of `rest`, the part of `text` after `file://`.
pub(crate) fn file(text: &str, rest: &str) -> Result<FileTarget, UriError> {
    let error = |problem| UriError { uri: redacted(text), problem };
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path =
        percent_decode(path).map_err(|_| error(Problem::BadPercent { text: redacted(path) }))?;
    if !query.is_empty() && !query.contains('=') {
        return Err(error(Problem::Mode(
            "a `?` in a file URI begins its keys; the `?` of a file's name is written `%3F`",
        )));
    }
    let query = parse_query(query).map_err(error)?;
    let parts = Parts { text, host: String::new(), port: None, query };
    let mut target = FileTarget::from(PathBuf::from(path));
    apply_query(FILE_KEYS, &parts, &mut target)?;
    if !target.grows && (target.marker.is_some() || target.limits.max_idle.is_some()) {
        return Err(error(Problem::Mode(
            "`maxidle` and `marker` end the wait for more of a file: add `grow=wait`",
        )));
    }
    Ok(target)
}

/// The target of the parts of a `tcp://` URI.
pub(crate) fn tcp(parts: &Parts<'_>) -> Result<TcpTarget, UriError> {
    let (host, port) = (parts.host.clone(), parts.required_port()?);
    let listen = host.is_empty();
    let mut target = TcpTarget { host, port, listen, no_delay: true, ..TcpTarget::default() };
    apply_query(TCP_KEYS, parts, &mut target)?;
    if target.host.is_empty() && !target.listen {
        let hint = "`listen=0` needs one to connect to: `tcp://host:5000`";
        return Err(parts.error(Problem::NoHost(hint)));
    }
    if target.listen && target.local_port.is_some() {
        let hint = "a listener has one port: the one after the host; leave `port` out";
        return Err(parts.error(Problem::Mode(hint)));
    }
    Ok(target)
}

/// The target of the parts of a `udp://` URI.
pub(crate) fn udp(parts: &Parts<'_>) -> Result<UdpTarget, UriError> {
    let port = parts.required_port()?;
    let mut target = UdpTarget { host: parts.host.clone(), port, ..UdpTarget::default() };
    apply_query(UDP_KEYS, parts, &mut target)?;
    if !target.sources.is_empty() && !target.is_multicast() {
        return Err(parts.error(Problem::Mode(
            "`source` selects senders to a multicast group, and the host is not one",
        )));
    }
    Ok(target)
}

/// The target of the parts of an `rtp://` URI.
pub(crate) fn rtp(parts: &Parts<'_>) -> Result<UdpTarget, UriError> {
    Ok(UdpTarget { rtp: true, ..udp(parts)? })
}

/// The target of the parts of a `quic://` URI.
#[cfg(feature = "quic")]
pub(crate) fn quic_messages(parts: &Parts<'_>) -> Result<QuicTarget, UriError> {
    let port = parts.required_port()?;
    let [quic_parts, own_parts] = parts.split_query(|key| find(QUIC_KEYS, key).is_some());
    if let Some((key, _)) =
        own_parts.query.iter().find(|(key, _)| find(MESSAGE_KEYS, key).is_none())
    {
        let all = names(MESSAGE_KEYS).chain(names(QUIC_KEYS));
        return Err(parts.error(unknown_among(all, key)));
    }
    let (mut quic, mut own) = (QuicKeys::default(), MessageKeys::default());
    apply_query(QUIC_KEYS, &quic_parts, &mut quic)?;
    apply_query(MESSAGE_KEYS, &own_parts, &mut own)?;
    let quic = quic.with_default_congestion(DEFAULT_CONGESTION);
    let host = parts.host.clone();
    let listen = own.listen.unwrap_or(host.is_empty());
    if host.is_empty() && !listen {
        let hint = "`listen=0` needs one to call: `quic://host:443`";
        return Err(parts.error(Problem::NoHost(hint)));
    }
    let config = match (listen, own.carry) {
        (true, None) => quic.listener(&host, MESSAGE_PROTOCOLS),
        (true, Some(protocol)) => quic.listener(&host, &[protocol]),
        (false, carry) => quic.caller(&host, &[carry.unwrap_or(Protocol::Datagrams)]),
    };
    let (config, warnings) = config.map_err(|problem| parts.error(problem))?;
    let carriage = Carriage::Quic(Arc::new(config));
    let port_config = punctual::PortConfig { carriage, ..Default::default() };
    Ok(QuicTarget { host, port, listen, port_config, warnings })
}

/// The default of `quiccc`: nothing else limits the rate of bare messages.
#[cfg(feature = "quic")]
const DEFAULT_CONGESTION: CongestionControl = CongestionControl::Bbr;
