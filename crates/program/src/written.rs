//! The rule for the files that commands write, in one place: nothing is destroyed that is not the
//! command's to replace.
//!
//! - No file is written that the same command reads or writes otherwise.
//! - Rows are added to a file that has such rows, and to no other one.
//! - A page, a figure or a clip replaces only one of its kind that Punctual made.
//! - The output of a command that `emulate` starts is added to its file.
//! - A stream has its options: `--overwrite` and `--append`.

use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::exit::Failure;
use crate::same_file::is_same;

/// The files that the command of this process reads or writes.
static TAKEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes that the command reads this file, or checks by itself whether it may write it; `-` is
/// standard output.
pub fn note(path: &Path) {
    taken().push(path.to_owned());
}

/// Takes this file for one purpose; `-` is standard output.
///
/// # Errors
///
/// The command uses it otherwise.
pub fn claim(path: &Path) -> Result<(), Failure> {
    let mut taken = taken();
    if !is_device(path) && taken.iter().any(|other| other == path || is_same_file(other, path)) {
        let name = match path.as_os_str().to_str() {
            Some("-") => "standard output".to_owned(),
            _ => path.display().to_string(),
        };
        return Err(Failure::usage(format!(
            "{name} is used twice by this command: name another file"
        )));
    }
    taken.push(path.to_owned());
    Ok(())
}

/// Checks before long work that a file may be written as a whole at its end: it does not exist, or
/// `is_ours` recognises it as a `kind` by its first bytes.
///
/// # Errors
///
/// The file is of another kind.
pub fn check(path: &Path, kind: &str, is_ours: impl Fn(&[u8]) -> bool) -> Result<(), Failure> {
    let failed = |error| Failure::file(path, &error);
    if fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        let mut start = Vec::new();
        let file = File::open(path).map_err(failed)?;
        file.take(START).read_to_end(&mut start).map_err(failed)?;
        if !is_ours(&start) {
            return Err(Failure::usage(format!(
                "{} exists already and is kept, because it is no {kind} of Punctual's; name \
                 another file, or move this one away",
                path.display()
            )));
        }
    }
    Ok(())
}

/// Writes a file as a whole, under the conditions of [`check`].
///
/// # Errors
///
/// The file is another one of the command's, is of another kind, or cannot be written.
pub fn replace(
    path: &Path,
    content: impl AsRef<[u8]>,
    kind: &str,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<(), Failure> {
    claim(path)?;
    check(path, kind, is_ours)?;
    fs::write(path, content).map_err(|error| Failure::file(path, &error))
}

/// Opens a file to which another program's output is added.
///
/// # Errors
///
/// The file is another one of the command's, or cannot be written.
pub fn add_to(path: &Path) -> Result<File, Failure> {
    claim(path)?;
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::file(path, &error))
}

/// Whether both paths lead to the same file, which need not exist yet.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    match (fs::metadata(one), fs::metadata(other)) {
        // Two names of one file are seen, too.
        (Ok(one), Ok(other)) if cfg!(unix) => is_same(&one, &other),
        _ => place(one).is_some_and(|one| place(other) == Some(one)),
    }
}

/// The place of a file, or the one at which it would be made.
fn place(path: &Path) -> Option<PathBuf> {
    let made = || {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        Some(folder.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(made)
}

fn taken() -> MutexGuard<'static, Vec<PathBuf>> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether several may write there, as to /dev/null.
fn is_device(path: &Path) -> bool {
    path.as_os_str() != "-" && fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// The bytes of a file by which it is recognised.
const START: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn different_paths_to_one_file_are_recognised() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str| folder.path().join(name);
        let (path, new) = (file("a.ts"), file("new.ts"));
        fs::write(&path, "a").expect("it can be written");
        fs::write(file("b.ts"), "a").expect("it can be written");
        std::os::unix::fs::symlink(&path, file("link.ts")).expect("it can be made");
        assert!(is_same_file(&path, &file("./a.ts")));
        assert!(is_same_file(&path, &file("link.ts")));
        assert!(is_same_file(&new, &file("./new.ts")));
        assert!(!is_same_file(&path, &new));
        assert!(!is_same_file(&path, &file("b.ts")));
    }
}
