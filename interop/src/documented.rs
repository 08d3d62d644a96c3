//! The commands in the README, in the pages of `docs` and in examples.

use std::fs;
use std::path::{Path, PathBuf};

/// The calls of `program` in all pages and examples, each with its file.
pub fn documented_commands(program: &str) -> Vec<(PathBuf, Vec<String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    for file in pages_and_examples(&root) {
        let text = fs::read_to_string(&file).expect("it can be read");
        let lines = match file.extension().is_some_and(|it| it == "md") {
            true => lines_of_page(&text),
            false => lines_of_example(&text),
        };
        for line in lines {
            found.extend(commands(&line).into_iter().map(|words| (file.clone(), words)));
        }
    }
    found.retain(|(_, words)| words[0] == program);
    found
}

fn pages_and_examples(root: &Path) -> Vec<PathBuf> {
    let mut folders = vec![root.join("docs")];
    for part in fs::read_dir(root.join("crates")).expect("the repository") {
        folders.push(part.expect("it can be read").path().join("examples"));
    }
    let mut files = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let path = entry.expect("it can be read").path();
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

/// The lines in the comment at the top of an example which begin with a program's name.
fn lines_of_example(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| {
        let line = line.trim_start_matches(['/', '!', '*', '#', ' ']);
        ["punctual ", "punctual-lab "].iter().any(|it| line.starts_with(it)).then_some(line)
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

/// The calls of our programs in a line for a shell, each with its words.
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
            "punctual" | "punctual-lab" if command.is_none() => command = Some(vec![word]),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_anywhere_in_a_line() {
        let line =
            "ffmpeg -i a - | sudo punctual send - 'srt://h:1?latency=1s' 2>log & cargo run -- demo";
        let send = ["punctual", "send", "-", "srt://h:1?latency=1s"];
        assert_eq!(commands(line), [&send[..], &["punctual", "demo"]]);
        assert_eq!(commands("punctual-lab list | less"), [["punctual-lab", "list"]]);
        let page = "```sh\npunctual route a \\\n  b\n```\n```rust\npunctual\n```\n";
        assert_eq!(lines_of_page(page), ["punctual route a   b"]);
    }
}
