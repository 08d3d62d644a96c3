//! The list of the parts of the programs (SBOM): every crate with version, licence, digest and
//! dependencies, as CycloneDX in JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use super::{PACKAGES, SourceTime};
use crate::shell::{cargo, output_of, root};

/// The list for this machine's target.
pub(super) fn list(moment: &SourceTime) -> Result<String, String> {
    let about = output_of(Command::new("rustc").arg("-vV")).ok_or("rustc fails")?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    let arguments = ["metadata", "--locked", "--format-version=1", "--filter-platform"];
    let metadata = output_of(cargo(arguments).arg(host.ok_or("rustc names no host")?));
    let metadata = serde_json::from_str(&metadata.ok_or("cargo metadata fails")?);
    let metadata: Value = metadata.map_err(|error| format!("cargo metadata: {error}"))?;
    let lock = fs::read_to_string(root().join("Cargo.lock")).map_err(|it| it.to_string())?;
    let list = document(&metadata, &digests(&lock), &moment.text("+%FT%TZ")?);
    let text = serde_json::to_string_pretty(&list).map_err(|error| error.to_string())?;
    Ok(text + "\n")
}

fn document(metadata: &Value, digests: &BTreeMap<String, String>, time: &str) -> Value {
    let nodes: BTreeMap<&str, &Value> =
        array(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
    let packages: BTreeMap<&str, &Value> =
        array(&metadata["packages"]).map(|package| (text(&package["id"]), package)).collect();
    let is_program = |package: &&Value| PACKAGES[..3].contains(&text(&package["name"]));
    let programs: Vec<&Value> = packages.values().copied().filter(is_program).collect();
    let mut open: Vec<&str> = programs.iter().map(|package| text(&package["id"])).collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(dependencies(nodes[id]));
        }
    }
    let names = |ids: Vec<&str>| -> BTreeSet<String> {
        ids.into_iter().map(|id| reference(packages[id])).collect()
    };
    let components: BTreeMap<String, Value> =
        seen.iter().map(|id| (reference(packages[id]), component(packages[id], digests))).collect();
    let mut edges: BTreeMap<String, BTreeSet<String>> =
        seen.iter().map(|id| (reference(packages[id]), names(dependencies(nodes[id])))).collect();
    let whole = format!("punctual@{}-programs", env!("CARGO_PKG_VERSION"));
    edges.insert(whole.clone(), programs.iter().map(|it| reference(it)).collect());
    let edges = edges.iter().map(|(from, to)| json!({ "ref": from, "dependsOn": to }));
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": time,
            "component": {
                "type": "application",
                "bom-ref": whole,
                "name": "punctual",
                "version": env!("CARGO_PKG_VERSION"),
                "licenses": [{ "expression": env!("CARGO_PKG_LICENSE") }],
            },
        },
        "components": components.into_values().collect::<Vec<_>>(),
        "dependencies": edges.collect::<Vec<_>>(),
    })
}

/// The packages that one is built from; tests need others.
fn dependencies(node: &Value) -> Vec<&str> {
    let is_built_in = |dependency: &&Value| {
        array(&dependency["dep_kinds"]).any(|kind| kind["kind"].as_str() != Some("dev"))
    };
    array(&node["deps"]).filter(is_built_in).map(|it| text(&it["pkg"])).collect()
}

fn component(package: &Value, digests: &BTreeMap<String, String>) -> Value {
    let (name, version) = (text(&package["name"]), text(&package["version"]));
    let reference = reference(package);
    let mut component = json!({
        "type": "library",
        "bom-ref": reference,
        "name": name,
        "version": version,
    });
    if let Some(licence) = package["license"].as_str() {
        // Older crates write a slash, which the grammar of expressions does not have.
        let expression = licence.replace('/', " OR ");
        component["licenses"] = json!([{ "expression": expression }]);
    }
    if let Some(digest) = digests.get(&reference) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": digest }]);
        component["purl"] = format!("pkg:cargo/{name}@{version}").into();
    }
    component
}

fn reference(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

/// The digests of the packages from the registry.
fn digests(lock: &str) -> BTreeMap<String, String> {
    let mut digests = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(key));
            line.map(|line| line.trim_matches(['"', ' ', '=']).to_owned())
        };
        if let (Some(name), Some(version), Some(digest)) =
            (value("name = "), value("version = "), value("checksum = "))
        {
            digests.insert(format!("{name}@{version}"), digest);
        }
    }
    digests
}

fn array(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_what_programs_are_built_from_and_nothing_of_tests() {
        let list = list(&SourceTime { seconds: 86_400 }).unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        assert_eq!(list["metadata"]["timestamp"], "1970-01-02T00:00:00Z");
        let find = |name: &str| array(&list["components"]).find(|it| it["name"] == name).cloned();
        let tokio = find("tokio").unwrap();
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert!(tokio["purl"].as_str().unwrap().starts_with("pkg:cargo/tokio@1."));
        assert!(find("punctual-relay-server").is_some_and(|it| it["purl"].is_null()));
        assert!(find("proptest").is_none() && find("clap_mangen").is_none());
    }

    #[test]
    fn every_dependency_is_a_part_with_a_licence() {
        let list = list(&SourceTime { seconds: 0 }).unwrap();
        let list: Value = serde_json::from_str(&list).unwrap();
        let parts: BTreeSet<&str> =
            array(&list["components"]).map(|it| text(&it["bom-ref"])).collect();
        assert_eq!(parts.len(), array(&list["components"]).count(), "a reference stands twice");
        for entry in array(&list["dependencies"]) {
            for part in array(&entry["dependsOn"]) {
                assert!(parts.contains(text(part)), "{part}");
            }
        }
        for part in array(&list["components"]) {
            assert!(part["licenses"][0]["expression"].is_string(), "{part}");
        }
    }
}
