//! The forms of stream IDs that belong to other servers, as far as [`StreamId`] does not know them.

use std::borrow::Cow;

use punctual_proto::{AccessMode, StreamId, StreamIdError};

use crate::query::{Query, decoded};

/// The stream ID as it was meant: without the zeros and spaces that some encoders add, and decoded
/// if it is percent-encoded as a whole, as `%23!%3A%3Ar%3Dlive` is, or has the `#` alone encoded,
/// as FFmpeg 5 and others send it from a URI.
pub(crate) fn whole(text: &str) -> Cow<'_, str> {
    let text = text.trim_matches(|c: char| c == '\0' || c.is_whitespace());
    let is_encoded = text.starts_with("%23!")
        || !text.contains([':', '/', '=', '?', ',', '&'])
            && ENCODED.iter().any(|mark| text.to_ascii_uppercase().contains(mark));
    match is_encoded {
        true => Cow::Owned(decoded(text)),
        false => Cow::Borrowed(text),
    }
}

/// The encoded forms of the characters that give a stream ID its form.
const ENCODED: [&str; 4] = ["%3A", "%2F", "%3D", "%3F"];

/// The stream ID in any form, and its query.
pub(crate) fn parse(text: &str) -> Result<(StreamId, Query), StreamIdError> {
    if let Some(rest) = after_scheme(text) {
        return url(rest);
    }
    if let Some(id) = comma_pairs(text) {
        return Ok((id, Query::default()));
    }
    // A query may contain the marks of every form: `read:live/a?at=2026-11-27T20:15:00`.
    let (text, query) = if text.starts_with("#!") { (text, "") } else { split_query(text) };
    let id = StreamId::parse(text)?;
    let query = match (query, id.query(), id.resource()) {
        ("", Some(query), _) => query,
        ("", None, Some(name)) => split_query(name).1,
        (query, ..) => query,
    };
    let query = Query::new(query);
    Ok((id, query))
}

/// Divides a stream ID or a name from the query after its `?`. A `?` without a `=` after it belongs
/// to the name, and one in a password to the password.
pub(crate) fn split_query(text: &str) -> (&str, &str) {
    let Some((start, query)) = text.split_once('?').filter(|(_, query)| query.contains('=')) else {
        return (text, "");
    };
    // `publish:path:user:password`, `publish/name/password`.
    let has_password = MODES.iter().any(|mode| match start.strip_prefix(mode) {
        Some(rest) if rest.starts_with(':') => rest.matches(':').count() > 1,
        Some(rest) if rest.starts_with('/') => rest.matches('/').count() > 1,
        _ => false,
    });
    if has_password { (text, "") } else { (start, query) }
}

const MODES: [&str; 4] = ["publish", "read", "play", "request"];

/// Whether the stream ID is a whole URL, as some encoders send it.
pub(crate) fn is_url(text: &str) -> bool {
    after_scheme(text).is_some()
}

fn after_scheme(text: &str) -> Option<&str> {
    SCHEMES.iter().find_map(|scheme| {
        let start = text.get(..scheme.len())?;
        start.eq_ignore_ascii_case(scheme).then(|| &text[scheme.len()..])
    })
}

const SCHEMES: [&str; 2] = ["srt://", "srt+quic://"];

/// `HOST[:PORT]/NAME[?QUERY]`, as encoders of `OvenMediaEngine` send it, or
/// `HOST[:PORT]?streamid=ID`, the address of a relay in the wrong field.
fn url(rest: &str) -> Result<(StreamId, Query), StreamIdError> {
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (place, path) = rest.split_at(end);
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let query = Query::new(query);
    if let Some(inner) = query.get("streamid").filter(|_| path.trim_matches('/').is_empty()) {
        return StreamId::parse(&inner).map(|id| (id, query));
    }
    let (login, host) = place.rsplit_once('@').unwrap_or(("", place));
    let mut id = StreamId::new(path.trim_start_matches('/')).with_host(host);
    if let Some((user, password)) = login.split_once(':') {
        id = id.with_user(decoded(user)).with_session(decoded(password));
    }
    Ok((id, query))
}

/// `NAME,mode:publish,token:TOKEN`, as datarhei Core has it.
fn comma_pairs(text: &str) -> Option<StreamId> {
    let (name, pairs) = text.split_once(',')?;
    if name.contains(':') {
        return None;
    }
    let pairs: Option<Vec<_>> = pairs.split(',').map(|pair| pair.trim().split_once(':')).collect();
    let pairs = pairs?;
    let value = |key: &str| pairs.iter().find(|(name, _)| *name == key).map(|(_, value)| *value);
    let mode = match value("mode") {
        Some("publish") => Some(AccessMode::Publish),
        Some(_) => Some(AccessMode::Request),
        None => None,
    };
    let token = value("token");
    if mode.is_none() && token.is_none() {
        return None;
    }
    let id = StreamId::new(name);
    let id = mode.into_iter().fold(id, StreamId::with_mode);
    Some(token.into_iter().fold(id, StreamId::with_session))
}
