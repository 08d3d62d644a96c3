//! Compiles the part that is written in C++, if there is a compiler for it.

use std::path::Path;

/// Catches what the hooks of a program throw.
const SOURCE: &str = "src/catch.cpp";

fn main() {
    println!("cargo::rustc-check-cfg=cfg(catches_exceptions)");
    println!("cargo::rerun-if-changed={SOURCE}");
    let compiled = cc::Build::new()
        .cpp(true)
        // The program brings the runtime of C++, if it needs one.
        .cpp_link_stdlib(None)
        .cargo_warnings(false)
        // Rust's linker takes machine code only.
        .flag_if_supported("-fno-lto")
        .file(Path::new(SOURCE))
        .try_compile("punctual_catch");
    match compiled {
        Ok(()) => println!("cargo::rustc-cfg=catches_exceptions"),
        Err(_) => println!(
            "cargo::warning=No C++ compiler works here: the C library is built without the part \
             that catches C++ exceptions, and a hook that throws one ends its program."
        ),
    }
}
