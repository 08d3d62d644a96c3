//! One table of options: an option without rules of its own is named in two files.

use std::fs;

use super::shown;
use super::structure::sources;
use crate::shell::root;

/// The rows of a connection's options, and the setters that ask them for their ranges.
const TABLE: [&str; 2] =
    ["crates/proto/src/config/mod.rs", "crates/proto/src/config/option/table.rs"];

/// Options that other parts of the product do name, because they recommend them.
const RECOMMENDED: [&str; 2] = ["losstarget", "playout"];

/// URIs, `punctual options`, the C library and the errors get an option from its row: a new one
/// changes the table and the code that obeys it. The options of our own show this, for they have no
/// rules of libsrt. Headers and pages are compared with the table by other tests.
#[test]
fn options_of_our_own_are_named_only_in_their_table() {
    let own = own_options();
    assert!((5..=9).contains(&own.len()), "at most nine options of our own: {own:?}");
    let mut named = Vec::new();
    for file in sources() {
        let place = shown(&file);
        let is_test = place.contains("/tests/") || place.ends_with("_tests.rs");
        if is_test || !place.starts_with("crates/") || TABLE.contains(&place.as_str()) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("the file can be read");
        let code = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let names = own.iter().filter(|name| code.contains(&format!("\"{name}\"")));
        named.extend(names.map(|name| format!("{place}: {name}")));
    }
    named.retain(|it| !RECOMMENDED.iter().any(|name| it.ends_with(name)));
    assert!(named.is_empty(), "derive these from the row: {named:#?}");
}

/// The names of the rows with a number of our own.
fn own_options() -> Vec<String> {
    let table = fs::read_to_string(root().join(TABLE[1])).expect("the table can be read");
    let rows = table.lines().filter(|line| line.contains("COption::own("));
    rows.filter_map(|line| line.trim().split('"').nth(1).map(str::to_owned)).collect()
}
