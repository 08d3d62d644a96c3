//! The targets that are named by the parts of a URI, except those of SRT.

use std::path::PathBuf;

use crate::error::{Problem, UriError};
use crate::file::{FILE_KEYS, FileTarget};
use crate::parts::{Parts, parse_query, percent_decode};
use crate::query::apply_query;
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
