//! `file:///path?…`: a file.

use std::path::PathBuf;

use crate::error::ValueError;
use crate::key::{KeyEffect, UriKey, find};
use crate::limits::{self, Limited, Limits};

/// A file that is read or written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct FileTarget {
    /// Its path.
    pub path: PathBuf,
    /// Whether more is to be read after its end, because another program still writes it.
    pub grows: bool,
    /// The file whose existence says that nothing more will be written to one that grows.
    pub marker: Option<PathBuf>,
    /// The limits of reading or writing.
    pub limits: Limits,
}

impl Limited for FileTarget {
    fn limits(&mut self) -> &mut Limits {
        &mut self.limits
    }
}

impl From<PathBuf> for FileTarget {
    fn from(path: PathBuf) -> Self {
        Self { path, ..Self::default() }
    }
}

/// Whether a bare path looks like a path with the keys of a file URI.
pub(crate) fn has_keys(path: &str) -> bool {
    path.split_once('?').is_some_and(|(_, query)| {
        query
            .split('&')
            .all(|pair| pair.split_once('=').is_some_and(|(key, _)| find(FILE_KEYS, key).is_some()))
    })
}

/// The keys of a `file://` URI.
pub(crate) const FILE_KEYS: &[UriKey<FileTarget>] = &[
    UriKey::new(
        "grow",
        &[],
        "wait or no; default no",
        "wait: after the end of the file, wait for what another program writes to it",
        KeyEffect::Set(|target, value| {
            target.grows = match value.to_lowercase().as_str() {
                "wait" => true,
                "no" => false,
                _ => return Err(ValueError("it must be wait or no".to_owned())),
            };
            Ok(())
        }),
    ),
    limits::max_idle("with grow=wait: end when the file has not grown for this time"),
    UriKey::new(
        "marker",
        &[],
        "path; default: none",
        "with grow=wait: end when this file exists and the rest has been read",
        KeyEffect::Set(|target, value| {
            if value.is_empty() {
                return Err(ValueError("it must be the path of a file".to_owned()));
            }
            target.marker = Some(value.into());
            Ok(())
        }),
    ),
    limits::max_size(),
    limits::max_time(),
    limits::io_size(),
];

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn parse(rest: &str) -> Result<FileTarget, String> {
        crate::targets::file(rest, rest).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_say_how_a_file_that_grows_ends() {
        let target = parse("/rec/a%20b.ts?grow=wait&maxidle=5s&marker=/rec/a.done").unwrap();
        assert_eq!(target.path, PathBuf::from("/rec/a b.ts"));
        assert!(target.grows);
        assert_eq!(target.marker, Some("/rec/a.done".into()));
        assert_eq!(target.limits.max_idle, Some(Duration::from_secs(5)));
        let target = parse("clip.ts?maxsize=10MB&maxtime=1min&iosize=1316").unwrap();
        assert!(!target.grows);
        assert_eq!(target.limits.max_size, Some(10_000_000));
        assert_eq!(target.limits.max_time, Some(Duration::from_secs(60)));
        assert_eq!(target.limits.io_size, Some(1_316));
        assert_eq!(parse("clip.ts?grow=no").unwrap(), PathBuf::from("clip.ts").into());
    }

    #[test]
    fn errors_name_wrong_keys_and_values_and_missing_ones() {
        let error = |rest: &str| parse(rest).unwrap_err();
        assert!(error("a?grow=yes").contains("wait or no"));
        assert!(error("a?maxidle=5s").contains("add `grow=wait`"));
        assert!(error("a?marker=b").contains("add `grow=wait`"));
        assert!(error("a?grow=wait&marker=").contains("path of a file"));
        assert!(error("a?grow=wait&maxidle=0").contains("1 ms and up"));
        assert!(error("a?maxsize=0").contains("1 byte and up"));
        assert!(error("a?iosize=100").contains("188 bytes to 1 MiB"));
        assert!(error("a?maxsise=1").contains("did you mean `maxsize`"));
        assert!(error("what?.ts").contains("%3F"));
        assert_eq!(parse("what%3F.ts").unwrap().path, PathBuf::from("what?.ts"));
    }
}
