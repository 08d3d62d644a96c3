//! Small programs in C and C++ on libsrt and on this library: each row that they print is the same,
//! or `conformance/differences.toml` accepts the difference and gives the reason.

#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_types,
    reason = "real programs run in real time, with threads and sockets"
)]

mod comparison;
mod differences;
mod library;
mod page;
mod programs;
mod rows;
mod run;

use std::path::{Path, PathBuf};

use comparison::Comparison;
use differences::Accepted;
use interop::{Folder, Tool, have_all, skip};
use library::Library;
use programs::Programs;
use rows::{Rows, recorded};
use run::run_all;

/// The version whose habits the accepted differences are differences from.
const LIBSRT: &str = "1.5.1";

/// A busy machine can make a real program late: a program that differs runs this often again.
const REPEATS: usize = 2;

#[test]
fn every_row_is_libsrts_or_an_accepted_difference() {
    if !have_all(&[Tool::CompilerAndLibsrt, Tool::CppCompiler]) {
        return;
    }
    let version = library::installed_version();
    if version != LIBSRT {
        return skip(&format!("libsrt {version} is installed, and the rows are those of {LIBSRT}"));
    }
    let folder = Folder::of("capi-conformance");
    let programs = Programs::compile(&folder);
    let libsrt = Library::installed();
    let ours = Library::of_this_build(&folder);
    let accepted = Accepted::read(&source().join("differences.toml"));
    let comparison = compare(&programs, &libsrt, &ours, &accepted, &folder);
    let problems = comparison.problems(&accepted);
    assert!(problems.is_empty(), "{problems}");
    page::check(&page::write(&comparison, &accepted));
}

/// Runs all programs on both libraries, and the ones that differ unexpectedly again, alone.
fn compare(
    programs: &Programs,
    libsrt: &Library,
    ours: &Library,
    accepted: &Accepted,
    folder: &Folder,
) -> Comparison {
    let names: Vec<&str> = programs.names().collect();
    let recorded = recorded(&source());
    let is_recorded = |name: &&str| recorded.keys().any(|key| key.program == **name);
    let run_here: Vec<&str> = names.iter().copied().filter(|name| !is_recorded(name)).collect();
    let mut theirs = run_all(programs, &run_here, libsrt, folder, AT_ONCE);
    theirs.extend(recorded.clone());
    let mut own = run_all(programs, &names, ours, folder, AT_ONCE);
    for _ in 0..REPEATS {
        let comparison = Comparison::of(&theirs, &own);
        let suspects = comparison.programs_with_problems(accepted);
        let suspects: Vec<&str> = suspects.iter().map(String::as_str).collect();
        let run_here: Vec<&str> =
            suspects.iter().copied().filter(|name| !is_recorded(name)).collect();
        replace(&mut theirs, run_all(programs, &run_here, libsrt, folder, 1));
        replace(&mut own, run_all(programs, &suspects, ours, folder, 1));
    }
    Comparison::of(&theirs, &own)
}

/// Most of a program's time is waiting.
const AT_ONCE: usize = 6;

/// Puts new rows in the place of the old rows of the same programs.
fn replace(rows: &mut Rows, new: Rows) {
    rows.retain(|key, _| new.keys().all(|other| other.program != key.program));
    rows.extend(new);
}

/// The folder of the programs.
fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("conformance")
}
