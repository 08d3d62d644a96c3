use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use thiserror::Error;

/// The name of a stream, such as `live/camera 1`.
///
/// Parts between slashes are neither empty nor `.` or `..`, so a name is also the path of a file
/// below a folder. There are no control characters and no backslash, and at most
/// [`MAX_BYTES`](Self::MAX_BYTES) bytes.
#[derive(Clone, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct StreamName(Arc<str>);

/// A text that cannot be the name of a stream.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum StreamNameError {
    /// There is no name.
    #[error("no stream is named")]
    Empty,
    /// The name is too long.
    #[error("the name of the stream has {0} bytes; it must have at most 200")]
    TooLong(usize),
    /// A part of the name is empty, `.` or `..`.
    #[error("the stream `{0}` has an empty part, or one that is `.` or `..`, between slashes")]
    Part(String),
    /// The name has a control character, a backslash, or bytes that are no UTF-8.
    #[error("the name of the stream has the character {0:?}, which is not allowed")]
    Character(char),
}

impl StreamName {
    /// The most bytes of a name.
    pub const MAX_BYTES: usize = 200;

    /// The name in `text`. Slashes at both ends are removed.
    ///
    /// # Errors
    ///
    /// The text cannot be a name.
    pub fn new(text: &str) -> Result<Self, StreamNameError> {
        let text = text.trim_matches('/');
        if text.is_empty() {
            return Err(StreamNameError::Empty);
        }
        if text.len() > Self::MAX_BYTES {
            return Err(StreamNameError::TooLong(text.len()));
        }
        let is_wrong = |c: &char| c.is_control() || ['\\', char::REPLACEMENT_CHARACTER].contains(c);
        if let Some(wrong) = text.chars().find(is_wrong) {
            return Err(StreamNameError::Character(wrong));
        }
        if text.split('/').any(|part| matches!(part.trim(), "" | "." | "..")) {
            return Err(StreamNameError::Part(text.to_owned()));
        }
        Ok(Self(text.into()))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name as text that is shared.
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl Borrow<str> for StreamName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for StreamName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl PartialEq<str> for StreamName {
    fn eq(&self, text: &str) -> bool {
        &*self.0 == text
    }
}

impl PartialEq<&str> for StreamName {
    fn eq(&self, text: &&str) -> bool {
        &*self.0 == *text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_field_are_names_without_their_outer_slashes() {
        for (text, name) in [
            ("live", "live"),
            ("/live/camera 1/", "live/camera 1"),
            ("日本の放送", "日本の放送"),
            ("default/app/stream.v2", "default/app/stream.v2"),
            ("..a/b..", "..a/b.."),
        ] {
            assert_eq!(StreamName::new(text).unwrap(), name);
        }
    }

    #[test]
    fn no_name_leads_out_of_a_folder_or_into_the_lines_of_a_log() {
        for text in ["", "/", "a//b", "../a", "a/../b", "a/.", ". /a", "a\\b", "a\nb", "a\u{7f}"] {
            assert!(StreamName::new(text).is_err(), "{text:?}");
        }
        let long = "x".repeat(201);
        assert_eq!(StreamName::new(&long), Err(StreamNameError::TooLong(201)));
        assert!(StreamName::new("caf\u{FFFD}").unwrap_err().to_string().contains("not allowed"));
    }
}
