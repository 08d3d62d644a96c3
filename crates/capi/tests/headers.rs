//! The headers against libsrt's, and the names that the library exports.

#![forbid(unsafe_code)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{crate_folder, include, library, output};
use interop::{Folder, Tool, have_all};

#[test]
fn numbers_sizes_and_offsets_are_those_of_libsrt() {
    if have_all(&[Tool::CompilerAndLibsrt]) {
        compare("layout.c", &["cc", "-std=c99"], 400);
    }
}

#[test]
fn prototypes_are_those_of_libsrt() {
    if have_all(&[Tool::CppCompiler, Tool::CompilerAndLibsrt]) {
        compare("prototypes.cpp", &["c++", "-std=c++11"], 78);
    }
}

#[test]
fn each_header_compiles_alone_and_without_a_warning() {
    if !have_all(&[Tool::CppCompiler, Tool::CompilerAndLibsrt]) {
        return;
    }
    let program = Folder::of("capi-headers").file("program");
    for header in headers() {
        let text =
            format!("#include <srt/{header}>\nint one(void);\nint one(void) {{ return 1; }}\n");
        fs::write(&program, text).expect("a program can be written");
        for (language, standard) in LANGUAGES {
            check(language, standard, &program);
        }
    }
}

#[test]
fn a_program_for_libsrt_compiles_without_a_warning() {
    if !have_all(&[Tool::CppCompiler, Tool::CompilerAndLibsrt]) {
        return;
    }
    for (language, standard) in LANGUAGES {
        check(language, standard, &source("layout.c"));
    }
}

#[test]
fn the_library_exports_every_function_and_object_of_libsrt() {
    if !have_all(&[Tool::Nm, Tool::CompilerAndLibsrt]) {
        return;
    }
    let ours = exports(&library());
    let missing: Vec<_> = exports(&libsrt())
        .into_iter()
        .filter(|name| name.starts_with("srt_") && !INTERNAL.contains(&name.as_str()))
        .filter(|name| !ours.contains(name))
        .collect();
    assert!(missing.is_empty(), "not exported: {missing:?}");
    assert!(ours.contains("punctual_version"), "not exported: punctual_version");
}

#[test]
fn the_library_exports_only_the_c_interface() {
    if !have_all(&[Tool::Nm]) || std::env::var_os("PUNCTUAL_SRT_LIBRARY").is_some() {
        return;
    }
    let others: Vec<_> = exports(&library())
        .into_iter()
        .filter(|name| !name.starts_with("srt_") && !name.starts_with("punctual_"))
        .collect();
    assert!(others.is_empty(), "exported: {others:?}");
}

/// Compiles this source by this command, with our headers and with libsrt's, runs both programs,
/// and compares their output, which has at least `least` lines.
#[track_caller]
fn compare(name: &str, compiler: &[&str], least: usize) {
    let folder = Folder::of(&format!("capi-{name}"));
    let program = |which: &str, headers: &[&Path]| {
        let program = folder.file(which);
        let mut command = Command::new(compiler[0]);
        command.args(&compiler[1..]);
        for folder in headers {
            command.arg("-I").arg(folder);
        }
        output(command.arg(source(name)).arg("-o").arg(&program));
        output(&mut Command::new(program))
    };
    let ours = program("ours", &[&include()]);
    let libsrts = program("libsrts", &[]);
    assert!(ours.lines().count() >= least, "{name} prints too little:\n{ours}");
    let differences: Vec<_> =
        ours.lines().zip(libsrts.lines()).filter(|(ours, libsrts)| ours != libsrts).collect();
    assert!(differences.is_empty(), "ours, libsrt's: {differences:#?}");
    assert_eq!(ours.lines().count(), libsrts.lines().count());
}

/// Compiles this program with our headers; a warning is an error.
#[track_caller]
fn check(language: &str, standard: &str, program: &Path) {
    let mut compiler = Command::new(if language == "c" { "cc" } else { "c++" });
    compiler.args(["-x", language, &format!("-std={standard}"), "-fsyntax-only"]);
    compiler.args(["-pedantic", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include());
    output(compiler.arg(program));
}

fn source(name: &str) -> PathBuf {
    crate_folder().join("tests/headers").join(name)
}

fn headers() -> Vec<String> {
    let files = fs::read_dir(include().join("srt")).expect("the headers are there");
    let name = |file: fs::DirEntry| file.file_name().into_string().expect("names are ASCII");
    files.map(|file| name(file.expect("a folder can be read"))).collect()
}

/// The shared library of Debian's package, in its GnuTLS flavour.
fn libsrt() -> PathBuf {
    let folder = output(Command::new("pkg-config").args(["--variable=libdir", "srt"]));
    Path::new(folder.trim()).join("libsrt-gnutls.so.1.5")
}

/// The names that a shared library exports.
fn exports(library: &Path) -> BTreeSet<String> {
    let names = output(Command::new("nm").args(["-D", "--defined-only", "-P"]).arg(library));
    names.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

const LANGUAGES: [(&str, &str); 4] =
    [("c", "c99"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")];

/// Objects that libsrt exports for itself; no C header of its declares them.
const INTERNAL: [&str; 3] = ["srt_logger_config", "srt_object_lib_dummy", "srt_post_opt_list"];
