//! The commands in the README, in the pages of `docs` and in examples are right.

use std::ffi::OsString;

use clap::Parser as _;

use super::Cli;
use crate::companion;

#[test]
fn commands_in_pages_and_examples_are_understood() {
    let (mut count, mut problems) = (0, String::new());
    for (file, command) in interop::documented_commands("punctual") {
        count += 1;
        let words: Vec<OsString> = command.iter().map(OsString::from).collect();
        // Tests of the other programs read theirs.
        if companion::of(&words).is_none()
            && let Err(error) = Cli::try_parse_from(&command)
            && error.use_stderr()
            // A reader has the files.
            && !error.to_string().contains("No such file")
        {
            let file = file.display();
            problems.push_str(&format!("{file}: {}\n{error}\n", command.join(" ")));
        }
    }
    assert!(count > 50, "{count} commands were found");
    assert!(problems.is_empty(), "{problems}");
}
