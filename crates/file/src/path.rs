//! Paths of files below a folder, which never lead out of it.

use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

use crate::message::Fingerprint;

/// The path of a file below a folder, as it is sent: UTF-8 with slashes between its parts, none of
/// which leads out of the folder. The same rules hold on every system, so that each end accepts
/// every path that the other one may send.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct RelativePath(String);

/// The reason for which a path is refused.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PathError {
    /// It is empty, or has nothing but slashes.
    #[error("the path is empty")]
    Empty,
    /// It is longer than 4,096 bytes.
    #[error("the path is longer than {MAX_PATH} bytes")]
    Long,
    /// It is not UTF-8.
    #[error("the path is not UTF-8")]
    NotText,
    /// It has a control character or a backslash.
    #[error("the path has a control character or a backslash")]
    Character,
    /// It has this part, which is empty, `.` or `..`.
    #[error("the path has a part `{0}`, which leads elsewhere")]
    Leads(String),
    /// It begins with the letter of a drive, as on Windows.
    #[error("the path begins with the name of a drive")]
    Drive,
    /// It is the temporary name of another file.
    #[error("a name that ends in `{PART_SUFFIX}` and begins with a dot is an unfinished file's")]
    Part,
}

impl RelativePath {
    /// Checks a path that the other end sent. Slashes at its start are dropped: srt-xtransmit
    /// writes one before the paths of a folder's files, and means the target folder by it.
    ///
    /// # Errors
    ///
    /// The path breaks one of the rules; the error says which.
    pub fn parse(bytes: &[u8]) -> Result<Self, PathError> {
        if bytes.len() > MAX_PATH {
            return Err(PathError::Long);
        }
        let text = std::str::from_utf8(bytes).map_err(|_| PathError::NotText)?;
        let text = text.trim_start_matches('/');
        if text.is_empty() {
            return Err(PathError::Empty);
        }
        if text.contains(|letter: char| letter.is_control() || letter == '\\') {
            return Err(PathError::Character);
        }
        if let Some(part) = text.split('/').find(|part| matches!(*part, "" | "." | "..")) {
            return Err(PathError::Leads(part.to_owned()));
        }
        if text.as_bytes().get(1) == Some(&b':') {
            return Err(PathError::Drive);
        }
        let path = Self(text.to_owned());
        if path.name().starts_with('.') && path.name().ends_with(PART_SUFFIX) {
            return Err(PathError::Part);
        }
        Ok(path)
    }

    /// The path as it is sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders above the file, the outermost first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.rsplit_once('/').into_iter().flat_map(|(folders, _)| folders.split('/'))
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The name that the file has until it is complete: `.NAME.part`, or `.NAME.FINGERPRINT.part`
    /// if its fingerprint is known. So a sender of another file with this name does not write into
    /// the bytes that are kept of this one. A long name is cut to the length that file systems
    /// allow, and a digest replaces the rest.
    pub fn part_name(&self, fingerprint: Option<Fingerprint>) -> String {
        let suffix = match fingerprint {
            Some(Fingerprint(bytes)) => format!(".{}{PART_SUFFIX}", hexadecimal(&bytes)),
            None => PART_SUFFIX.to_owned(),
        };
        let name = self.name();
        let room = MAX_NAME - 1 - suffix.len();
        if name.len() <= room {
            return format!(".{name}{suffix}");
        }
        let digest = Sha256::digest(name);
        let digest = hexadecimal(&digest[..8]);
        let mut end = room - 1 - digest.len();
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let start = &name[..end];
        format!(".{start}~{digest}{suffix}")
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Most bytes of a path, as on Linux.
const MAX_PATH: usize = 4_096;

/// Most bytes of a name, on nearly all file systems.
const MAX_NAME: usize = 255;

/// The end of the temporary name of a file that is not complete yet.
const PART_SUFFIX: &str = ".part";

#[cfg(test)]
mod tests {
    use std::path::{Component, Path, PathBuf};

    use proptest::prelude::*;

    use super::*;

    /// The place that the store gives a path.
    fn below(path: &RelativePath) -> PathBuf {
        path.folders()
            .fold(PathBuf::from("/target"), |whole, part| whole.join(part))
            .join(path.name())
    }

    #[test]
    fn paths_below_the_folder_are_accepted() {
        for (sent, taken) in [
            ("a", "a"),
            ("videos/one.ts", "videos/one.ts"),
            ("/from xtransmit/a.b.c", "from xtransmit/a.b.c"),
            ("...", "..."),
            ("Größe/日本/12:30.log", "Größe/日本/12:30.log"),
            (".hidden", ".hidden"),
        ] {
            let path = RelativePath::parse(sent.as_bytes()).unwrap();
            assert_eq!(path.as_str(), taken);
        }
        let path = RelativePath::parse(b"a/b/c.ts").unwrap();
        assert!(path.folders().eq(["a", "b"]));
        assert_eq!((path.name(), path.part_name(None).as_str()), ("c.ts", ".c.ts.part"));
        assert_eq!(below(&path), Path::new("/target/a/b/c.ts"));
        assert_eq!(RelativePath::parse(b"c.ts").unwrap().folders().count(), 0);
    }

    #[test]
    fn a_long_name_has_a_temporary_one_that_is_not_too_long() {
        let path = |name: &str| RelativePath::parse(name.as_bytes()).unwrap();
        let fingerprint = |number| Some(Fingerprint([number; 8]));
        let part = |name: &str| path(name).part_name(fingerprint(0xA7));
        let long = |end: &str| format!("{}{end}", "a".repeat(255 - end.len()));
        assert_eq!(part("a"), ".a.a7a7a7a7a7a7a7a7.part");
        assert_eq!(path(&"a".repeat(249)).part_name(None).len(), 255);
        assert_ne!(part("a"), path("a").part_name(fingerprint(1)));
        assert_eq!(part(&long("1.ts")).len(), 255);
        assert_ne!(part(&long("1.ts")), part(&long("2.ts")));
        // Not cut within a letter.
        for pad in 0..3 {
            let name = format!("{}{}", "a".repeat(pad), "日".repeat(84));
            assert!((250..=255).contains(&part(&name).len()), "{name}");
        }
        for name in ["short", &long("1.ts")] {
            assert_eq!(RelativePath::parse(part(name).as_bytes()), Err(PathError::Part));
        }
    }

    #[test]
    fn paths_that_lead_elsewhere_are_refused() {
        for sent in [
            "",
            "/",
            "///",
            ".",
            "..",
            "../a",
            "a/../../b",
            "a/..",
            "a//b",
            "a/./b",
            "a/",
            "./a",
            "/../etc/passwd",
            "a\\..\\b",
            "\\\\server\\share",
            "C:/windows",
            "c:a",
            "/C:/x",
            "a\0b",
            "a\nb",
            "\u{1b}[2J",
            ".a.part",
            "b/.a.part",
        ] {
            assert!(RelativePath::parse(sent.as_bytes()).is_err(), "{sent:?}");
        }
        assert_eq!(RelativePath::parse(&[b'a', 0xFF]), Err(PathError::NotText));
        assert_eq!(RelativePath::parse(&[b'a'; 5_000]), Err(PathError::Long));
    }

    proptest! {
        /// Every path that is accepted, of all that may be sent, lies below the folder.
        #[test]
        fn an_accepted_path_never_leads_out_of_the_folder(sent in "[a./\\\\:C\0é-]{0,12}") {
            if let Ok(path) = RelativePath::parse(sent.as_bytes()) {
                let whole = below(&path);
                prop_assert!(whole.starts_with("/target") && whole != Path::new("/target"));
                let rest = whole.strip_prefix("/target").expect("just checked");
                prop_assert!(rest.components().all(|it| matches!(it, Component::Normal(_))));
                prop_assert_eq!(RelativePath::parse(path.as_str().as_bytes()), Ok(path));
            }
        }
    }
}
