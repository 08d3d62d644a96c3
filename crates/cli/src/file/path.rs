//! Where a file that somebody sends may lie: below the target folder, and nowhere else.

use std::fmt;

use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// The path of a file below a folder, as it travels: UTF-8 with slashes between its parts, none of
/// which leads anywhere else. The same rules hold on every system, so that what one end takes the
/// other can have sent.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct RelativePath(String);

/// Why a path is not taken.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub(crate) enum PathError {
    #[error("it is empty")]
    Empty,
    #[error("it is longer than {MAX_PATH} bytes")]
    Long,
    #[error("it is not UTF-8")]
    NotText,
    #[error("it has a control character or a backslash")]
    Character,
    #[error("it has a part `{0}`, which leads elsewhere")]
    Leads(String),
    #[error("it begins with the name of a drive")]
    Drive,
    #[error("a name that ends in `{PART_SUFFIX}` and begins with a dot is an unfinished file's")]
    Part,
}

impl RelativePath {
    /// Checks what the other end sent. srt-xtransmit writes a slash before the paths of a folder's
    /// files, and means the target folder by it; so it is understood here.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, PathError> {
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

    /// As it travels.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// The folders above the file, the outermost first.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.rsplit_once('/').into_iter().flat_map(|(folders, _)| folders.split('/'))
    }

    /// The file's name.
    pub(crate) fn name(&self) -> &str {
        self.0.rsplit_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// The name that the file has until it is whole. Of a long name it holds as much as a file
    /// system takes, and a digest in place of the rest.
    pub(crate) fn part_name(&self) -> String {
        let name = self.name();
        let room = MAX_NAME - 1 - PART_SUFFIX.len();
        if name.len() <= room {
            return format!(".{name}{PART_SUFFIX}");
        }
        let digest = Sha256::digest(name);
        let digest: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let mut end = room - 1 - digest.len();
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        let start = &name[..end];
        format!(".{start}~{digest}{PART_SUFFIX}")
    }
}

impl fmt::Display for RelativePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Bytes of a path at most, as on Linux.
const MAX_PATH: usize = 4_096;

/// Bytes of a name at most, on nearly all file systems.
const MAX_NAME: usize = 255;

/// How the name of a file ends that is not whole yet.
const PART_SUFFIX: &str = ".part";

#[cfg(test)]
mod tests {
    use std::path::{Component, Path, PathBuf};

    use proptest::prelude::*;

    use super::*;

    /// Where the store puts it.
    fn below(path: &RelativePath) -> PathBuf {
        path.folders()
            .fold(PathBuf::from("/target"), |whole, part| whole.join(part))
            .join(path.name())
    }

    #[test]
    fn paths_below_the_folder_are_taken() {
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
        assert_eq!((path.name(), path.part_name().as_str()), ("c.ts", ".c.ts.part"));
        assert_eq!(below(&path), Path::new("/target/a/b/c.ts"));
        assert_eq!(RelativePath::parse(b"c.ts").unwrap().folders().count(), 0);
    }

    #[test]
    fn a_long_name_has_a_temporary_one_that_is_not_too_long() {
        let part = |name: &str| RelativePath::parse(name.as_bytes()).unwrap().part_name();
        let long = |end: &str| format!("{}{end}", "a".repeat(255 - end.len()));
        assert_eq!(part(&"a".repeat(249)).len(), 255);
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
        /// Whatever is sent: what is taken lies below the folder.
        #[test]
        fn what_is_taken_never_leads_out(sent in "[a./\\\\:C\0é-]{0,12}") {
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
