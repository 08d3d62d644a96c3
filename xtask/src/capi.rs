//! `cargo xtask capi`: the C library, laid out as a system expects it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, cargo, root, run, say};
use crate::test::target_folder;

/// Builds the C library, with optimisation unless `dev`, and lays it out under `prefix`: shared
/// libraries with both of libsrt's names, the static library, headers and pkg-config files.
///
/// One build of the static library serves all: the shared ones are linked from it, since a shared
/// library has only one name (soname) and rustc would compile it again for the second one.
pub(crate) fn build(dev: bool, prefix: Option<&str>) -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err("the C library is laid out on Linux only".to_owned());
    }
    let target = target_folder()?;
    let prefix = prefix.map_or_else(|| root().join("target/capi"), PathBuf::from);
    let archive = compile(dev, &target)?;
    let lib = prefix.join("lib");
    make_folder(&lib.join("pkgconfig"))?;
    copy(&archive, &lib.join("libsrt.a"))?;
    for name in NAMES {
        link_shared(&archive, &lib, name)?;
    }
    copy_headers(&prefix.join("include/srt"))?;
    for name in ["srt.pc", "haisrt.pc"] {
        write(&lib.join("pkgconfig").join(name), PKG_CONFIG)?;
    }
    say(&format!("the C library is in {}", prefix.display()));
    say(&format!("try it: LD_LIBRARY_PATH={} ffmpeg …", absolute(&lib)?.display()));
    Ok(())
}

/// Compiles the static library and returns its path.
fn compile(dev: bool, target: &Path) -> Result<PathBuf, String> {
    let mut rustc = cargo(["rustc", "--package", "punctual-capi", "--lib"]);
    rustc.args(["--crate-type", "staticlib"]).arg("--target-dir").arg(target);
    if !dev {
        rustc.args(["--profile", "shipping"]);
    }
    run(&mut rustc)?;
    Ok(target.join(if dev { "debug" } else { "shipping" }).join("libpunctual_srt.a"))
}

/// Links `lib<name>.so.1.5.5`, whose soname is `lib<name>.so.1.5`, and makes its links.
fn link_shared(archive: &Path, lib: &Path, name: &str) -> Outcome {
    let exports = lib.join("exports.map");
    write(&exports, EXPORTS)?;
    let file = format!("lib{name}.so.{VERSION}");
    let soname = format!("lib{name}.so.{ABI}");
    let mut linker = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    linker.args(["-shared", "-o"]).arg(lib.join(&file));
    linker.arg(format!("-Wl,-soname,{soname}"));
    linker.arg(format!("-Wl,--version-script={}", exports.display()));
    linker.args(LINK_OPTIONS);
    linker.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive");
    let linked = run(linker.args(NATIVE_LIBRARIES));
    fs::remove_file(&exports).map_err(|error| format!("{}: {error}", exports.display()))?;
    linked?;
    link(&file, &lib.join(&soname))?;
    link(&soname, &lib.join(format!("lib{name}.so")))
}

fn copy_headers(to: &Path) -> Outcome {
    make_folder(to)?;
    let from = root().join("crates/capi/include/srt");
    let entries = fs::read_dir(&from).map_err(|error| format!("{}: {error}", from.display()))?;
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", from.display()))?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

fn make_folder(path: &Path) -> Outcome {
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Outcome {
    let copied = fs::copy(from, to);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
    Ok(())
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Makes the symbolic link `path`, and replaces an old one.
pub(crate) fn link(to: impl AsRef<Path>, path: &Path) -> Outcome {
    let _ = fs::remove_file(path);
    symlink(to, path).map_err(|error| format!("{}: {error}", path.display()))
}

fn absolute(path: &Path) -> Result<PathBuf, String> {
    path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))
}

/// The names of the shared libraries: libsrt's own, which Debian uses for its OpenSSL flavour, and
/// that of Debian's GnuTLS flavour.
const NAMES: [&str; 2] = ["srt", "srt-gnutls"];

/// libsrt's version that the library takes the place of.
const VERSION: &str = "1.5.5";

/// The part of the version that programs ask for.
const ABI: &str = "1.5";

/// Only the C interface is visible: neither Rust's standard library nor anything else.
const EXPORTS: &str = "{ global: srt_*; punctual_*; local: *; };\n";

/// Functions of the library call each other even if a program loads the other flavour before it.
/// Parts that the C interface does not need are left out, and no symbol may be missing. A program
/// that unloads its plugins must not unload the code of the threads that still run.
const LINK_OPTIONS: [&str; 7] = [
    "-Wl,-Bsymbolic-functions",
    "-Wl,--gc-sections",
    "-Wl,-z,relro,-z,now",
    "-Wl,-z,defs",
    "-Wl,-z,nodelete",
    "-Wl,--strip-debug",
    "-Wl,--as-needed",
];

/// The system's libraries that Rust's standard library needs (`--print native-static-libs`).
const NATIVE_LIBRARIES: [&str; 7] =
    ["-lgcc_s", "-lutil", "-lrt", "-lpthread", "-lm", "-ldl", "-lc"];

/// The paths follow the file, so that the folder can be moved.
const PKG_CONFIG: &str = "\
prefix=${pcfiledir}/../..
libdir=${prefix}/lib
includedir=${prefix}/include

Name: srt
Description: Punctual, with libsrt's C interface
Version: 1.5.5
Libs: -L${libdir} -lsrt
Libs.private: -lgcc_s -lutil -lrt -lpthread -lm -ldl -lc
Cflags: -I${includedir} -I${includedir}/srt
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_libraries_are_the_same_everywhere() {
        let header = root().join("crates/capi/include/srt/version.h");
        let header = fs::read_to_string(header).unwrap();
        assert!(header.contains(&format!("\"{VERSION}\"")), "{header}");
        assert!(PKG_CONFIG.contains(&format!("Version: {VERSION}\n")));
        assert!(VERSION.starts_with(ABI));
        let private = format!("Libs.private: {}\n", NATIVE_LIBRARIES.join(" "));
        assert!(PKG_CONFIG.contains(&private), "{private}");
    }
}
