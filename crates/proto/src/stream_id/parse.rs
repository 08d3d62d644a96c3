use super::{AccessMode, ContentType, StreamId, StreamIdError};

/// The beginning of the standard form.
pub(super) const FLAT: &str = "#!::";
/// The beginning of its nested variant.
const NESTED: &str = "#!:{";
/// The beginning of both, and of possible further variants.
const STANDARD: &str = "#!";

/// A suffix that some players add to the path, and that `MediaMTX` ignores.
const FEEDBACK: &str = "#feedbackplay";

/// Parses a stream ID of any form.
pub(super) fn stream_id(text: &str) -> Result<StreamId, StreamIdError> {
    if let Some(pairs) = text.strip_prefix(FLAT) {
        return standard(pairs.split(','));
    }
    if let Some(block) = text.strip_prefix(NESTED) {
        return standard(nested(block.trim_end())?.into_iter());
    }
    if text.starts_with(STANDARD) {
        return Err(StreamIdError::Syntax);
    }
    if let Some((mode, rest)) = after_word(text, ':') {
        return colons(mode, rest);
    }
    if let Some((mode, rest)) = after_word(text, '/') {
        return Ok(slashes(mode, rest));
    }
    Ok(domain(text).unwrap_or_else(|| path(text)))
}

/// The mode at the beginning of a text, and the rest after `separator`.
fn after_word(text: &str, separator: char) -> Option<(AccessMode, &str)> {
    let (word, rest) = text.split_once(separator)?;
    let mode = match word {
        "publish" => AccessMode::Publish,
        "play" | "read" | "request" => AccessMode::Request,
        _ => return None,
    };
    (!rest.is_empty()).then_some((mode, rest))
}

fn standard<'a>(pairs: impl Iterator<Item = &'a str>) -> Result<StreamId, StreamIdError> {
    let mut id = StreamId::default();
    let mut seen: Vec<&str> = Vec::new();
    for pair in pairs {
        let pair = pair.trim_start();
        if pair.is_empty() {
            continue;
        }
        let broken = || StreamIdError::Pair(pair.to_owned());
        let (key, value) = pair.split_once('=').ok_or_else(broken)?;
        if key.is_empty() {
            return Err(broken());
        }
        if seen.contains(&key) {
            return Err(StreamIdError::Twice(key.to_owned()));
        }
        seen.push(key);
        let value = value.to_owned();
        match key {
            "u" => id.user = Some(value),
            "r" => id.resource = Some(value),
            "h" => id.host = Some(value),
            "s" => id.session = Some(value),
            "t" => id.content = Some(content(value)),
            "m" => id.mode = Some(mode(value)?),
            _ => id.others.push((key.to_owned(), value)),
        }
    }
    Ok(id)
}

fn mode(word: String) -> Result<AccessMode, StreamIdError> {
    let known = [AccessMode::Request, AccessMode::Publish, AccessMode::Bidirectional];
    known.into_iter().find(|mode| mode.word() == word).ok_or(StreamIdError::Mode(word))
}

fn content(word: String) -> ContentType {
    match word.as_str() {
        "stream" => ContentType::Stream,
        "file" => ContentType::File,
        "auth" => ContentType::Auth,
        _ => ContentType::Other(word),
    }
}

/// The pairs of a block without its opening brace. Commas in inner blocks do not separate pairs.
fn nested(block: &str) -> Result<Vec<&str>, StreamIdError> {
    let mut pairs = Vec::new();
    let (mut depth, mut start) = (1, 0);
    for (at, byte) in block.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 1 => {
                pairs.push(&block[start..at]);
                return if at + 1 == block.len() { Ok(pairs) } else { Err(StreamIdError::Braces) };
            }
            b'}' => depth -= 1,
            b',' if depth == 1 => {
                pairs.push(&block[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    Err(StreamIdError::Braces)
}

/// `PATH[:USER:PASSWORD][:QUERY]`.
fn colons(mode: AccessMode, rest: &str) -> Result<StreamId, StreamIdError> {
    let parts: Vec<&str> = rest.split(':').collect();
    let (place, user, query) = match parts[..] {
        [place] => (place, None, None),
        [place, query] => (place, None, Some(query)),
        [place, user, password] => (place, Some((user, password)), None),
        [place, user, password, query] => (place, Some((user, password)), Some(query)),
        _ => return Err(StreamIdError::Colons),
    };
    let mut id = path(place.strip_suffix(FEEDBACK).unwrap_or(place));
    id.mode = Some(mode);
    id.query = query.map(str::to_owned).or(id.query);
    id.user = user.map(|(user, _)| user.to_owned());
    id.password = user.map(|(_, password)| password.to_owned());
    Ok(id)
}

/// `NAME[/PASSWORD]`.
fn slashes(mode: AccessMode, rest: &str) -> StreamId {
    let (name, password) = match rest.split_once('/') {
        Some((name, password)) => (name, Some(password.to_owned())),
        None => (rest, None),
    };
    StreamId { resource: Some(name.to_owned()), mode: Some(mode), password, ..StreamId::default() }
}

/// `uplive.HOST/APP/STREAM` or `live.HOST/APP/STREAM`.
fn domain(text: &str) -> Option<StreamId> {
    let (domain, resource) = text.split_once('/')?;
    let mode = match domain.split_once('.')? {
        ("uplive", _) => AccessMode::Publish,
        ("live", _) => AccessMode::Request,
        _ => return None,
    };
    let (app, stream) = resource.split_once('/')?;
    if app.is_empty() || stream.is_empty() || stream.contains('/') {
        return None;
    }
    let host = Some(domain.to_owned());
    Some(StreamId { host, mode: Some(mode), ..StreamId::new(resource) })
}

/// `/PATH[?QUERY]`, or a bare name, which may contain `?`.
fn path(text: &str) -> StreamId {
    let Some(path) = text.strip_prefix('/') else {
        let resource = Some(text.to_owned()).filter(|text| !text.is_empty());
        return StreamId { resource, ..StreamId::default() };
    };
    let (path, query) = match path.split_once('?') {
        Some((path, query)) => (path, Some(query.to_owned())),
        None => (path, None),
    };
    StreamId { query, ..StreamId::new(path) }
}
