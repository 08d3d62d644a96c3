use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use interop::Folder;

use crate::source;

/// The programs in C and C++, compiled against libsrt's headers and linked with libsrt.
#[derive(Debug)]
pub(crate) struct Programs(Vec<(String, PathBuf)>);

/// The files that the programs share.
const SHARED: [&str; 2] = ["common", "options"];

impl Programs {
    /// Compiles each file of the folder that has a `main`.
    ///
    /// # Panics
    ///
    /// If one cannot be compiled.
    pub(crate) fn compile(folder: &Folder) -> Self {
        let flags = flags();
        let shared: Vec<PathBuf> = SHARED.iter().map(|name| object(name, folder, &flags)).collect();
        let programs = sources().into_iter().map(|(name, source)| {
            let program = folder.file(&name);
            let mut compiler = compiler(&source, &program);
            run(compiler.args(&shared).args(&flags).arg("-pthread"));
            (name, program)
        });
        Self(programs.collect())
    }

    /// The programs' names, in alphabetical order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| name.as_str())
    }

    /// The compiled program of this name.
    pub(crate) fn path(&self, name: &str) -> &Path {
        let program = self.0.iter().find(|(other, _)| other == name);
        &program.expect("names come from `names`").1
    }
}

/// The name of each program and its source, in alphabetical order.
fn sources() -> Vec<(String, PathBuf)> {
    let files = fs::read_dir(source()).expect("the programs' folder can be read");
    let mut sources: Vec<(String, PathBuf)> = files
        .map(|file| file.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|it| it == "c" || it == "cpp"))
        .filter_map(|path| Some((path.file_stem()?.to_str()?.to_owned(), path)))
        .filter(|(name, _)| !SHARED.contains(&name.as_str()))
        .collect();
    sources.sort();
    sources
}

fn object(name: &str, folder: &Folder, flags: &[String]) -> PathBuf {
    let object = folder.file(&format!("{name}.o"));
    let mut compiler = compiler(&source().join(format!("{name}.c")), &object);
    run(compiler.arg("-c").args(flags.iter().filter(|flag| flag.starts_with("-I"))));
    object
}

/// The compiler for this source, and most of its arguments.
fn compiler(source: &Path, product: &Path) -> Command {
    let (name, standard) = match source.extension().is_some_and(|it| it == "cpp") {
        true => ("c++", "-std=gnu++17"),
        false => ("cc", "-std=gnu11"),
    };
    let mut compiler = Command::new(name);
    compiler.args([standard, "-Wall", "-Wextra", "-O1", "-o"]).arg(product).arg(source);
    compiler
}

fn flags() -> Vec<String> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "srt"]).output();
    let flags = flags.expect("pkg-config is installed").stdout;
    String::from_utf8_lossy(&flags).split_whitespace().map(str::to_owned).collect()
}

fn run(compiler: &mut Command) {
    let status = compiler.status().expect("the compilers are installed");
    assert!(status.success(), "{compiler:?} failed");
}
