//! The order of the modules, kept by a test: each may import those before it, so there is no circle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From left to right. The first line is for everybody; then scenario → plan → run → record →
/// analyse → tell, with the hosts that a run needs before the plan, which names them.
const ORDER: [&str; 22] = [
    "input_error",
    "root",
    "network",
    "stats", //
    "scenario",
    "registry", //
    "tuning",
    "machine",
    "observe",
    "host",   //
    "plan",   //
    "run",    //
    "record", //
    "summary",
    "analyse", //
    "score",
    "advise",
    "report",
    "progress",
    "session",
    "compare",
    "export",
];

#[test]
fn modules_import_leftwards_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let place = |module: &str| ORDER.iter().position(|one| *one == module);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for file in files(&root) {
        let path = file.strip_prefix(&root).unwrap();
        let mut parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let name = parts.pop().unwrap().trim_end_matches(".rs");
        if name != "mod" {
            parts.push(name);
        }
        // Names all of them; imports none, and has examples in a text.
        if parts == ["lib"] || parts == ["layers"] {
            continue;
        }
        let module = parts[0].to_owned();
        let text = fs::read_to_string(&file).unwrap();
        for import in imports(&text, parts.len()).into_iter().filter(|import| *import != module) {
            let is_leftwards = match (place(&import), place(&module)) {
                (Some(import), Some(module)) => import < module,
                _ => false,
            };
            if !is_leftwards {
                wrong.push(format!("{}: {module} imports {import}", path.display()));
            }
        }
        seen.insert(module);
    }
    assert!(wrong.is_empty(), "not leftwards in {ORDER:?}:\n{}", wrong.join("\n"));
    assert_eq!(seen, ORDER.map(str::to_owned).into(), "each module has its place in ORDER");
}

#[test]
fn imports_of_every_form_are_found() {
    let text = "use crate::{plan::{A, b::C}, record};\n// crate::not\nfn f() { crate::machine::g() }\n\
                use super::super::run;\nuse super::own;\nmod tests {\n    use super::super::super::observe;\n\
                    use super::super::super::{stats as s, root};\n}\n";
    let found = imports(text, 2);
    let expected = ["machine", "observe", "plan", "record", "root", "run", "stats"];
    assert_eq!(found, expected.map(str::to_owned).into());
}

/// Modules of the crate that a file names whose own module lies `depth` below the crate.
fn imports(text: &str, depth: usize) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code).to_owned() + "\n")
        .collect();
    // What lies in a module within the file is one deeper.
    let (outer, inner) = code.split_at(code.find("mod tests {").unwrap_or(code.len()));
    let mut found = named(&code, "crate::");
    found.extend(named(outer, &"super::".repeat(depth)));
    found.extend(named(inner, &"super::".repeat(depth + 1)));
    found
}

/// The first names after `prefix`, alone or in braces.
fn named(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        let is_longer = code[..at].ends_with("::");
        let rest = &code[at + prefix.len()..];
        if is_longer || rest.starts_with("super::") {
            continue;
        }
        let mut nested = 0;
        for (from, letter) in rest.char_indices() {
            match letter {
                '{' => nested += 1,
                '}' => nested -= 1,
                _ => {}
            }
            let is_name = |letter: char| letter.is_alphanumeric() || letter == '_';
            let listed = rest[..from].trim_end().ends_with(['{', ',']);
            if is_name(letter) && (from == 0 || nested == 1 && listed) {
                let name = rest[from..].split(|letter| !is_name(letter)).next().unwrap();
                found.insert(name.to_owned());
            }
            if nested == 0 {
                break;
            }
        }
    }
    // Types and functions of the crate itself are not modules.
    found.retain(|name| name.starts_with(char::is_lowercase));
    found
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}
