//! The commands in the README, in the pages of `docs` and in examples are right.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::Cli;

#[test]
fn commands_in_pages_and_examples_are_understood() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut count, mut problems) = (0, String::new());
    for file in pages_and_examples(&root) {
        let text = fs::read_to_string(&file).unwrap();
        let lines = match file.extension().is_some_and(|it| it == "md") {
            true => lines_of_page(&text),
            false => lines_of_example(&text),
        };
        for line in lines {
            for command in commands(&line) {
                count += 1;
                if let Err(error) = Cli::try_parse_from(&command)
                    && error.use_stderr()
                    // A reader has the files.
                    && !error.to_string().contains("No such file")
                {
                    let file = file.display();
                    problems.push_str(&format!("{file}: {}\n{error}\n", command.join(" ")));
                }
            }
        }
    }
    assert!(count > 50, "{count} commands were found");
    assert!(problems.is_empty(), "{problems}");
}

#[test]
fn a_command_that_does_not_exist_is_found_anywhere_in_a_line() {
    let line =
        "ffmpeg -i a - | sudo punctual send - 'srt://h:1?latency=1s' 2>log & cargo run -- demo";
    let found = commands(line);
    let send = ["punctual", "send", "-", "srt://h:1?latency=1s"];
    assert_eq!(found, [&send[..], &["punctual", "demo"]]);
    assert!(Cli::try_parse_from(&found[0]).is_err());
    assert!(Cli::try_parse_from(&found[1]).is_ok());
    let page = "```sh\npunctual route a \\\n  b\n```\n```rust\npunctual\n```\n";
    assert_eq!(lines_of_page(page), ["punctual route a   b"]);
}

fn pages_and_examples(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.join("docs")];
    for part in fs::read_dir(root.join("crates")).unwrap() {
        folders.push(part.unwrap().path().join("examples"));
    }
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.extension().and_then(|it| it.to_str()) {
                Some("md" | "rs" | "c" | "py" | "go") => files.push(path),
                _ if path.is_dir() => folders.push(path),
                _ => {}
            }
        }
    }
    files
}

/// The lines for a shell in a page of Markdown.
fn lines_of_page(text: &str) -> Vec<String> {
    let mut shell = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if let Some(language) = line.strip_prefix("```") {
            shell = matches!(language, "sh" | "console");
        } else if shell {
            lines.push(line);
        }
    }
    joined(lines)
}

/// The lines in the comment at the top of an example which begin with the program's name.
fn lines_of_example(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['/', '!', '*', '#', ' ']);
        line.starts_with("punctual ").then_some(line)
    });
    joined(lines.collect())
}

/// Lines with those on which they go on.
fn joined(lines: Vec<&str>) -> Vec<String> {
    let mut whole = Vec::new();
    let mut begun = String::new();
    for line in lines {
        match line.strip_suffix('\\') {
            Some(more) => begun.push_str(more),
            None => whole.push(std::mem::take(&mut begun) + line),
        }
    }
    whole
}

/// The calls of the program in a line for a shell, each with its words.
fn commands(line: &str) -> Vec<Vec<String>> {
    // A reader puts the digest of the certificate here.
    let line = line.replace('…', &"0".repeat(64));
    let line = line.replace("cargo run --release -- ", "punctual ");
    let line = line.replace("cargo run -- ", "punctual ");
    let words = shlex::split(&line).unwrap_or_else(|| panic!("open quotes: {line}"));
    let mut commands = Vec::new();
    let mut command: Option<Vec<String>> = None;
    for word in words {
        match word.as_str() {
            "|" | "&" | "&&" | ";" => commands.extend(command.take()),
            "punctual" if command.is_none() => command = Some(vec![word]),
            // A redirection, and its file.
            _ if word.starts_with(['>', '<']) || word.starts_with("2>") => {
                commands.extend(command.take());
            }
            _ => {
                if let Some(command) = &mut command {
                    command.push(word);
                }
            }
        }
    }
    commands.extend(command);
    commands
}
