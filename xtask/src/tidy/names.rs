//! One name, one type: names of types that are declared more than once.

use std::collections::BTreeMap;
use std::fs;

use super::structure::{declared, sources};
use super::{numbered, shown};

/// The names of types in all crates that are declared more than once, in hundredths of all names.
/// The share may only fall.
const REPEATED_PERCENT: usize = 7;

#[test]
fn the_protocol_declares_no_type_name_twice() {
    let own = |places: &&Vec<String>| {
        places.iter().filter(|place| place.starts_with("crates/proto/")).count() > 1
    };
    let declarations = declarations();
    let twice: Vec<_> = declarations.iter().filter(|(_, places)| own(places)).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

#[test]
fn the_share_of_type_names_that_are_declared_twice_does_not_grow() {
    let declarations = declarations();
    let repeated = declarations.values().filter(|places| places.len() > 1).count();
    let percent = (100 * repeated).div_ceil(declarations.len());
    let (all, limit) = (declarations.len(), REPEATED_PERCENT);
    assert!(percent <= limit, "{repeated} of {all} names, more than {limit} %");
    assert!(percent == limit, "only {repeated} of {all} names; lower the limit to {percent} %");
}

/// The files in which each name of a type is declared, in the product's code.
fn declarations() -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in sources() {
        let place = shown(&file);
        if place.contains("/tests/") || place.ends_with("/testing.rs") {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        for (_, line) in numbered(&text) {
            let code = line.trim_start();
            let kinds = ["struct", "enum", "union", "trait"];
            if let Some(name) = kinds.iter().find_map(|kind| declared(code, kind)) {
                found.entry(name.to_owned()).or_default().push(place.clone());
            }
        }
    }
    found.remove("");
    found
}
