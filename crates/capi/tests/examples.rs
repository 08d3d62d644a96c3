//! The examples in each language: a sender and a receiver exchange messages by the library.

#![forbid(unsafe_code)]

mod common;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use common::{crate_folder, include, library, output};
use interop::{Folder, Process, Tool, free_port, have_all, wait_until_bound};

#[test]
fn the_examples_in_c_exchange_messages() {
    if have_all(&[Tool::CompilerAndLibsrt]) {
        compiled("c", "cc", &["-std=gnu17"]);
    }
}

#[test]
fn the_examples_in_cpp_exchange_messages() {
    if have_all(&[Tool::CppCompiler]) {
        compiled("cpp", "c++", &["-std=c++17"]);
    }
}

#[test]
fn the_examples_in_python_exchange_messages() {
    if have_all(&[Tool::Python]) {
        let libraries = Libraries::new("capi-python");
        exchange(&libraries, |end| {
            let mut python = Command::new("python3");
            python.arg(example("python", &format!("{end}.py")));
            python
        });
    }
}

#[test]
fn the_examples_in_java_exchange_messages() {
    let Some(java) = java() else {
        return without("Java 22 or later");
    };
    let libraries = Libraries::new("capi-java");
    exchange(&libraries, |end| {
        let mut command = Command::new(&java);
        let name = if end == "sender" { "Sender.java" } else { "Receiver.java" };
        command.arg("--enable-native-access=ALL-UNNAMED").arg(example("java", name));
        command
    });
}

#[test]
fn the_examples_in_csharp_exchange_messages() {
    if Command::new("mcs").arg("--version").output().is_err() {
        return without("Mono (Debian: apt install mono-mcs mono-runtime)");
    }
    let libraries = Libraries::new("capi-csharp");
    for (name, end) in [("Sender.cs", "sender"), ("Receiver.cs", "receiver")] {
        let out = format!("-out:{}", libraries.folder.file(end).display());
        output(Command::new("mcs").arg(out).arg(example("csharp", name)));
    }
    exchange(&libraries, |end| {
        let mut mono = Command::new("mono");
        mono.arg(libraries.folder.file(end));
        mono
    });
}

/// Compiles the examples with this compiler, without a warning, and runs them.
fn compiled(language: &str, compiler: &str, flags: &[&str]) {
    let libraries = Libraries::new(&format!("capi-{language}"));
    for end in ["sender", "receiver"] {
        let mut command = Command::new(compiler);
        command.args(flags).args(["-Wall", "-Wextra", "-Werror", "-I"]).arg(include());
        command.arg(example(language, &format!("{end}.{language}")));
        command.arg("-o").arg(libraries.folder.file(end));
        output(command.arg("-L").arg(&libraries.lib).arg("-lsrt"));
    }
    exchange(&libraries, |end| Command::new(libraries.folder.file(end)));
}

/// The library under the names by which programs look for it.
struct Libraries {
    folder: Folder,
    lib: PathBuf,
}

impl Libraries {
    fn new(test: &str) -> Self {
        let folder = Folder::of(test);
        let lib = folder.file("lib");
        fs::create_dir(&lib).expect("a folder can be made");
        for name in ["libsrt.so", "libsrt.so.1.5"] {
            symlink(library(), lib.join(name)).expect("a link can be made");
        }
        Self { folder, lib }
    }
}

/// Runs the receiver and the sender that `command` makes, and compares the receiver's report.
#[track_caller]
fn exchange(libraries: &Libraries, command: impl Fn(&str) -> Command) {
    let port = free_port();
    let mut receiver = command("receiver");
    receiver.arg(port.to_string()).env("LD_LIBRARY_PATH", &libraries.lib);
    let mut receiver = Process::start("receiver", receiver, &libraries.folder);
    wait_until_bound(port);
    let mut sender = command("sender");
    sender.args(["127.0.0.1", &port.to_string(), "300"]).env("LD_LIBRARY_PATH", &libraries.lib);
    let mut sender = Process::start("sender", sender, &libraries.folder);
    assert!(sender.wait(LIMIT).success(), "{}", sender.log());
    assert!(receiver.wait(LIMIT).success(), "{}", receiver.log());
    let report = "example: received 300 messages, the last one was number 299\n";
    assert!(receiver.log().ends_with(report), "{}", receiver.log());
}

fn example(language: &str, file: &str) -> PathBuf {
    crate_folder().join("examples").join(language).join(file)
}

/// A Java of version 22 or later, the first with this interface to C.
fn java() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let programs = homes.chain(installed.map(|jdk| jdk.path())).map(|home| home.join("bin/java"));
    programs.chain(["java".into()]).find(|java| version(java).is_some_and(|it| it >= 22))
}

/// The major version of this Java, which prints `openjdk 25.0.1 2025-10-21`.
fn version(java: &PathBuf) -> Option<u32> {
    let output = Command::new(java).arg("--version").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split_whitespace().nth(1)?.split(['.', '-']).next()?.parse().ok()
}

/// Says that a language is not tested. Debian has no such Java, so that this is no failure even
/// where every program is required.
fn without(what: &str) {
    let _ = writeln!(io::stdout(), "\nnot run: needs {what}");
}

/// Within this time a program ends after its last message.
const LIMIT: Duration = Duration::from_secs(20);
