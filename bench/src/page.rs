//! The page with the tables: the bench replaces the text between two marks and nothing else.

use std::fs;
use std::path::Path;

use crate::Result;

/// Replaces the text between the marks of the page by `text`.
///
/// # Errors
///
/// If the page cannot be read or written, or does not have each mark once, in order.
pub(crate) fn write(page: &Path, text: &str) -> Result<()> {
    let name = page.display();
    let old = fs::read_to_string(page).map_err(|error| format!("{name}: {error}"))?;
    let new = replaced(&old, text)
        .ok_or_else(|| format!("{name} must have the lines `{BEGIN}` and `{END}`, each once"))?;
    fs::write(page, new).map_err(|error| format!("{name} cannot be written: {error}").into())
}

/// The page with `text` between the marks; `None` if a mark is missing or stands twice.
fn replaced(page: &str, text: &str) -> Option<String> {
    let is_once = |mark: &str| page.matches(mark).count() == 1;
    if !is_once(BEGIN) || !is_once(END) {
        return None;
    }
    let (before, rest) = page.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n\n{}\n\n{END}{after}", text.trim()))
}

const BEGIN: &str = "<!-- cargo xtask bench writes from here -->";
const END: &str = "<!-- cargo xtask bench writes to here -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_outside_of_the_marks_survives_and_writing_twice_changes_nothing() {
        let page = std::env::temp_dir().join(format!("bench-page-{}.md", std::process::id()));
        fs::write(&page, format!("# By hand\n\n{BEGIN}\nold\n{END}\n\n## Also by hand\n")).unwrap();
        write(&page, "new | table\n\n").unwrap();
        let once = fs::read_to_string(&page).unwrap();
        write(&page, "new | table\n\n").unwrap();
        let twice = fs::read_to_string(&page).unwrap();
        fs::remove_file(&page).unwrap();
        let text = format!("{BEGIN}\n\nnew | table\n\n{END}");
        assert_eq!(once, format!("# By hand\n\n{text}\n\n## Also by hand\n"));
        assert_eq!(twice, once);
    }

    #[test]
    fn a_page_with_a_missing_or_doubled_or_swapped_mark_is_left_alone() {
        let page = std::env::temp_dir().join(format!("bench-marks-{}.md", std::process::id()));
        let pages =
            ["by hand", BEGIN, END, &format!("{END}{BEGIN}"), &format!("{BEGIN}{END}{END}")];
        for text in pages {
            fs::write(&page, text).unwrap();
            let failure = write(&page, "table").unwrap_err().to_string();
            assert!(failure.contains(BEGIN) && failure.contains(END), "{failure}");
            assert_eq!(fs::read_to_string(&page).unwrap(), text);
        }
        fs::remove_file(&page).unwrap();
    }

    #[test]
    fn the_page_of_this_repository_has_the_marks() {
        assert!(replaced(include_str!("../../docs/benchmarks.md"), "table").is_some());
    }
}
