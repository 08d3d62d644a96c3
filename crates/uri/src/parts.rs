//! Splits a URI into host, port and query, with percent-decoding.

use std::borrow::Cow;

use crate::error::{Problem, UriError};
use crate::place::split_host_port;
use crate::redact::{is_secret, redacted};
use crate::secrets::shown_key;

/// The parts of `scheme://host:port?key=value&…`.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Parts<'a> {
    /// The URI as it was written, for error messages.
    pub text: &'a str,
    /// The host without brackets; empty if it is missing.
    pub host: String,
    /// The port, if there is one.
    pub port: Option<u16>,
    /// The keys and decoded values in the order in which they were written.
    pub query: Vec<(String, String)>,
}

impl<'a> Parts<'a> {
    /// Splits `rest`, the part of `text` after `scheme://`.
    ///
    /// The `@` that FFmpeg and VLC put before a multicast group is allowed. A `#` is part of a
    /// value, because stream IDs begin with it; there are no fragments.
    pub(crate) fn parse(text: &'a str, rest: &'a str) -> Result<Self, UriError> {
        let error = |problem| UriError { uri: redacted(text), problem };
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let place = place.strip_suffix('/').unwrap_or(place);
        let place = place.strip_prefix('@').unwrap_or(place);
        let hint = match place {
            user if user.contains('@') => Some(
                "an address has no user and password: in SRT `streamid` says who calls, and \
                 `passphrase` encrypts",
            ),
            keys if keys.contains('=') => {
                Some("the first key follows a `?`, and each other one a `&`: `:4200?latency=200`")
            }
            _ => None,
        };
        if let Some(hint) = hint {
            return Err(error(Problem::BadHost { host: redacted(place), hint }));
        }
        let (host, port) = split_host_port(place).map_err(error)?;
        let host = percent_decode(host).map_err(error)?;
        Ok(Self { text, host, port, query: parse_query(query).map_err(error)? })
    }

    /// Splits the query: the parts with the keys that `is_first` accepts, and the parts with the
    /// others.
    #[cfg(feature = "quic")]
    pub(crate) fn split_query(&self, is_first: impl Fn(&str) -> bool) -> [Self; 2] {
        let (first, second) = self.query.iter().cloned().partition(|(name, _)| is_first(name));
        [first, second].map(|query| Self {
            text: self.text,
            host: self.host.clone(),
            port: self.port,
            query,
        })
    }

    /// Returns the same parts with these keys first in the query, in this order.
    pub(crate) fn with_first(&self, keys: &[&str]) -> Self {
        let mut query = self.query.clone();
        let place = |name: &str| keys.iter().position(|key| *key == name).unwrap_or(keys.len());
        query.sort_by_key(|(name, _)| place(name));
        Self { text: self.text, host: self.host.clone(), port: self.port, query }
    }

    /// Returns the same parts, with these keys and values added to the query unless it has the
    /// keys.
    pub(crate) fn with_defaults(mut self, defaults: &[(&str, &str)]) -> Self {
        for &(key, value) in defaults {
            if !self.query.iter().any(|(name, _)| name == key) {
                self.query.push((key.to_owned(), value.to_owned()));
            }
        }
        self
    }

    /// An error about this URI.
    pub(crate) fn error(&self, problem: Problem) -> UriError {
        UriError { uri: redacted(self.text), problem }
    }

    /// The port, or an error if it is missing or 0.
    pub(crate) fn required_port(&self) -> Result<u16, UriError> {
        self.port.filter(|port| *port != 0).ok_or_else(|| self.error(Problem::NoPort))
    }
}

/// The keys and decoded values of `key=value&…`, in their order.
pub(crate) fn parse_query(query: &str) -> Result<Vec<(String, String)>, Problem> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = percent_decode(value).map_err(|problem| match is_secret(key) {
                true => Problem::BadPercent { text: "…".to_owned() },
                false => problem,
            })?;
            let shown = |_| Problem::BadPercent { text: shown_key(key) };
            Ok((percent_decode(key).map_err(shown)?.to_lowercase(), value))
        })
        .collect()
}

/// Replaces each `%XX` by the byte that it encodes. `+` stays `+`, and so does a `%` without two
/// hexadecimal digits, because people write `25%`.
pub(crate) fn percent_decode(text: &str) -> Result<String, Problem> {
    let decoded = percent_encoding::percent_decode_str(text).decode_utf8();
    decoded.map(Cow::into_owned).map_err(|_| Problem::BadPercent { text: redacted(text) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(rest: &str) -> Parts<'_> {
        Parts::parse(rest, rest).unwrap()
    }

    #[test]
    fn splits_host_port_and_query() {
        let parts = parse("media.example:4200?latency=120ms&streamid=a%2Fb&flag");
        assert_eq!((parts.host.as_str(), parts.port), ("media.example", Some(4200)));
        let expected = [("latency", "120ms"), ("streamid", "a/b"), ("flag", "")];
        assert_eq!(parts.query, expected.map(|(k, v)| (k.to_owned(), v.to_owned())));
    }

    #[test]
    fn strips_brackets_and_the_multicast_mark() {
        assert_eq!(parse("[ff3e::1]:1234").host, "ff3e::1");
        assert_eq!(parse("@239.1.1.1:1234").host, "239.1.1.1");
        assert_eq!(parse(":1234").host, "");
        assert_eq!(parse("@:1234").host, "");
        assert_eq!(parse("host:1234/?a=1").host, "host");
    }

    #[test]
    fn a_stream_id_keeps_its_hash_and_equals_signs() {
        let parts = parse("h:1?streamid=#!::r=live/a,m=publish");
        assert_eq!(parts.query[0].1, "#!::r=live/a,m=publish");
    }

    #[test]
    fn a_percent_sign_without_digits_is_kept() {
        assert_eq!(parse("h:1?oheadbw=25%&x=100%zz%2").query[0].1, "25%");
        assert_eq!(percent_decode("100%zz%2"), Ok("100%zz%2".to_owned()));
        assert_eq!(percent_decode("%c3%A9%25"), Ok("é%".to_owned()));
    }

    #[test]
    fn errors_name_wrong_hosts_ports_and_escapes() {
        let problem = |rest: &str| Parts::parse(rest, rest).unwrap_err().to_string();
        assert!(problem("::1:4200").contains("brackets"));
        assert!(problem("[::1").contains("`]` is missing"));
        assert!(problem("h:70000").contains("`70000` is not a port"));
        assert!(problem("h:1/live").contains("streamid"));
        assert!(problem("h:1?streamid=%ff").contains("UTF-8"));
    }
}
