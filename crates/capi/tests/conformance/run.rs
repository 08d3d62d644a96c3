use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;

use interop::Folder;

use crate::library::Library;
use crate::programs::Programs;
use crate::rows::{Rows, add_rows};

/// Runs these programs with this library, a few at once, and returns all rows.
pub(crate) fn run_all(
    programs: &Programs,
    names: &[&str],
    library: &Library,
    folder: &Folder,
    at_once: usize,
) -> Rows {
    let left = Mutex::new(names.iter());
    let rows = Mutex::new(Rows::new());
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(name) = { left.lock().expect("no thread panics").next() } {
                    let printed = run(programs, name, library, folder);
                    add_rows(&mut rows.lock().expect("no thread panics"), name, &printed);
                }
            });
        }
    });
    rows.into_inner().expect("no thread panics")
}

/// Runs one program in a folder of its own, and returns what it prints.
///
/// A program that crashes or hangs has printed fewer rows; the missing rows are the difference. It
/// ends itself when it hangs.
fn run(programs: &Programs, name: &str, library: &Library, folder: &Folder) -> String {
    let place = folder.file(&format!("{}-{name}", library.name));
    fs::create_dir_all(&place).expect("a folder can be made");
    let errors = File::create(place.join("stderr")).expect("a file can be made");
    let mut command = Command::new(programs.path(name));
    command.current_dir(&place).stdin(Stdio::null()).stderr(errors);
    library.use_in(&mut command);
    let output = command.output().expect("a compiled program runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    fs::write(place.join("stdout"), &printed).expect("a file can be written");
    let end = format!("{}\n", output.status);
    fs::write(place.join("status"), end).expect("a file can be written");
    // A crash may cut the last line.
    printed[..printed.rfind('\n').map_or(0, |end| end + 1)].to_owned()
}
