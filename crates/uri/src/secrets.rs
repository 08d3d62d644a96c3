//! Secrets in a text, found without knowledge of the keys: words that look like a passphrase, and
//! the forms of stream IDs.

use strsim::osa_distance;

/// A stream ID without possible secrets: the session (`s`) of the form `#!::u=…,s=…`, the password
/// after `publish:path:user:` or `publish/name/`, the login of a URL, JSON web tokens, and values
/// with the names of secrets, as in `live/one?token=…`.
pub fn redacted_stream_id(text: &str) -> String {
    let mut parts = text.splitn(3, '/');
    if let (Some(action @ ("publish" | "read" | "play" | "request")), Some(name), Some(_)) =
        (parts.next(), parts.next(), parts.next())
    {
        return format!("{action}/{name}/…");
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let place = rest.split(['/', '?']).next().unwrap_or_default();
        if let Some((_, host)) = place.rsplit_once('@') {
            let rest = redacted_stream_id(&rest[place.len()..]);
            return format!("{scheme}://…@{host}{rest}");
        }
    }
    let mut fields = text.splitn(4, ':');
    if let (Some("publish" | "read" | "play" | "request"), Some(path), Some(user), Some(_)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    {
        let action = text.split(':').next().unwrap_or_default();
        return format!("{action}:{path}:{user}:…");
    }
    let is_structured = text.starts_with("#!:");
    let is_end = |c: char| matches!(c, ',' | ';' | '?' | '&' | '{' | '}') || c.is_whitespace();
    let mut shown = String::new();
    for part in text.split_inclusive(is_end) {
        let end = part.char_indices().next_back().filter(|(_, last)| is_end(*last));
        let (pair, end) = part.split_at(end.map_or(part.len(), |(at, _)| at));
        // A value ends a part; a colon stands before it in `publish:path:token=…` or `token:…`.
        let marks = pair.match_indices(['=', ':']).map(|(at, _)| at + 1);
        let mut values = marks.filter(|at| {
            let (name, value) = (&pair[..at - 1], &pair[*at..]);
            is_web_token(value) || !value.is_empty() && names_secret(name, is_structured)
        });
        match values.next() {
            _ if is_web_token(pair) => shown += "…",
            Some(at) => shown.extend([&pair[..at], "…"]),
            None => shown += pair,
        }
        shown += end;
    }
    shown
}

/// Whether a text looks like a JSON web token: its first part is `{"…` in base64.
fn is_web_token(text: &str) -> bool {
    text.starts_with("eyJ") && text.contains('.')
}

/// Whether a part of a stream ID with this name is a secret.
fn names_secret(name: &str, is_structured: bool) -> bool {
    // The first part of a structured ID begins with `#!::`.
    let name = name.rsplit([':', '/']).next().unwrap_or(name).to_lowercase();
    (is_structured && name == "s")
        || looks_secret(&name)
        || ["token", "key", "sig", "sign", "signature", "auth", "jwt"]
            .iter()
            .any(|secret| name == *secret || name.ends_with(&format!("_{secret}")))
}

/// A key without characters that no name has: a value may follow them.
pub(crate) fn shown_key(key: &str) -> String {
    match key.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))) {
        None => key.to_owned(),
        Some(end) => format!("{}…", &key[..end]),
    }
}

/// Whether this is the key of the stream ID.
pub(crate) fn is_stream_id(key: &str) -> bool {
    ["streamid", "srt_streamid"].contains(&key.to_lowercase().as_str())
}

/// Whether a text contains a word that looks like the key of a passphrase.
pub(crate) fn mentions_passphrase(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(looks_secret)
}

/// Redacts the part before the `?`: a scheme, a host and a port, or pairs of keys and values if the
/// `?` is missing.
pub(crate) fn redacted_place(place: &str) -> String {
    let (scheme, rest) = match place.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), place),
    };
    // FFmpeg and VLC write `@` before a multicast group.
    let rest = match rest.split_once('@') {
        Some((user, host)) if user.contains(':') => format!("…@{host}"),
        _ => rest.to_owned(),
    };
    let pair = |pair: &str| {
        let ends = pair.match_indices(['=', ':']).map(|(at, _)| at);
        let mut secret = ends.filter(|at| {
            let word = pair[..*at].trim_end().rsplit(|c: char| !c.is_ascii_alphanumeric()).next();
            word.is_some_and(looks_secret) && at + 1 < pair.len()
        });
        secret.next().map_or_else(|| pair.to_owned(), |at| format!("{}…", &pair[..=at]))
    };
    scheme + &rest.split('&').map(pair).collect::<Vec<_>>().join("&")
}

/// Whether a word is `passphrase`, an abbreviation of it, or similar.
fn looks_secret(word: &str) -> bool {
    let lower = word.to_lowercase();
    lower.starts_with("pass")
        || ["pwd", "pw", "secret"].contains(&lower.as_str())
        || osa_distance(&lower, "passphrase") <= 3
}
