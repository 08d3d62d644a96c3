use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::{Folder, Process, Tool, have_all, skip};

/// A library with libsrt's functions, which a program loads when it starts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SrtLibrary {
    /// The one that the system has.
    Libsrt,
    /// Punctual's C library, in the folder that the environment variable `PUNCTUAL_C_LIBRARY`
    /// names. `cargo xtask test` lays it out there; by hand, `cargo xtask capi --dev PREFIX` does,
    /// and the folder is `PREFIX/lib`.
    Punctual,
}

impl SrtLibrary {
    /// Whether a test can run on it. If not, says so as [`have_all`] does.
    ///
    /// # Panics
    ///
    /// If it is missing and `PUNCTUAL_REQUIRE_PEERS` is set to `1`.
    pub fn is_there(self) -> bool {
        let there = self == Self::Libsrt || own_folder().is_some();
        if !there {
            skip("Punctual's C library is missing (PUNCTUAL_C_LIBRARY=FOLDER)");
        }
        there
    }

    /// Whether a test can run on it with these tools; as [`is_there`](Self::is_there).
    ///
    /// # Panics
    ///
    /// As `is_there` does.
    pub fn is_there_with(self, tools: &[Tool]) -> bool {
        have_all(tools) && self.is_there()
    }

    /// The folder of a test that runs once on each library.
    pub fn folder_of(self, test: &str) -> Folder {
        Folder::of(&format!("{test}-{self}"))
    }

    /// Makes the program of this command run on this library, whichever it was built against.
    ///
    /// # Panics
    ///
    /// If the library is missing.
    pub fn put_under(self, command: &mut Command) {
        match self {
            Self::Libsrt => command.env_remove("LD_LIBRARY_PATH"),
            Self::Punctual => {
                let folder = own_folder().expect("is_there() was asked");
                command.env("LD_LIBRARY_PATH", folder)
            }
        };
    }

    /// Waits until a running program has loaded this library, so that no test runs on another one
    /// than it says.
    ///
    /// # Panics
    ///
    /// If it has loaded another one, or none within ten seconds.
    pub fn wait_until_loaded(self, process: &Process) {
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let loaded = loaded_by(process);
            if !loaded.is_empty() {
                let right = loaded.iter().all(|file| self.has(file));
                assert!(right, "{} shall run on {self}, and runs on {loaded:?}", process.name());
                return;
            }
            assert!(Instant::now() < deadline, "{} has loaded no SRT library", process.name());
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Copies this library under the name that programs built with OpenSSL look for, so that a
    /// program can load it beside the other name: a file is loaded once. Returns the copy.
    ///
    /// # Panics
    ///
    /// If the library is missing, or the file cannot be written.
    pub fn copy_to(self, folder: &Folder) -> PathBuf {
        let name = NAMES[1];
        let from = own_folder().expect("is_there() was asked").join(name);
        let copy = folder.file(name);
        fs::copy(&from, &copy).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
        copy
    }

    /// The number of files with libsrt's functions that a running program has loaded.
    pub fn count_loaded(process: &Process) -> usize {
        loaded_by(process).len()
    }

    /// Checks that the loader gives this library to a program that was built against one: the
    /// loader itself lists the files that it would load.
    ///
    /// # Panics
    ///
    /// If it gives another one.
    pub(crate) fn assert_linked(self, program: &Path) {
        let mut command = Command::new(program);
        self.put_under(&mut command);
        let output = command.env("LD_TRACE_LOADED_OBJECTS", "1").output();
        let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        let list = String::from_utf8_lossy(&output.stdout).into_owned();
        // libsrt-gnutls.so.1.5 => /usr/lib/libsrt-gnutls.so.1.5 (0x00007f0000000000)
        let paths = list.split_whitespace().map(Path::new).filter(|path| path.is_absolute());
        let real = paths.filter_map(|path| path.canonicalize().ok());
        let loaded: Vec<_> = real.filter(|file| is_srt_library(file)).collect();
        let right = !loaded.is_empty() && loaded.iter().all(|file| self.has(file));
        assert!(right, "{} shall run on {self}: {list}", program.display());
    }

    /// Whether a loaded file is this library.
    fn has(self, file: &Path) -> bool {
        let is_systems = file.starts_with("/usr") || file.starts_with("/lib");
        (self == Self::Punctual) == (own_files().contains(file) || !is_systems)
    }
}

impl fmt::Display for SrtLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Libsrt => "libsrt",
            Self::Punctual => "punctual_srt",
        })
    }
}

/// The folder of Punctual's C library.
fn own_folder() -> Option<PathBuf> {
    let folder = PathBuf::from(std::env::var_os("PUNCTUAL_C_LIBRARY")?);
    let file = folder.join(NAMES[0]);
    assert!(file.exists(), "PUNCTUAL_C_LIBRARY: there is no {}", file.display());
    folder.canonicalize().ok()
}

/// The files of Punctual's C library.
fn own_files() -> BTreeSet<PathBuf> {
    let Some(folder) = own_folder() else { return BTreeSet::new() };
    NAMES.iter().filter_map(|name| folder.join(name).canonicalize().ok()).collect()
}

/// The files with libsrt's functions that a running program has loaded.
fn loaded_by(process: &Process) -> BTreeSet<PathBuf> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", process.id())).unwrap_or_default();
    // 7f0000000000-7f0000001000 r-xp 00000000 08:01 1234    /usr/lib/libsrt-gnutls.so.1.5.1
    let files = maps.lines().filter_map(|line| line.find('/').map(|at| PathBuf::from(&line[at..])));
    files.filter(|file| is_srt_library(file)).collect()
}

fn is_srt_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // Not libsrtp, which is the Secure Real-time Transport Protocol.
    name.starts_with("libsrt.so")
        || name.starts_with("libsrt-gnutls.so")
        || own_files().contains(file)
}

/// The names under which programs look for it: as built with GnuTLS, and with OpenSSL.
const NAMES: [&str; 2] = ["libsrt-gnutls.so.1.5", "libsrt.so.1.5"];

/// Runs each of these functions once on each library as a test with Tokio's runtime:
/// `on_libsrt::NAME` and `on_punctual::NAME`.
#[macro_export]
macro_rules! on_each_library {
    ($($name:ident)*) => {
        mod on_libsrt {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::SrtLibrary::Libsrt).await;
            })*
        }
        mod on_punctual {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $name() {
                super::$name($crate::SrtLibrary::Punctual).await;
            })*
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_told_by_their_names() {
        for name in ["/a/libsrt.so.1.5", "/a/libsrt-gnutls.so.1.5.1"] {
            assert!(is_srt_library(Path::new(name)), "{name}");
        }
        for name in ["/a/libsrtp2.so.1", "/a/libc.so.6", "/a/libgstsrt.so"] {
            assert!(!is_srt_library(Path::new(name)), "{name}");
        }
    }
}
