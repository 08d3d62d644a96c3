//! The Debian packages, by debhelper from the tree of files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{PARTS, SourceTime, copy, copy_folder, write};
use crate::shell::{Outcome, output_of, root, run, say};

/// Builds the packages in `folder` below `dist` and returns their files, or none with a message
/// where Debian's tools are missing.
pub(super) fn build(
    dist: &Path,
    folder: &str,
    dev: bool,
    moment: &SourceTime,
) -> Result<Vec<PathBuf>, String> {
    let query = ["--show", "--showformat=${Status}", "debhelper"];
    let status = output_of(Command::new("dpkg-query").args(query));
    if !status.is_some_and(|it| it.ends_with(" installed")) {
        say("no Debian packages are made, since debhelper is not installed");
        return Ok(Vec::new());
    }
    let folder = dist.join(folder);
    let source = folder.join("source");
    copy_folder(&dist.join("root"), &source.join("root"))?;
    copy_folder(&root().join("contrib"), &source.join("contrib"))?;
    copy(&dist.join(PARTS), &source.join(PARTS))?;
    copy(&root().join("README.md"), &source.join("README.md"))?;
    let debian = source.join("debian");
    copy_folder(&source.join("contrib/debian"), &debian)?;
    for name in ["punctual-relay.service", "punctual-relay.sysusers"] {
        copy(&source.join("contrib").join(name), &debian.join(name))?;
    }
    write(&debian.join("changelog"), &changelog(&moment.text("+%a, %d %b %Y %T +0000")?))?;
    let mut tool = Command::new("dpkg-buildpackage");
    tool.args(["--build=binary", "--no-sign", "--no-check-builddeps"]).current_dir(&source);
    tool.env("SOURCE_DATE_EPOCH", moment.seconds.to_string());
    tool.env("DEB_BUILD_OPTIONS", "nocheck noautodbgsym");
    if dev {
        tool.env("DPKG_DEB_COMPRESSOR_LEVEL", "0");
    }
    run(&mut tool)?;
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut packages = Vec::new();
    for entry in fs::read_dir(&folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        if path.extension().is_some_and(|it| it == "deb") {
            packages.push(path);
        }
    }
    packages.sort();
    Ok(packages)
}

/// Compares two builds of the same packages, byte for byte.
pub(super) fn assert_same(first: &[PathBuf], second: &[PathBuf]) -> Outcome {
    let read =
        |path: &PathBuf| fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    for (first, second) in first.iter().zip(second) {
        if read(first)? != read(second)? {
            return Err(format!("{} and {} differ", first.display(), second.display()));
        }
    }
    say(&format!("{} packages are the same in two builds", first.len()));
    Ok(())
}

/// Debian's changelog, whose first line gives the packages their version.
fn changelog(date: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        "punctual ({version}) unstable; urgency=medium\n\n  * Version {version} of Punctual.\n\n \
         -- {MAINTAINER}  {date}\n"
    )
}

/// As in `contrib/debian/control`.
const MAINTAINER: &str = "The Punctual authors <maintainers@punctual.example>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_maintainer_of_the_changelog_is_that_of_the_packages() {
        let control = fs::read_to_string(root().join("contrib/debian/control")).unwrap();
        assert!(control.contains(&format!("\nMaintainer: {MAINTAINER}\n")), "{control}");
    }
}
