//! Short sentences and paragraphs in the pages for readers.
//!
//! A sentence has at most [`SENTENCE`] words, a paragraph at most [`PARAGRAPH`]. A paragraph is the
//! text between empty lines, a heading, an item of a list, or a cell of a table. Code blocks are
//! left out. A word is a run of characters between spaces with a letter or a digit in it; code in
//! backticks counts as one word, and a link as its text. A sentence ends at `.`, `?` or `!` before
//! a space; a colon or a semicolon ends none.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::{files, shown};
use crate::shell::root;

/// The most words of a sentence.
const SENTENCE: usize = 45;
/// The most words of a paragraph.
const PARAGRAPH: usize = 120;

/// Pages whose texts a program writes: the conformance suite, and the lab with the words of plans.
const WRITTEN_BY_PROGRAMS: &[&str] = &["docs/c-conformance.md", "docs/results"];

#[test]
fn pages_have_short_sentences_and_paragraphs() {
    let mut problems = String::new();
    for file in pages() {
        let text = fs::read_to_string(&file).expect("the page can be read");
        for (line, problem) in faults(&text) {
            let _ = writeln!(problems, "{}:{line}: {problem}", shown(&file));
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn architecture_is_a_short_page() {
    let page = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).expect("the page is there");
    let lines = page.lines().count();
    assert!(lines <= ARCHITECTURE, "docs/ARCHITECTURE.md has {lines} lines, not {ARCHITECTURE}");
}

/// The most lines of ARCHITECTURE.
const ARCHITECTURE: usize = 220;

/// README, CONTRIBUTING, CHANGELOG and the folder `docs`, without the pages that programs write.
fn pages() -> impl Iterator<Item = PathBuf> {
    let docs = root().join("docs");
    let written: Vec<_> = WRITTEN_BY_PROGRAMS.iter().map(|page| root().join(page)).collect();
    assert!(written.iter().all(|page| page.exists()), "a page of the list is not there");
    let is_page = move |file: &PathBuf| file.parent() == Some(&root()) || file.starts_with(&docs);
    let is_written = move |file: &PathBuf| written.iter().any(|page| file.starts_with(page));
    files(&["md"]).into_iter().filter(move |file| is_page(file) && !is_written(file))
}

/// The line and the description of each sentence and each paragraph that is too long.
fn faults(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (line, text) in paragraphs(page) {
        let text = plain(&text);
        let length = words(&text);
        if length > PARAGRAPH {
            let most = format!("{length} words, more than {PARAGRAPH}");
            found.push((line, format!("divide the paragraph, which has {most}")));
        }
        for sentence in sentences(&text) {
            let length = words(sentence);
            if length > SENTENCE {
                let start: String = sentence.chars().take(60).collect();
                let most = format!("{length} words, more than {SENTENCE}");
                found.push((line, format!("divide the sentence, which has {most}: `{start}…`")));
            }
        }
    }
    found
}

/// The paragraphs of a page, each with the number of its first line.
fn paragraphs(page: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut is_open = false;
    let mut in_code = false;
    for (number, line) in (1..).zip(page.lines()) {
        let line = line.trim();
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        if in_code || is_fence || line.is_empty() {
            is_open = false;
        } else if line.starts_with('#') {
            found.push((number, line.to_owned()));
            is_open = false;
        } else if line.starts_with('|') {
            found.extend(line.split('|').map(|cell| (number, cell.to_owned())));
            is_open = false;
        } else if let Some((_, open)) = found.last_mut().filter(|_| is_open && !is_item(line)) {
            let _ = write!(open, " {line}");
        } else {
            found.push((number, line.to_owned()));
            is_open = true;
        }
    }
    found
}

/// Whether the line begins an item of a list.
fn is_item(line: &str) -> bool {
    let number = line.trim_start_matches(|it: char| it.is_ascii_digit());
    line.starts_with("- ") || line.starts_with("* ") || (number != line && number.starts_with(". "))
}

/// The text with one word in place of code, and without the targets of links.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for (index, part) in text.split('`').enumerate() {
        plain += if index % 2 == 0 { part } else { "code" };
    }
    while let Some(start) = plain.find("](") {
        let end = plain[start..].find(')').map_or(plain.len(), |length| start + length + 1);
        plain.replace_range(start..end, "");
    }
    plain
}

fn words(text: &str) -> usize {
    text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

/// The sentences of a paragraph. A mark within a word ends none; brackets, quotation marks and
/// emphasis may stand between the mark and the space.
fn sentences(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut start = 0;
    for (mark, _) in text.match_indices(['.', '?', '!']) {
        let rest = text[mark + 1..].trim_start_matches([')', '"', '\'', '*', '_', '”', '’']);
        if rest.starts_with(' ') {
            let end = text.len() - rest.len();
            found.push(&text[start..end]);
            start = end;
        }
    }
    found.push(&text[start..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(page: &str) -> Vec<usize> {
        faults(page).into_iter().map(|(line, _)| line).collect()
    }

    fn sentence(words: usize) -> String {
        vec!["word"; words].join(" ") + "."
    }

    #[test]
    fn a_sentence_may_have_45_words_and_a_paragraph_120() {
        assert!(lines(&sentence(45)).is_empty());
        assert_eq!(lines(&format!("# A page\n\n{}", sentence(46))), [3]);
        assert!(lines(&[sentence(40), sentence(40), sentence(40)].join(" ")).is_empty());
        assert_eq!(lines(&[sentence(40), sentence(40), sentence(41)].join("\n")), [1]);
    }

    #[test]
    fn items_cells_and_paragraphs_count_alone_and_code_blocks_do_not_count() {
        let half = vec!["word"; 40].join(" ");
        assert!(lines(&format!("{half}\n- {half}\n- {half}\n12. {half}\n\n{half}")).is_empty());
        assert!(lines(&format!("| {half} | {half} |\n| {half} |")).is_empty());
        assert!(lines(&format!("```text\n{half} {half}\n```")).is_empty());
        assert_eq!(lines(&format!("{half}\n{half}")), [1]);
        assert_eq!(lines(&format!("| a |\n| {half} {half} |")), [2]);
    }

    #[test]
    fn code_is_one_word_and_a_link_is_its_text() {
        assert_eq!(words(&plain("`cargo xtask test` of [a page](docs/a.md) – 5 %")), 5);
        assert_eq!(words(&plain("all (so `a` and `b`).")), 5);
    }

    #[test]
    fn a_mark_ends_a_sentence_only_before_a_space() {
        assert_eq!(sentences("Version 0.1.0 is new. (It runs.) Is it? Yes").len(), 4);
        assert_eq!(sentences("It reads lib.rs; then it ends: done").len(), 1);
    }
}
