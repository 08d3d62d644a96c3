//! `cargo xtask dist`: everything that is installed, into the folder `dist` of the target folder:
//! the tree of files, Debian packages and the list of parts.

mod debian;
mod parts;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell::{Outcome, cargo, output_of, root, run as run_command, say};
use crate::test::target_folder;

/// Makes everything, with optimisation unless `dev`; with `check` also tries it.
pub(crate) fn run(dev: bool, check: bool) -> Outcome {
    if !cfg!(target_os = "linux") {
        return Err("packages are made on Linux only".to_owned());
    }
    let moment = SourceTime::of_source()?;
    let target = target_folder()?;
    let programs = compile(dev, &target)?;
    let dist = target.join("dist");
    if dist.exists() {
        fs::remove_dir_all(&dist).map_err(|error| format!("{}: {error}", dist.display()))?;
    }
    let tree = dist.join("root");
    lay_out(&programs, &tree)?;
    write(&dist.join(PARTS), &parts::list(&moment)?)?;
    let packages = debian::build(&dist, "deb", dev, &moment)?;
    if check {
        debian::assert_same(&packages, &debian::build(&dist, "deb-again", dev, &moment)?)?;
        trial::run(&dist, &packages)?;
    }
    say(&format!("everything is in {}", dist.display()));
    Ok(())
}

/// The time of the sources, which stands in place of the time of the build, so that two builds are
/// the same.
pub(crate) struct SourceTime {
    /// Seconds since 1970.
    seconds: u64,
}

impl SourceTime {
    /// `SOURCE_DATE_EPOCH`, or the time of the last commit.
    fn of_source() -> Result<Self, String> {
        let given = std::env::var("SOURCE_DATE_EPOCH").ok();
        let of_commit = || {
            output_of(Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()))
        };
        let seconds = given.or_else(of_commit).and_then(|text| text.trim().parse().ok());
        let seconds = seconds.ok_or("outside of git SOURCE_DATE_EPOCH must say the time")?;
        Ok(Self { seconds })
    }

    /// The time in UTC, as `date` writes it by `format`.
    fn text(&self, format: &str) -> Result<String, String> {
        let moment = format!("--date=@{}", self.seconds);
        let text = output_of(Command::new("date").env("LC_ALL", "C").args(["-u", &moment, format]));
        Ok(text.ok_or("the program `date` fails")?.trim().to_owned())
    }
}

/// Compiles the programs, and returns their folder.
fn compile(dev: bool, target: &Path) -> Result<PathBuf, String> {
    if dev {
        // With a test the features of dependencies are those of all tests, so that little is built.
        run_command(&mut cargo(["build", "--workspace", "--bins", "--test", "cli"]))?;
        return Ok(target.join("debug"));
    }
    let folder = target.join("dist-build");
    let mut build = cargo(["build", "--locked", "--profile", "shipping", "--target-dir"]);
    build.arg(&folder);
    for package in PACKAGES {
        build.args(["--package", package]);
    }
    // The paths of this machine are no part of the programs.
    let home = std::env::home_dir().ok_or("there is no home folder")?;
    let home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let flags = [remap(&root(), "/punctual"), remap(&home, "/cargo")].join("\u{1f}");
    run_command(build.env("CARGO_ENCODED_RUSTFLAGS", flags))?;
    Ok(folder.join("shipping"))
}

/// Lays out programs, pages, completions, the configuration and the service as a system has them.
fn lay_out(programs: &Path, tree: &Path) -> Outcome {
    let share = tree.join("usr/share");
    for name in PROGRAMS {
        let program = programs.join(name);
        copy(&program, &tree.join("usr/bin").join(name))?;
        for (shell, file) in [
            ("bash", format!("bash-completion/completions/{name}")),
            ("zsh", format!("zsh/vendor-completions/_{name}")),
            ("fish", format!("fish/vendor_completions.d/{name}.fish")),
        ] {
            let script = output_of(Command::new(&program).args(["completions", shell]));
            let script = script.ok_or(format!("{name} completions {shell} fails"))?;
            write(&share.join(file), &script)?;
        }
    }
    run_command(Command::new(programs.join("punctual-manual")).arg(share.join("man")))?;
    let contrib = root().join("contrib");
    for (from, to) in [
        ("relay.toml", "etc/punctual/relay.toml"),
        ("punctual-relay.service", "usr/lib/systemd/system/punctual-relay.service"),
        ("punctual-relay.sysusers", "usr/lib/sysusers.d/punctual-relay.conf"),
    ] {
        copy(&contrib.join(from), &tree.join(to))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Outcome {
    make_parent(to)?;
    let copied = fs::copy(from, to);
    copied.map_err(|error| format!("{} to {}: {error}", from.display(), to.display()))?;
    Ok(())
}

fn copy_folder(from: &Path, to: &Path) -> Outcome {
    make_parent(&to.join("file"))?;
    match output_of(Command::new("cp").arg("--recursive").arg(from.join(".")).arg(to)) {
        Some(_) => Ok(()),
        None => Err(format!("{} cannot be copied to {}", from.display(), to.display())),
    }
}

fn write(path: &Path, text: &str) -> Outcome {
    make_parent(path)?;
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn make_parent(path: &Path) -> Outcome {
    let parent = path.parent().ok_or("a file has a folder")?;
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))
}

/// The programs that are installed.
const PROGRAMS: [&str; 3] = ["punctual", "punctual-lab", "punctual-relay"];

/// The crates of the installed programs, and of the one that writes their pages.
const PACKAGES: [&str; 4] =
    ["punctual-cli", "punctual-lab-cli", "punctual-relay-server", "punctual-manual"];

/// The list of the parts of the programs.
const PARTS: &str = "punctual.cdx.json";
