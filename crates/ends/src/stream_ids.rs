//! The stream IDs that callers may have, from a file.

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};

use punctual::{RejectReason, StreamId};
use punctual_units::read_text;
use wildmatch::WildMatch;

use crate::failure::Failure;

/// The stream IDs that callers may have: one pattern a line, in which `*` matches any text and `?`
/// one character. Empty lines are ignored, and so is the text after a `#` at the start of a line or
/// after a space.
///
/// A pattern allows a stream ID that it matches, and one whose resource it matches: `live/*` allows
/// `live/one`, `publish:live/one` and `#!::r=live/one,m=publish`.
#[derive(Debug)]
pub struct AllowedStreamIds {
    path: PathBuf,
    patterns: RwLock<Vec<WildMatch>>,
}

impl AllowedStreamIds {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let patterns = RwLock::new(patterns(path)?);
        Ok(Self { path: path.to_owned(), patterns })
    }

    /// Reads the file again. If it cannot be read, the stream IDs allowed before stay, and a
    /// warning says so.
    pub fn read_again(&self) {
        match patterns(&self.path) {
            Ok(patterns) => {
                let (count, path) = (patterns.len(), self.path.display());
                tracing::info!("{path} was read again: {count} patterns of stream IDs");
                *self.patterns.write().unwrap_or_else(PoisonError::into_inner) = patterns;
            }
            Err(failure) => tracing::warn!("{failure}; the stream IDs allowed before stay"),
        }
    }

    /// Decides on a caller.
    ///
    /// # Errors
    ///
    /// The caller is refused, with this code.
    pub fn check(&self, stream_id: &str) -> Result<(), RejectReason> {
        let parsed = StreamId::parse(stream_id).ok();
        let resource = parsed.as_ref().and_then(StreamId::resource);
        let patterns = self.patterns.read().unwrap_or_else(PoisonError::into_inner);
        let is_allowed = patterns.iter().any(|pattern| {
            pattern.matches(stream_id) || resource.is_some_and(|it| pattern.matches(it))
        });
        if is_allowed { Ok(()) } else { Err(RejectReason::FORBIDDEN) }
    }
}

fn patterns(path: &Path) -> Result<Vec<WildMatch>, Failure> {
    let text = read_text(path).map_err(|error| Failure::file(path, &error))?;
    Ok(text
        .lines()
        .map(pattern)
        .filter(|pattern| !pattern.is_empty())
        .map(WildMatch::new)
        .collect())
}

/// The pattern of a line, without a comment. A `#` within a word belongs to it: the standard form
/// of a stream ID begins with `#!`.
fn pattern(line: &str) -> &str {
    let line = line.trim();
    if line.starts_with('#') && !line.starts_with("#!") {
        return "";
    }
    line.split_once(" #").map_or(line, |(pattern, _)| pattern).trim_end()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct File(PathBuf);

    impl File {
        fn new(name: &str, text: &str) -> Self {
            let name = format!("punctual-stream-ids-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            fs::write(&path, text).unwrap();
            Self(path)
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn allows(allowed: &AllowedStreamIds, stream_id: &str) -> bool {
        allowed.check(stream_id).is_ok()
    }

    #[test]
    fn a_pattern_allows_a_stream_id_in_every_form() {
        let file =
            File::new("forms", "# who may send\nlive/*\n\ncam ?  # one to nine\n#!::u=ann*\n");
        let allowed = AllowedStreamIds::read(&file.0).unwrap();
        for id in ["live/one", "publish:live/one", "#!::r=live/one,m=publish", "cam 7", "#!::u=ann"]
        {
            assert!(allows(&allowed, id), "{id}");
        }
        for id in ["", "live", "cam 10", "other/live/one", "who may send", "#!::r=sports"] {
            assert_eq!(allowed.check(id), Err(RejectReason::FORBIDDEN), "{id}");
        }
    }

    #[test]
    fn the_first_pattern_of_a_list_with_a_byte_order_mark_counts() {
        let file = File::new("mark", "\u{FEFF}cam1\r\ncam2\r\n");
        let allowed = AllowedStreamIds::read(&file.0).unwrap();
        assert!(allows(&allowed, "cam1") && allows(&allowed, "cam2") && !allows(&allowed, "cam3"));
    }

    #[test]
    fn an_empty_list_allows_no_caller_and_a_star_every_one() {
        let nobody = File::new("nobody", "\n# nobody\n");
        assert!(!allows(&AllowedStreamIds::read(&nobody.0).unwrap(), ""));
        let everybody = File::new("everybody", "*\n");
        let allowed = AllowedStreamIds::read(&everybody.0).unwrap();
        assert!(allows(&allowed, "") && allows(&allowed, "#!broken"));
    }

    #[test]
    fn a_list_can_be_read_again_and_a_missing_one_changes_nothing() {
        let file = File::new("again", "one\n");
        let allowed = AllowedStreamIds::read(&file.0).unwrap();
        fs::write(&file.0, "two\n").unwrap();
        allowed.read_again();
        assert!(allows(&allowed, "two") && !allows(&allowed, "one"));
        fs::remove_file(&file.0).unwrap();
        allowed.read_again();
        assert!(allows(&allowed, "two"));
        assert!(AllowedStreamIds::read(&file.0).unwrap_err().to_string().contains("stream-ids"));
    }
}
