//! The host and port of an address.

use std::net::IpAddr;

use crate::error::Problem;
use crate::secrets::redacted_place;

/// Splits `host:port`, `[v6]:port`, `:port` or `host`.
pub(crate) fn split_host_port(place: &str) -> Result<(&str, Option<u16>), Problem> {
    if place.contains('/') {
        let hint = "the address of a stream has no path; stream names go into `streamid`";
        return Err(Problem::BadHost { host: shown(place), hint });
    }
    let (host, port) = if let Some(bracketed) = place.strip_prefix('[') {
        let (host, rest) = bracketed
            .split_once(']')
            .ok_or_else(|| Problem::BadHost { host: shown(place), hint: "`]` is missing" })?;
        match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None if rest.is_empty() => (host, None),
            None => {
                let hint = "after `]` comes `:` and the port";
                return Err(Problem::BadHost { host: shown(place), hint });
            }
        }
    } else {
        match place.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                let hint = "an IPv6 address is written in brackets: `[::1]:4200`";
                return Err(Problem::BadHost { host: shown(place), hint });
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        }
    };
    let port = port
        .map(|port| port.parse().map_err(|_| Problem::BadPort { port: shown(port) }))
        .transpose()?;
    Ok((host, port))
}

/// The text without a password, for an error.
fn shown(place: &str) -> String {
    punctual_units::one_line(&redacted_place(place)).into_owned()
}

/// Whether this is the address of all interfaces.
pub(crate) fn is_wildcard(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok_and(|address| address.is_unspecified())
}
