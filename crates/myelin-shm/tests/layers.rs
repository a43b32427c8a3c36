//! The parts of the crate import only parts below them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From the bottom to the top. Parts of one line may import each other.
const LAYERS: &[&[&str]] = &[
    &["error", "fnv", "limits", "sync", "os"],
    &["topic"],
    &["record", "layout", "user_code"],
    &["warnings"],
    &["listener", "waiting"],
    &["counters"],
    &["event"],
    &["data_plane"],
    &["dispatch"],
    &["callback", "control_plane", "endpoint", "node", "tasks", "wait_set"],
];

#[test]
fn a_part_imports_only_parts_below_it() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut up = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for file in files(&source) {
        let path = file.strip_prefix(&source).unwrap().to_str().unwrap().to_owned();
        let part = path.split(['/', '.']).next().unwrap();
        if part == "lib" {
            continue;
        }
        let Some(own) = layer_of(part) else { panic!("{path}: {part} is in no layer") };
        seen.insert(part.to_owned());
        for imported in imports(&std::fs::read_to_string(&file).unwrap()) {
            if layer_of(&imported).is_some_and(|layer| layer > own) {
                up.insert((path.clone(), imported));
            }
        }
    }
    let named: BTreeSet<_> =
        LAYERS.iter().flat_map(|layer| layer.iter()).map(|it| it.to_string()).collect();
    assert_eq!(seen, named, "the parts of the crate");
    assert!(up.is_empty(), "these import a part above them: {up:#?}");
}

fn layer_of(part: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&part))
}

/// The parts that a file names by `crate::`, outside of its tests and of comments.
fn imports(source: &str) -> BTreeSet<String> {
    let code = source.split("\nmod tests {").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = |line: &str| {
        let parts = line.split("crate::").skip(1);
        let name =
            |rest: &str| rest.chars().take_while(|it| it.is_alphanumeric() || *it == '_').collect();
        parts.map(name).collect::<Vec<String>>()
    };
    lines.flat_map(after).collect()
}

/// The files of a folder and of those in it, without tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if ["tests", "crash", "simulation", "hostile", "model"].contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            all.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            all.push(path);
        }
    }
    all
}
