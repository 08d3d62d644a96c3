//! Writes the manual pages of all programs into a folder: `punctual-manual FOLDER`.

#![forbid(unsafe_code)]

mod commands;
mod keys;
mod page;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{env, fs, io};

use page::ManualPage;

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("punctual-manual: name the folder for the pages");
        return ExitCode::from(2);
    };
    match write(&PathBuf::from(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("punctual-manual: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn write(folder: &Path) -> Result<(), String> {
    for page in all().map_err(|error| error.to_string())? {
        let place = folder.join(format!("man{}", page.section));
        let file = place.join(page.file_name());
        fs::create_dir_all(&place)
            .and_then(|()| fs::write(&file, &page.text))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    Ok(())
}

/// Every page.
fn all() -> io::Result<Vec<ManualPage>> {
    let mut pages = Vec::new();
    for program in
        [punctual_cli::command(), punctual_lab_cli::command(), punctual_relay_server::command()]
    {
        pages.extend(commands::pages(program)?);
    }
    pages.push(keys::page());
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_program_and_command_has_one_page() {
        let pages = all().unwrap();
        let names: BTreeSet<_> = pages.iter().map(ManualPage::file_name).collect();
        assert_eq!(names.len(), pages.len(), "a page would replace another");
        for expected in [
            "punctual.1",
            "punctual-generate.1",
            "punctual-file-send.1",
            "punctual-uri.1",
            "punctual-lab.1",
            "punctual-lab-run.1",
            "punctual-relay.1",
            "punctual-relay-token.1",
            "punctual-relay.toml.5",
        ] {
            assert!(names.contains(expected), "{expected} is not among {names:?}");
        }
        assert!(!names.contains("punctual-run-in-namespace.1"), "a hidden command");
    }

    #[test]
    fn every_page_has_a_line_for_lists_of_pages() {
        for page in all().unwrap() {
            let line = page.text.split_once(".SH NAME\n").unwrap().1.lines().next().unwrap();
            let name = page.name.replace('-', "\\-");
            assert!(line.starts_with(&format!("{name} \\- ")), "{}: {line}", page.name);
        }
    }
}
