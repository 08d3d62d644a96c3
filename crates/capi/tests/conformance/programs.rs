use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use interop::Folder;

use crate::source;

/// The C programs, compiled against libsrt's headers and linked with libsrt.
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
        let programs = names().into_iter().map(|name| {
            let program = folder.file(&name);
            let mut compiler = compiler(&program);
            compiler.arg(source().join(format!("{name}.c"))).args(&shared).args(&flags);
            run(compiler.arg("-pthread"));
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

fn names() -> Vec<String> {
    let files = fs::read_dir(source()).expect("the programs' folder can be read");
    let mut names: Vec<String> = files
        .map(|file| file.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|it| it == "c"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !SHARED.contains(&name.as_str()))
        .collect();
    names.sort();
    names
}

fn object(name: &str, folder: &Folder, flags: &[String]) -> PathBuf {
    let object = folder.file(&format!("{name}.o"));
    let mut compiler = compiler(&object);
    let compile_only = flags.iter().filter(|flag| flag.starts_with("-I"));
    run(compiler.arg("-c").arg(source().join(format!("{name}.c"))).args(compile_only));
    object
}

fn compiler(product: &Path) -> Command {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-O1", "-o"]).arg(product);
    compiler
}

fn flags() -> Vec<String> {
    let flags = Command::new("pkg-config").args(["--cflags", "--libs", "srt"]).output();
    let flags = flags.expect("pkg-config is installed").stdout;
    String::from_utf8_lossy(&flags).split_whitespace().map(str::to_owned).collect()
}

fn run(compiler: &mut Command) {
    let status = compiler.status().expect("cc is installed");
    assert!(status.success(), "{compiler:?} failed");
}
