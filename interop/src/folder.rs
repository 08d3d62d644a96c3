use std::fs;
use std::path::{Path, PathBuf};

/// The folder where one test leaves its logs, captures and received streams.
///
/// It lies under the build's target folder, is emptied when the test starts and stays when the test
/// ends, to be looked at.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The folder of the test of this name, empty.
    ///
    /// # Panics
    ///
    /// If it cannot be made.
    pub fn of(test: &str) -> Self {
        let path = shared().join(test);
        if path.exists() {
            fs::remove_dir_all(&path).expect("the test's old folder can be removed");
        }
        fs::create_dir_all(&path).expect("the test's folder can be made");
        Self(path)
    }

    /// A file in this folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

/// The folder of what tests share, under the build's target folder.
pub(crate) fn shared() -> PathBuf {
    let path = target().join("interop");
    fs::create_dir_all(&path).expect("a folder under the target folder can be made");
    path
}

/// The target folder of the build that this test program came from.
pub(crate) fn target() -> PathBuf {
    profile().parent().expect("a profile's folder lies in the target folder").to_path_buf()
}

/// The folder of the build profile that this test program came from, such as `target/debug`.
pub(crate) fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("a running program has a path");
    // target/debug/deps/streams-0123456789abcdef
    test.ancestors().nth(2).unwrap_or(Path::new(".")).to_path_buf()
}
