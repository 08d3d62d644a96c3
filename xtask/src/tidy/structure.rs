//! State belongs to types: their size, and the place of their methods.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use super::{files, numbered, shown};

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
    // The options of a connection, and snapshots of counters: macros declare their fields, with
    // the methods that treat all of them alike.
    "Config",
    "Statistics",
    "Totals",
    // A structure of libsrt's C interface.
    "TraceStatistics",
];

/// The fields of types with state that are open to other files. The number may only fall.
const OPEN_FIELDS: usize = 160;

#[test]
fn types_with_state_have_at_most_15_fields() {
    let mut problems = String::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (line, name, fields) in structs(&text) {
            let fields = fields + fields_by_macro(&text, line);
            if fields > MOST_FIELDS && !PLAIN_DATA.contains(&name) {
                let _ = writeln!(problems, "{}:{line}: {name} has {fields} fields", shown(&file));
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// State belongs to the type that owns its rules: others ask it, and do not reach into it.
#[test]
fn open_fields_of_types_with_state_do_not_become_more() {
    let mut found = BTreeMap::new();
    for file in sources() {
        let text = fs::read_to_string(&file).unwrap();
        for (name, fields) in open_fields(&text) {
            found.insert(format!("{}: {name}", shown(&file)), fields);
        }
    }
    let open: usize = found.values().sum();
    assert!(open <= OPEN_FIELDS, "{open} open fields, more than {OPEN_FIELDS}: {found:#?}");
    assert!(open == OPEN_FIELDS, "only {open} open fields; lower the limit");
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

/// A latency may change on an established connection: a copy would keep its old value. So each part
/// asks the `AgreedTime` that both halves and the group share.
#[test]
fn no_type_of_the_protocol_keeps_a_copy_of_a_latency() {
    let mut problems = String::new();
    for file in sources() {
        let place = shown(&file);
        let folders = ["connection", "group", "handshake"].map(|it| format!("proto/src/{it}/"));
        if folders.iter().any(|folder| place.contains(folder)) {
            for (line, field) in copied_latencies(&fs::read_to_string(&file).unwrap()) {
                let _ = writeln!(problems, "{place}:{line}: {field} is no AgreedTime");
            }
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The files of the crates, without those of their tests.
pub(super) fn sources() -> Vec<std::path::PathBuf> {
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
            code.contains(": ") && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
        });
        found.push((start + 1, name, fields.count()));
    }
    found
}

/// The fields of structs and variants that are named after a latency and hold a time themselves.
fn copied_latencies(text: &str) -> Vec<(usize, &str)> {
    let lines: Vec<&str> = text.lines().collect();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let is_copy = |at: &usize| {
        let Some((name, kind)) = lines[*at].split_once(": ") else { return false };
        let name = name.rsplit(' ').next().unwrap_or_default();
        let is_time = ["Duration,", "i64,", "u64,", "Option<Duration>,"].contains(&kind);
        let mut before = lines[..*at].iter().rev();
        let outer = before.find(|it| !it.is_empty() && indent(it) < indent(lines[*at]));
        let in_type = outer.is_some_and(|it| it.ends_with('{') && !it.contains("fn "));
        (name.ends_with("latency") || name == "playout") && is_time && in_type
    };
    (0..lines.len()).filter(is_copy).map(|at| (at + 1, lines[at].trim())).collect()
}

/// The number of fields that the calls of a macro add to the struct at this line, if it lies in the
/// macro. A field has a line of its own in the call: `name: type,` or `name / setter: type = …;`.
fn fields_by_macro(text: &str, line: usize) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let Some(start) = lines[..line].iter().rposition(|line| macro_name(line).is_some()) else {
        return 0;
    };
    if lines[start..line].contains(&"}") {
        return 0;
    }
    let call = format!("{}! {{", macro_name(lines[start]).unwrap_or_default());
    let after = lines[line..].iter().skip_while(|line| !line.starts_with(&call));
    let in_call = after.take_while(|line| **line != "}" && **line != "} }");
    let is_field = |line: &&&str| {
        let code = line.trim_start();
        let name = code.split([':', ' ']).next().unwrap_or_default();
        let is_name = name.bytes().all(|it| it.is_ascii_lowercase() || it == b'_');
        is_name && !name.is_empty() && code.contains(": ") && code.ends_with([',', ';'])
    };
    in_call.filter(is_field).count()
}

/// The name of the macro that a line declares.
fn macro_name(line: &str) -> Option<&str> {
    line.strip_prefix("macro_rules! ")?.split(' ').next()
}

/// The structs with methods that change them, each with the number of its fields that other files
/// can read or change, if there are any.
fn open_fields(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = numbered(text).map(|(_, line)| line).collect();
    let mut found = Vec::new();
    for (start, name, _) in structs(text) {
        let Some(head) = lines.get(start - 1) else { break };
        let end = format!("{}}}", &head[..head.len() - head.trim_start().len()]);
        let body = lines[start..].iter().take_while(|line| **line != end);
        let open = body.filter(|line| {
            let code = line.trim_start();
            code.starts_with("pub(") && code.contains(": ")
        });
        let count = open.count();
        if count > 0 && changes_itself(&lines, name) {
            found.push((name, count));
        }
    }
    found
}

/// Whether the type has a method that takes `&mut self`.
fn changes_itself(lines: &[&str], name: &str) -> bool {
    let is_head = |line: &str| {
        let Some(rest) = line.strip_prefix("impl") else { return false };
        let of = rest.rsplit(" for ").next().unwrap_or(rest).trim_start();
        let of = match of.strip_prefix('<') {
            Some(generic) => generic.split_once("> ").map_or(of, |it| it.1),
            None => of,
        };
        of.split(|it: char| !it.is_alphanumeric() && it != '_').next() == Some(name)
    };
    let heads = (0..lines.len()).filter(|at| is_head(lines[*at]));
    let mut blocks = heads.map(|at| lines[at..].iter().take_while(|line| **line != "}"));
    blocks.any(|mut block| block.any(|line| line.contains("&mut self")))
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
pub(super) fn declared<'a>(code: &'a str, kind: &str) -> Option<&'a str> {
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
    fn a_copied_latency_is_a_field_and_no_parameter() {
        let text = "pub struct Half {\n    latency: Duration,\n    kept: AgreedTime,\n}\n\
                    enum Mode {\n    Timed {\n        /// Text.\n        peer_latency: i64,\n\
                    \x20   },\n}\nfn new(\n    latency: Duration,\n) {\n}\n";
        let found: Vec<_> = copied_latencies(text).into_iter().map(|it| it.0).collect();
        assert_eq!(found, [2, 8]);
    }

    #[test]
    fn fields_of_macros_are_counted_at_their_calls() {
        let text = "macro_rules! counts {\n    ($($name:ident)*) => {\n        struct Counts {\n            \
                    $( $name: u64, )*\n            own: u8,\n        }\n    };\n}\n\ncounts! {\n    \
                    all {\n        /// How many: all.\n        sent: u64,\n        \
                    lost / with_lost: u64 = 3;\n    }\n}\n";
        let [(line, "Counts", 1)] = structs(text)[..] else { panic!("{:?}", structs(text)) };
        assert_eq!(fields_by_macro(text, line), 2);
        let plain = "struct Plain {\n    a: u8,\n}\n";
        assert_eq!(fields_by_macro(plain, 1), 0);
    }

    #[test]
    fn open_fields_count_where_a_method_changes_the_type() {
        let fields = "    pub(super) a: u8,\n    pub(crate) b: u8,\n    c: u8,\n}\n";
        let with = |rest: &str| format!("struct Half {{\n{fields}{rest}");
        let changing = with("impl<T> Debug for Half {\n    fn add(&mut self) {}\n}\n");
        assert_eq!(open_fields(&changing), [("Half", 2)]);
        let plain =
            with("impl Half {\n    fn sum(&self) {}\n}\nimpl Other {\n    fn f(&mut self) {}\n}\n");
        assert_eq!(open_fields(&plain), []);
    }

    #[test]
    fn an_impl_block_without_its_type_is_found() {
        let text =
            "struct Here;\nimpl Here {}\nimpl<T: Copy> There<T> {}\nimpl Display for Where {}\n";
        assert_eq!(strangers(text), [(3, "There")]);
        assert_eq!(strangers("pub(crate) enum Kind {}\nimpl Kind {}\n"), []);
    }
}
