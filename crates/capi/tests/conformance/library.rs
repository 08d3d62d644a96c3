use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

use interop::Folder;

/// A shared library with libsrt's functions, as a program finds it.
#[derive(Debug)]
pub(crate) struct Library {
    /// For logs.
    pub(crate) name: &'static str,
    /// The folder that `LD_LIBRARY_PATH` is to name; `None` for the system's.
    folder: Option<PathBuf>,
}

/// The names under which programs look for libsrt: Debian's two flavours.
const NAMES: [&str; 2] = ["libsrt-gnutls.so.1.5", "libsrt.so.1.5"];

impl Library {
    /// The libsrt that is installed.
    pub(crate) fn installed() -> Self {
        Self { name: "libsrt", folder: None }
    }

    /// The library of this build, or the one that `PUNCTUAL_SRT_LIBRARY` names, under libsrt's
    /// names in a folder of its own.
    ///
    /// # Panics
    ///
    /// If it is not there, or if the folder cannot be made.
    pub(crate) fn of_this_build(folder: &Folder) -> Self {
        let library = env::var_os("PUNCTUAL_SRT_LIBRARY").map_or_else(built, PathBuf::from);
        assert!(library.exists(), "{} is not there", library.display());
        let place = folder.file("library");
        fs::create_dir_all(&place).expect("a folder can be made");
        for name in NAMES {
            symlink(&library, place.join(name)).expect("a link can be made");
        }
        Self { name: "ours", folder: Some(place) }
    }

    /// Makes this program find the library.
    pub(crate) fn use_in(&self, command: &mut Command) {
        match &self.folder {
            Some(folder) => command.env("LD_LIBRARY_PATH", folder),
            None => command.env_remove("LD_LIBRARY_PATH"),
        };
    }
}

/// Cargo builds the library before the tests, into their folder.
fn built() -> PathBuf {
    let test = env::current_exe().expect("a running program has a path");
    test.with_file_name("libpunctual_srt.so")
}

/// The version of the libsrt whose headers are installed.
pub(crate) fn installed_version() -> String {
    let output = Command::new("pkg-config").args(["--modversion", "srt"]).output();
    let output = output.expect("pkg-config is installed");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
