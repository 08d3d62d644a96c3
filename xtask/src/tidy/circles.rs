//! Imports go one way: the largest circle of files that import each other, for each crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::{files, numbered, shown};

/// A file's place in its crate: the names of the modules that lead to it.
type Module = Vec<String>;
/// The modules that each module imports.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The number of files in the largest circle of each crate that has one. A number may only fall,
/// and none is over five.
const LARGEST: &[(&str, usize)] = &[
    ("bench", 2),
    ("capi", 3),
    ("cli", 2),
    ("crypto", 4),
    ("emulator", 2),
    ("figures", 4),
    ("file", 2),
    ("interop", 2),
    ("lab", 5),
    ("netem", 5),
    ("probe", 4),
    ("program", 5),
    ("proto", 2),
    ("punctual", 4),
    ("quic", 2),
    ("sockets", 4),
    ("testbed", 2),
    ("xtask", 2),
];

#[test]
fn circles_of_importing_files_do_not_grow() {
    let mut problems = String::new();
    for (name, imports) in crates() {
        let limit = LARGEST.iter().find(|(listed, _)| *listed == name).map_or(1, |it| it.1);
        let circle = largest_circle(&imports);
        let size = circle.len().max(1);
        assert!(limit <= 5, "{name}: more than five in the list");
        if size > limit {
            let _ = writeln!(problems, "{name}: {size} files import each other, not {limit}:");
            for module in &circle {
                let targets: Vec<_> = imports[module].intersection(&circle).map(title).collect();
                let _ = writeln!(problems, "    {} imports {}", title(module), targets.join(", "));
            }
        } else if size < limit {
            let _ = writeln!(problems, "{name}: only {size} files; lower the list's {limit}");
        }
    }
    assert!(problems.is_empty(), "\n{problems}");
}

/// The protocol's floors, from the ground up: a file imports those of its own floor and of lower
/// ones.
const FLOORS: &[&[&str]] = &[
    &[
        "chance",
        "encryption",
        "error",
        "event",
        "framing",
        "group_offer",
        "ids",
        "path",
        "seq_ring",
        "seq_run",
        "seq_set",
        "statistics",
        "stream_id",
        "transmission",
        "wake_up",
    ],
    &["agreed_time", "pace", "probe_pairs", "report_times", "windowed_ratio"],
    &["filter", "measured_path"],
    &["factory", "policy"],
    &["config"],
    &["crypt"],
    &["handshake"],
    &["congestion"],
    &["group"],
    &["connection"],
    &["endpoint"],
    &["group_driver"],
];

/// The imports that go up: a congestion control gets the connection's options when they change.
const UP: &[(&str, &str)] = &[("policy/congestion", "config")];

#[test]
fn the_protocol_imports_nothing_from_a_higher_floor() {
    let floor_of = |module: &Module| {
        let found = FLOORS.iter().position(|floor| floor.contains(&module[0].as_str()));
        found.unwrap_or_else(|| panic!("{} has no floor", title(module)))
    };
    let imports = &crates()["proto"];
    let within = imports.iter().filter(|(module, _)| !module.is_empty());
    let all = within.flat_map(|(module, targets)| targets.iter().map(move |it| (module, it)));
    let up: Vec<_> = all
        .filter(|(module, target)| floor_of(module) < floor_of(target))
        .map(|(module, target)| (title(module), title(target)))
        .collect();
    let allowed: Vec<_> = UP.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
    assert_eq!(up, allowed);
}

fn title(module: &Module) -> String {
    if module.is_empty() { "the root".to_owned() } else { module.join("/") }
}

/// The crates by their folder (without `crates/`), each with the imports of its modules.
fn crates() -> BTreeMap<String, Imports> {
    let mut texts: BTreeMap<String, BTreeMap<Module, String>> = BTreeMap::new();
    for file in files(&["rs"]) {
        let path = shown(&file);
        let Some((folder, inside)) = path.split_once("/src/") else { continue };
        let Some(module) = module_of(inside) else { continue };
        let name = folder.strip_prefix("crates/").unwrap_or(folder).to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let code: Vec<&str> = numbered(&text).map(|(_, line)| line).collect();
        texts.entry(name).or_default().insert(module, code.join("\n"));
    }
    let imports = |texts: BTreeMap<Module, String>| {
        let modules: BTreeSet<Module> = texts.keys().cloned().collect();
        texts.iter().map(|(it, text)| (it.clone(), imports(it, text, &modules))).collect()
    };
    texts.into_iter().map(|(name, texts)| (name, imports(texts))).collect()
}

/// The module of a file of a crate's `src`; `None` for a file of tests.
fn module_of(path: &str) -> Option<Module> {
    let path = Path::new(path).with_extension("");
    let mut names: Module =
        path.iter().map(|name| name.to_str().expect("names are text").to_owned()).collect();
    if names.iter().any(|name| name == "tests" || name.ends_with("_tests")) {
        return None;
    }
    if names.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        names.pop();
    }
    Some(names)
}

/// The other modules of which `module` names something. The modules that contain it are left out:
/// a part may use what the whole declares.
fn imports(module: &Module, text: &str, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut found = BTreeSet::new();
    for path in paths(text) {
        let part = [module, &path[..1]].concat();
        if !["crate", "super", "self"].contains(&path[0].as_str()) && !modules.contains(&part) {
            // Another crate.
            continue;
        }
        let mut base = module.clone();
        let mut rest = &path[..];
        while let Some((first, others)) = rest.split_first() {
            match first.as_str() {
                "crate" => base.clear(),
                "super" => drop(base.pop()),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        base.extend_from_slice(rest);
        while !modules.contains(&base) && base.pop().is_some() {}
        if !module.starts_with(&base) {
            found.insert(base);
        }
    }
    found
}

/// The paths into this crate that a text names, in `use` and elsewhere.
fn paths(text: &str) -> Vec<Vec<String>> {
    let tokens = tokens(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let followed = tokens.get(at + 1).is_some_and(|next| next == "::");
        match tokens[at].as_str() {
            "use" if tokens.get(at + 1).is_some_and(|next| next != "<") => {
                at = use_tree(&tokens, at + 1, &[], &mut found);
            }
            "crate" | "super" if followed => {
                let mut path = vec![tokens[at].clone()];
                while tokens.get(at + 1).is_some_and(|next| next == "::") {
                    let Some(name) = tokens.get(at + 2).filter(|name| is_word(name)) else { break };
                    path.push(name.clone());
                    at += 2;
                }
                found.push(path);
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// Adds the paths of the tree at `at`, below `before`; returns the place of the token after it.
fn use_tree(
    tokens: &[String],
    mut at: usize,
    before: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "::" => at += 1,
            // Another name here: `as NAME`.
            "as" => at += 2,
            "{" => {
                while tokens.get(at).is_some_and(|token| token == "{" || token == ",") {
                    at = use_tree(tokens, at + 1, &path, found);
                }
                return at + 1;
            }
            "," | "}" | ";" => break,
            _ => {
                path.push(token.clone());
                at += 1;
            }
        }
    }
    if path.len() > before.len() {
        found.push(path);
    }
    at
}

/// The words of the code, `::`, and every other character; without comments and texts.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("'\"'") {
            3
        } else if rest.starts_with("r#\"") {
            rest.find("\"#").map_or(rest.len(), |end| end + 2)
        } else if first == '"' {
            text_length(rest)
        } else if first.is_whitespace() {
            first.len_utf8()
        } else {
            let word = rest.find(|it: char| !it.is_alphanumeric() && it != '_');
            let length = match word.unwrap_or(rest.len()) {
                0 if rest.starts_with("::") => 2,
                0 => first.len_utf8(),
                length => length,
            };
            found.push(rest[..length].to_owned());
            length
        };
        rest = &rest[length..];
    }
    found
}

/// The length of the literal text at the beginning, with its quotes.
fn text_length(rest: &str) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn is_word(token: &str) -> bool {
    token.chars().all(|it| it.is_alphanumeric() || it == '_')
}

/// The largest set of modules each of which leads to all others of the set.
fn largest_circle(imports: &Imports) -> BTreeSet<Module> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|start| (start, reachable(start, imports))).collect();
    let circle = |start| {
        let back = |other: &&&Module| reached[**other].contains(start);
        reached[start].iter().filter(back).map(|it| (*it).clone()).collect::<BTreeSet<_>>()
    };
    imports.keys().map(circle).max_by_key(BTreeSet::len).unwrap_or_default()
}

fn reachable<'a>(start: &Module, imports: &'a Imports) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut waiting: Vec<&Module> = imports[start].iter().collect();
    while let Some(module) = waiting.pop() {
        if found.insert(module) {
            waiting.extend(&imports[module]);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(path: &str) -> Module {
        path.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    #[test]
    fn every_form_of_an_import_is_found_and_comments_and_texts_are_not() {
        let text = "use crate::{a::A, b::{self, B as C}};\npub(super) use self::d::D;\n\
                    // crate::no\nfn f(x: crate::e::E) -> &'static str { \"crate::no\" }\n";
        let found: Vec<_> = paths(text).iter().map(|path| path.join("::")).collect();
        let expected =
            ["crate::a::A", "crate::b::self", "crate::b::B", "self::d::D", "crate::e::E"];
        assert_eq!(found, expected);
    }

    #[test]
    fn an_import_leads_to_its_file_unless_that_contains_the_importer() {
        let modules = ["", "a", "a/b", "a/b/c", "d"].map(module).into();
        let text =
            "use super::B;\nuse super::super::b::c::X;\nuse crate::{R, d::D};\nuse super::c::Y;";
        let found = imports(&module("a/b/c"), text, &modules);
        assert_eq!(found, [module("d")].into());
        let found = imports(&module("d"), "use crate::a::b::T;\nuse crate::a::F;", &modules);
        assert_eq!(found, ["a", "a/b"].map(module).into());
    }

    #[test]
    fn the_largest_circle_is_found() {
        let edges = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e"), ("e", "d")];
        let mut imports = Imports::new();
        for (from, to) in edges {
            imports.entry(module(from)).or_default().insert(module(to));
        }
        assert_eq!(largest_circle(&imports), ["a", "b", "c"].map(module).into());
    }
}
