//! Origins of pages, and the names of this relay.

use std::net::{IpAddr, Ipv6Addr};

/// The origins of the configuration.
pub(super) struct Origins {
    /// In lower case, without a slash at the end.
    listed: Vec<String>,
}

impl Origins {
    /// These origins, such as `https://relay.example:9997`.
    pub(super) fn new(origins: &[String]) -> Self {
        let listed = origins
            .iter()
            .map(|origin| origin.trim_end_matches('/').to_ascii_lowercase())
            .collect();
        Self { listed }
    }

    /// Whether a page of this origin may use the API.
    pub(super) fn has(&self, origin: &[u8]) -> bool {
        self.listed.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(origin))
    }

    /// Whether a `Host` header names this relay: an IP address, a loopback name, or the host of a
    /// listed origin, with any port.
    pub(super) fn is_own_host(&self, host: &str) -> bool {
        let Some(name) = without_port(host) else { return false };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        let is_loopback = name == "localhost" || name.ends_with(".localhost");
        is_loopback
            || is_address(&name)
            || self.listed.iter().any(|origin| {
                let host = authority(origin.as_bytes()).and_then(|it| str::from_utf8(it).ok());
                host.and_then(without_port) == Some(&name)
            })
    }
}

/// The host and port of an origin.
pub(super) fn authority(origin: &[u8]) -> Option<&[u8]> {
    let start = origin.windows(3).position(|it| it == b"://")? + 3;
    Some(&origin[start..])
}

/// The name or address of `name:port`, `1.2.3.4:port` or `[::1]:port`.
fn without_port(host: &str) -> Option<&str> {
    let (name, port) = match host.rfind(']') {
        Some(end) => (&host[..=end], &host[end + 1..]),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    let is_port = port.is_empty() || digits.parse::<u16>().is_ok() && port.starts_with(':');
    (is_port && !name.is_empty()).then_some(name)
}

fn is_address(name: &str) -> bool {
    match name.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(v6) => v6.split('%').next().is_some_and(|it| it.parse::<Ipv6Addr>().is_ok()),
        None => name.parse::<IpAddr>().is_ok_and(|it| it.is_ipv4()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_own_if_nobody_else_can_point_a_name_at_it() {
        let origins = Origins::new(&["https://Relay.Example:8443/".to_owned()]);
        for own in [
            "localhost",
            "localhost:9997",
            "LOCALHOST.:1",
            "a.localhost",
            "127.0.0.1:9997",
            "192.168.1.5",
            "[::1]:9997",
            "[fe80::1%25eth0]",
            "relay.example",
            "relay.example:8443",
            "RELAY.example:1",
        ] {
            assert!(origins.is_own_host(own), "{own}");
        }
        for foreign in [
            "",
            ":9997",
            "evil.example",
            "relay.example.evil.example",
            "notlocalhost",
            "127.0.0.1.evil.example",
            "127.0.0.1:80@evil.example",
            "localhost:port",
            "::1",
            "[evil]",
            "[::1]x",
        ] {
            assert!(!origins.is_own_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn an_origin_is_allowed_whole_or_not_at_all() {
        let origins = Origins::new(&["https://relay.example".to_owned()]);
        assert!(origins.has(b"https://relay.example") && origins.has(b"HTTPS://relay.example"));
        for foreign in ["http://relay.example", "https://relay.example:444", "null", ""] {
            assert!(!origins.has(foreign.as_bytes()), "{foreign}");
        }
    }
}
