//! Parts talk in few verbs, and a verb is written in few places.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::structure::sources;
use super::{files, numbered, shown};

/// The public methods of `Endpoint`. The number may only fall.
const ENDPOINT: usize = 24;

/// The most verbs of a type of the protocol: the methods that other types can call.
const MOST_VERBS: usize = 22;

/// The types of the protocol with more verbs, and their number, which may only fall.
const MANY_VERBS: &[(&str, usize)] = &[
    // The application's calls and what their state answers: `Endpoint` hands out a `Connection`.
    ("Connection", 47),
    ("Connections", 33),
    ("Endpoint", 24),
    // A connection's state, with the calls of the application, the packets and the timers.
    ("Established", 38),
    ("Group", 29),
    ("ReceiveHalf", 48),
    // The ring of messages, the loss list, and the numbers that the peer may name.
    ("SendBuffer", 37),
    ("SendHalf", 32),
];

/// The files of tests that take all datagrams out of a machine. That of QUIC is not an `Endpoint`.
const LOOPS: &[&str] = &["crates/fuzzing/src/quic.rs", "crates/testbed/src/steps.rs"];

/// The verbs of a connection, and the number of places where each is written. A number may only
/// fall, and none is over three: `Socket`, `Connection`, and the part of it that does the work.
const VERBS: &[(&str, usize)] = &[
    ("abort", 2),
    ("apply", 2),
    ("await_room", 3),
    ("close", 3),
    ("configure", 3),
    ("count_from", 2),
    ("info", 3),
    ("link_status", 2),
    ("link_terms", 2),
    ("next_message", 3),
    ("readiness", 2),
    ("recv", 3),
    ("release", 2),
    ("send", 3),
    ("statistics", 3),
    ("take_link_losses", 1),
    ("take_link_messages", 1),
    ("tell_error", 2),
    ("write", 2),
];

/// The files on the way of a verb from a socket to the halves of its connection.
const WAY: &[&str] = &[
    "crates/punctual/src/machine.rs",
    "crates/punctual/src/shared.rs",
    "crates/punctual/src/socket/mod.rs",
    "crates/punctual/src/srt_over_quic.rs",
    "crates/punctual/src/state.rs",
    "crates/proto/src/connection/FILE",
    "crates/proto/src/connection/established/FILE",
    "crates/proto/src/endpoint/FILE",
    "crates/proto/src/endpoint/connections/FILE",
];

/// Both halves of a connection: one place, since a verb may concern both.
const HALVES: &[&str] =
    &["crates/proto/src/connection/recv/mod.rs", "crates/proto/src/connection/send/mod.rs"];

/// A test that drives an endpoint takes out its datagrams by the functions of the test bed.
#[test]
fn tests_take_datagrams_out_of_an_endpoint_in_one_place() {
    let mut found = Vec::new();
    for file in files(&["rs"]) {
        let path = shown(&file);
        let is_test = ["crates/testbed/", "crates/fuzzing/"].iter().any(|it| path.starts_with(it))
            || path.contains("/tests/") && !path.starts_with("crates/quic/");
        let text = fs::read_to_string(file).unwrap();
        if is_test && text.lines().any(takes_in_a_loop) {
            found.push(path);
        }
    }
    found.sort();
    assert_eq!(found, LOOPS);
}

#[test]
fn an_endpoint_has_at_most_24_public_methods() {
    let all = sources().into_iter().filter(|file| shown(file).starts_with("crates/proto/"));
    let methods = all.map(|file| public_methods(&fs::read_to_string(file).unwrap(), "Endpoint"));
    let methods: Vec<String> = methods.flatten().collect();
    let count = methods.len();
    assert!(count <= ENDPOINT, "{count} methods, more than {ENDPOINT}: {methods:?}");
    assert!(count == ENDPOINT, "only {count} methods; lower the limit");
}

#[test]
fn a_type_of_the_protocol_has_at_most_22_verbs() {
    let mut verbs = BTreeMap::<String, usize>::new();
    for file in sources().into_iter().filter(|file| shown(file).starts_with("crates/proto/")) {
        for name in owners_of_verbs(&fs::read_to_string(file).unwrap()) {
            *verbs.entry(name).or_default() += 1;
        }
    }
    let many: Vec<(&str, usize)> = verbs
        .iter()
        .filter(|it| *it.1 > MOST_VERBS)
        .map(|(name, count)| (&name[..], *count))
        .collect();
    assert_eq!(many, MANY_VERBS, "found, and the list: a number may only fall");
}

#[test]
fn a_verb_of_a_connection_is_written_in_at_most_three_places() {
    let mut files = Vec::new();
    for file in sources() {
        let path = shown(&file);
        let place = match HALVES.contains(&path.as_str()) {
            true => "a half".to_owned(),
            false if is_on_the_way(&path) => path,
            false => continue,
        };
        files.push((place, fs::read_to_string(file).unwrap()));
    }
    for &(verb, most) in VERBS {
        let written = files.iter().filter(|(_, text)| declares(text, verb));
        let places: BTreeSet<&str> = written.map(|(place, _)| place.as_str()).collect();
        assert!(most <= 3, "{verb}: more than three in the list");
        assert!(places.len() <= most, "{verb}: more than {most} places: {places:?}");
        assert!(places.len() == most, "{verb}: only {places:?}; lower the list's {most}");
    }
}

fn is_on_the_way(path: &str) -> bool {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    WAY.iter().any(|way| path == *way || way.strip_suffix("/FILE") == Some(folder))
}

/// Whether a line takes datagrams out of a machine until there are none.
fn takes_in_a_loop(line: &str) -> bool {
    line.trim_start().starts_with("while ") && line.contains(".poll_transmit(")
}

/// Whether a file has a function of this name before its tests.
fn declares(text: &str, name: &str) -> bool {
    numbered(text).any(|(_, line)| function(line) == Some(name))
}

/// For each method that other types can call, the type whose inherent `impl` block it is in. Relies
/// on rustfmt.
fn owners_of_verbs(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut owner, mut before) = (None, "");
    for (_, line) in numbered(text) {
        if let Some(head) = line.strip_prefix("impl") {
            let head = match head.strip_prefix('<') {
                Some(generic) => generic.split_once("> ").map_or("", |it| it.1),
                None => head.trim_start(),
            };
            let name = head.split(|it: char| !it.is_alphanumeric() && it != '_').next();
            owner = name.filter(|_| !head.contains(" for "));
        } else if line == "}" {
            owner = None;
        }
        let is_of_tests = before.ends_with("#[cfg(test)]");
        let is_verb = line.starts_with("    pub") && function(line).is_some() && !is_of_tests;
        found.extend(owner.filter(|_| is_verb).map(str::to_owned));
        before = line;
    }
    found
}

/// The names of the public methods in the inherent `impl` blocks of a type. Relies on rustfmt.
fn public_methods(text: &str, of: &str) -> Vec<String> {
    let head = format!("impl {of} {{");
    let mut found = Vec::new();
    let mut is_inside = false;
    for (_, line) in numbered(text) {
        is_inside = line == head || is_inside && line != "}";
        if is_inside && line.starts_with("    pub ") {
            found.extend(function(line).map(str::to_owned));
        }
    }
    found
}

/// The name of the function that a line declares.
fn function(line: &str) -> Option<&str> {
    let code = line.trim_start();
    let (before, rest) = code.split_once("fn ")?;
    let is_head = before.is_empty() || before.ends_with(' ') && !before.starts_with("//");
    rest.split(['(', '<']).next().filter(|_| is_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "impl Half {\n    pub fn send(&self) {}\n    pub(crate) fn recv<T>() {}\n    \
                        // fn close()\n}\nimpl Other {\n    pub const fn write() {}\n}\n\
                        mod tests {\n    fn close() {}\n}\n";

    #[test]
    fn functions_are_found_and_comments_and_tests_are_not() {
        let names = ["send", "recv", "write", "close"];
        let found: Vec<_> = names.into_iter().filter(|name| declares(TEXT, name)).collect();
        assert_eq!(found, ["send", "recv", "write"]);
    }

    #[test]
    fn public_methods_of_one_type_are_counted() {
        assert_eq!(public_methods(TEXT, "Half"), ["send"]);
        assert_eq!(public_methods(TEXT, "Other"), ["write"]);
    }

    #[test]
    fn verbs_of_each_type_are_counted_in_all_its_blocks() {
        let text = "impl<T: Copy> Half<T> {\n    pub(super) const fn send(&self) {}\n    \
                    fn own(&self) {}\n    #[cfg(test)]\n    pub fn of() {}\n}\nimpl Half<u8> {\n    \
                    pub fn recv() {}\n}\nimpl From<Half> for Other {\n    pub fn x() {}\n}\n\
                    impl View<'_> {\n    pub fn see() {}\n}\n";
        assert_eq!(owners_of_verbs(text), ["Half", "Half", "View"]);
    }

    #[test]
    fn a_folder_on_the_way_does_not_stand_for_the_folders_in_it() {
        assert!(is_on_the_way("crates/proto/src/connection/mod.rs"));
        assert!(!is_on_the_way("crates/proto/src/connection/send/buffer.rs"));
    }
}
