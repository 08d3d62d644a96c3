//! A handler of the log may call the library, whatever logs and when.

#![forbid(unsafe_code)]

mod common;

use std::process::Command;

use common::{crate_folder, include, library, output};
use interop::{Folder, Tool, have_all};

/// The program ends itself by a signal if a call blocks.
#[test]
fn a_handler_can_ask_about_sockets_in_every_message() {
    if !have_all(&[Tool::CompilerAndLibsrt]) {
        return;
    }
    let program = Folder::of("capi-log-handler").file("asking");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=gnu17", "-Wall", "-Wextra", "-Werror", "-pthread", "-I"]).arg(include());
    compiler.arg(crate_folder().join("tests/log_handler/asking.c")).arg(library());
    output(compiler.arg("-o").arg(&program));
    let report = output(&mut Command::new(program));
    assert!(report.ends_with(" messages\n"), "{report}");
}
