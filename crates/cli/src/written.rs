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

use crate::endpoint::is_same_file;
use crate::exit::Failure;

/// The files that the command of this process reads or writes.
static TAKEN: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Notes that the command reads this file, or checks by itself whether it may write it; `-` is
/// standard output.
pub(crate) fn note(path: &Path) {
    taken().push(path.to_owned());
}

/// Takes this file for one purpose; `-` is standard output.
///
/// # Errors
///
/// The command uses it otherwise.
pub(crate) fn claim(path: &Path) -> Result<(), Failure> {
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
pub(crate) fn check(
    path: &Path,
    kind: &str,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Result<(), Failure> {
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
pub(crate) fn replace(
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
pub(crate) fn add_to(path: &Path) -> Result<File, Failure> {
    claim(path)?;
    let opened = OpenOptions::new().append(true).create(true).open(path);
    opened.map_err(|error| Failure::file(path, &error))
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
