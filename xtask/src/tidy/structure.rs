//! State belongs to types: their size, and the place of their methods.

use std::fmt::Write as _;
use std::fs;

use super::{files, shown};

/// The most fields of a type that has state.
const MOST_FIELDS: usize = 15;

/// The structs with more fields: plain data without rules of their own.
const PLAIN_DATA: &[&str] = &[
    // The getters of a connection, at one moment.
    "ConnectionInfo",
    // The parts of an outcome, of a plan and of a command line.
    "Figure",
    "RouteArgs",
    "Setup",
    "StreamOutcome",
    // The observations of an end in a test bed.
    "Node",
];

#[test]
fn types_with_state_have_at_most_15_fields() {
    let mut problems = String::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (line, name, fields) in structs(&text) {
            if fields > MOST_FIELDS && !PLAIN_DATA.contains(&name) {
                let _ = writeln!(problems, "{}:{line}: {name} has {fields} fields", shown(&file));
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

#[test]
fn methods_lie_in_the_file_of_their_type() {
    let mut problems = String::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (line, name) in strangers(&text) {
            let place = shown(&file);
            let _ = writeln!(problems, "{place}:{line}: the type {name} is in another file");
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// Such a name is that of a file of tests: tools that draw the structure leave it out.
#[test]
fn no_file_of_the_product_is_named_like_a_test() {
    let is_like_a_test = |file: &String| file.ends_with("_test.rs");
    let found: Vec<_> = sources().iter().map(|it| shown(it)).filter(is_like_a_test).collect();
    assert!(found.is_empty(), "{found:?}");
}

/// The files of the crates, without those of their tests.
fn sources() -> Vec<std::path::PathBuf> {
    let mut found = files(&["rs"]);
    found.retain(|file| {
        let path = shown(file);
        path.starts_with("crates/") && path.contains("/src/") && !path.ends_with("tests.rs")
    });
    found
}

/// Line, name and number of fields of each struct with named fields. Relies on rustfmt: a field has
/// a line of its own, one step to the right of its struct.
fn structs(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let code = line.trim_start();
        let indent = &line[..line.len() - code.len()];
        let Some(name) = declared(code, "struct").filter(|_| line.ends_with('{')) else { continue };
        let (field, end) = (format!("{indent}    "), format!("{indent}}}"));
        let body = lines[start + 1..].iter().take_while(|line| **line != end);
        let fields = body.filter(|line| {
            let code = line.strip_prefix(&field).unwrap_or_default();
            let code =
                code.split_once(") ").filter(|_| code.starts_with("pub(")).map_or(code, |it| it.1);
            let name =
                code.strip_prefix("pub ").unwrap_or(code).split(':').next().unwrap_or_default();
            code.contains(": ")
                && name.bytes().all(|it| it.is_ascii_lowercase() || b"_0123456789".contains(&it))
        });
        found.push((start + 1, name, fields.count()));
    }
    found
}

/// Line and type of each inherent `impl` block whose type the file does not declare. A file with a
/// macro may declare it by that.
fn strangers(text: &str) -> Vec<(usize, &str)> {
    if text.contains("macro_rules!") {
        return Vec::new();
    }
    let declares = |name: &str| {
        let of = |kind| text.lines().any(|line| declared(line.trim_start(), kind) == Some(name));
        ["struct", "enum", "union", "trait", "type"].into_iter().any(of)
    };
    let heads = text.lines().enumerate().filter_map(|(number, line)| {
        let rest = line.trim_start().strip_prefix("impl")?;
        let rest =
            if rest.starts_with('<') { rest.split_once("> ")?.1 } else { rest.strip_prefix(' ')? };
        let name = rest.split(|it: char| !it.is_alphanumeric() && it != '_').next()?;
        (!rest.contains(" for ") && !name.is_empty()).then_some((number + 1, name))
    });
    heads.filter(|(_, name)| !declares(name)).collect()
}

/// The name that a line declares as this kind of item.
fn declared<'a>(code: &'a str, kind: &str) -> Option<&'a str> {
    let head = code.split(['(', '<', '{', ';', ':', '=']).next().unwrap_or_default();
    let code = if head == "pub" {
        code.split_once(") ")?.1
    } else {
        code.strip_prefix("pub ").unwrap_or(code)
    };
    let rest = code.strip_prefix(kind)?.strip_prefix(' ')?;
    rest.split(|it: char| !it.is_alphanumeric() && it != '_').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_and_other_lines_are_not() {
        let text = "pub(crate) struct Half<T> {\n    /// A: b.\n    a: T,\n    pub b2: u8,\n    \
                    pub(super) c: u8,\n}\nstruct Unit;\n";
        assert_eq!(structs(text), [(1, "Half", 3)]);
    }

    #[test]
    fn an_impl_block_without_its_type_is_found() {
        let text =
            "struct Here;\nimpl Here {}\nimpl<T: Copy> There<T> {}\nimpl Display for Where {}\n";
        assert_eq!(strangers(text), [(3, "There")]);
        assert_eq!(strangers("pub(crate) enum Kind {}\nimpl Kind {}\n"), []);
    }
}
