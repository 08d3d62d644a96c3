//! Plain sentences in comments and pages: rules that a reader would check otherwise.
//!
//! In comments they hold in [`FINISHED`], a list that grows: whoever has rewritten the comments of
//! a crate adds it, and the test keeps it so. They hold in every page.

use std::fmt::Write as _;
use std::fs;

use super::{files, shown};
use crate::shell::root;

/// The folders whose comments follow these rules.
const FINISHED: &[&str] = &[
    "bench",
    "crates/blocking",
    "crates/capi",
    "crates/sockets",
    "crates/cli",
    "crates/crypto",
    "crates/emulator",
    "crates/ends",
    "crates/figures",
    "crates/file",
    "crates/fmp4",
    "crates/fuzzing",
    "crates/io",
    "crates/lab",
    "crates/lab-cli",
    "crates/manual",
    "crates/metrics",
    "crates/mpegts",
    "crates/netem",
    "crates/probe",
    "crates/program",
    "crates/proto",
    "crates/punctual",
    "crates/quic",
    "crates/quic-model",
    "crates/relay-access",
    "crates/relay-config",
    "crates/relay-hooks",
    "crates/relay-recording",
    "crates/resume",
    "crates/rtt",
    "crates/sim",
    "crates/stalls",
    "crates/stats",
    "crates/testbed",
    "crates/units",
    "crates/uri",
    "crates/wire",
    "fuzz/fuzz_targets",
    "interop",
    "xtask",
];

/// Words that stand for a noun at the start of a sentence that is not a question.
const PRONOUNS: &[&str] = &["What", "Who", "Whom", "Whose"];

/// Phrases that a reader has to decipher.
const RIDDLES: &[&str] = &["so many", "is none", "those that", "of one's own", "the same again"];

#[test]
fn comments_of_finished_crates_are_plain_sentences() {
    let mut problems = String::new();
    let roots: Vec<_> = FINISHED.iter().map(|folder| root().join(folder)).collect();
    assert!(roots.iter().all(|folder| folder.exists()), "a folder of the list is not there");
    for file in
        files(&["rs"]).into_iter().filter(|file| roots.iter().any(|it| file.starts_with(it)))
    {
        let text = fs::read_to_string(&file).unwrap();
        for (line, problem) in faults(&text) {
            let _ = writeln!(problems, "{}:{line}: {problem}", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn pages_are_plain_sentences() {
    let mut problems = String::new();
    // The program writes the pages of results, with the words of plans.
    let results = root().join("docs/results");
    for file in files(&["md"]).into_iter().filter(|file| !file.starts_with(&results)) {
        let text = fs::read_to_string(&file).unwrap();
        for (line, problem) in faults_of(lines_of_page(&text)) {
            let _ = writeln!(problems, "{}:{line}: {problem}", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// Each line of a page, which is a paragraph, an item or a row of a table; of a row each cell.
fn lines_of_page(text: &str) -> Vec<Paragraph> {
    let mut found = Vec::new();
    let mut in_example = false;
    for (number, line) in text.lines().enumerate() {
        in_example ^= line.starts_with("```");
        if in_example {
            continue;
        }
        for cell in line.trim_start_matches(['#', '-', ' ']).split('|') {
            found.push(Paragraph { line: number + 1, text: cell.trim().to_owned() });
        }
    }
    found
}

/// The line and the description of each fault in a file's comments.
fn faults(text: &str) -> Vec<(usize, String)> {
    faults_of(paragraphs(text))
}

fn faults_of(paragraphs: Vec<Paragraph>) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for Paragraph { line, text } in paragraphs {
        for sentence in sentences(&text) {
            let first = sentence.split([' ', '\'', ',']).next().unwrap_or_default();
            if PRONOUNS.contains(&first) && !sentence.ends_with('?') {
                found.push((line, format!("begin with the noun instead: `{sentence}`")));
            }
        }
        let lower = text.to_lowercase().replace("there is none", "");
        for riddle in RIDDLES.iter().filter(|riddle| lower.contains(**riddle)) {
            found.push((line, format!("say it plainly instead of `{riddle}`: `{text}`")));
        }
    }
    found
}

/// A paragraph of a comment, in one line.
struct Paragraph {
    line: usize,
    text: String,
}

/// The paragraphs of all comments. A list item begins a paragraph; examples are left out.
fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut is_open = false;
    let mut in_example = false;
    for (number, line) in text.lines().enumerate() {
        let Some(comment) = comment(line) else {
            (is_open, in_example) = (false, false);
            continue;
        };
        if comment.starts_with("```") {
            in_example = !in_example;
        }
        if in_example || comment.is_empty() || comment.starts_with("```") {
            is_open = false;
            continue;
        }
        let item = comment.strip_prefix("- ");
        match found.last_mut().filter(|_| is_open && item.is_none()) {
            Some(paragraph) => paragraph.text += &format!(" {comment}"),
            None => {
                let text = item.unwrap_or(comment).to_owned();
                found.push(Paragraph { line: number + 1, text });
            }
        }
        is_open = true;
    }
    found
}

/// The text of a line that is a comment alone.
fn comment(line: &str) -> Option<&str> {
    let comment = line.trim_start().strip_prefix("//")?;
    Some(comment.trim_start_matches(['/', '!']).trim())
}

/// The sentences of a paragraph, each with the mark at its end. A mark within a word, as in
/// `lib.rs`, ends nothing.
fn sentences(paragraph: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (end, mark) in paragraph.match_indices(['.', '?', '!', ':']) {
        let end = end + mark.len();
        if paragraph[end..].starts_with(' ') {
            found.push(paragraph[start..end].trim());
            start = end;
        }
    }
    found.push(paragraph[start..].trim());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: [usize; 0] = [];

    fn lines(text: &str) -> Vec<usize> {
        faults(text).into_iter().map(|(line, _)| line).collect()
    }

    #[test]
    fn a_sentence_that_begins_with_a_pronoun_is_found_wherever_it_is() {
        assert_eq!(lines("/// What was read."), [1]);
        assert_eq!(lines("fn f() {}\n    /// It is read. Who\n    /// reads it knows."), [2]);
        assert_eq!(lines("//! - Whose turn it is.\n//! - The rest."), [1]);
        assert_eq!(lines("// The reason: What is sent is gone."), [1]);
    }

    #[test]
    fn questions_and_words_within_a_sentence_are_allowed() {
        assert_eq!(lines("/// What was read? All of it. It knows what it read."), NOTHING);
        assert_eq!(lines("/// Whatever comes is read."), NOTHING);
        assert_eq!(lines("let text = \"What is it.\";"), NOTHING);
        assert_eq!(lines("/// ```\n/// // What is it.\n/// ```"), NOTHING);
    }

    #[test]
    fn cells_of_a_page_are_read_and_its_examples_are_not() {
        let page = "# A page\n\n| a | What it does. |\n\n```sh\nWhat is it.\n```\n- Who reads.";
        let found = faults_of(lines_of_page(page)).into_iter().map(|(line, _)| line);
        assert_eq!(found.collect::<Vec<_>>(), [3, 8]);
    }

    #[test]
    fn a_riddle_is_found_across_lines() {
        assert_eq!(lines("/// It waits for so\n/// many packets."), [1]);
        assert_eq!(lines("/// Those that came."), [1]);
        assert_eq!(lines("/// A message that is none."), [1]);
        assert_eq!(lines("/// Many packets, and so on. It is made if there is none."), NOTHING);
    }
}
