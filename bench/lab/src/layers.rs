//! The order of the modules, which a test enforces: each may import only those before it, so there
//! is no cycle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From left to right. The first line may be used by all; then scenario → plan → record → analyse →
/// report. The hosts that a run needs come before the plan, which names them. Runs fill records, and
/// nothing that analyses or reports needs to know how: so they come after all of that.
const ORDER: [&str; 36] = [
    "input_error",
    "lists",
    "parquet_file",
    "root",
    "cgroup",
    "ftrace",
    "shell",
    "stats",
    "stderr", //
    "scenario",
    "registry",
    "ping",
    "recording", //
    "tuning",
    "machine",
    "observe",
    "host",   //
    "plan",   //
    "record", //
    "summary",
    "analyse",
    "figures", //
    "score",
    "advise",
    "report", //
    "run",
    "live",
    "progress",
    "session",
    "import",
    "side",
    "compare",
    "trend",
    "baseline",
    "export",
    "schema",
];

#[test]
fn modules_import_only_leftwards() {
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
        // `lib` names all modules; this one imports none, but has examples in a text.
        if parts == ["lib"] || parts == ["layers"] {
            continue;
        }
        let module = parts[0].to_owned();
        let text = fs::read_to_string(&file).unwrap();
        let imports = imports(&text, parts.len());
        wrong.extend(imports.as_ref().err().map(|why| format!("{}: {why}", path.display())));
        for import in imports.into_iter().flatten().filter(|import| *import != module) {
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

/// A room, such as `report`, may not be one circle of files that all need each other.
#[test]
fn no_files_of_a_room_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut edges = BTreeSet::new();
    for file in files(&root) {
        let path = file.strip_prefix(&root).unwrap().with_extension("");
        let parts: Vec<_> = path.iter().map(|part| part.to_str().unwrap()).collect();
        let [room, own, below @ ..] = &parts[..] else { continue };
        // The file of a room names all that are in it.
        if *own == "mod" {
            continue;
        }
        // `own/mod.rs` is a level higher than the other files below it.
        let depth = below.iter().filter(|part| **part != "mod").count() + 1;
        let siblings = siblings(&fs::read_to_string(&file).unwrap(), room, depth);
        let others = siblings.into_iter().filter(|other| other != own);
        edges.extend(others.map(|other| [*own, &other].map(|name| format!("{room}::{name}"))));
    }
    assert!(edges.len() > 50, "{}", edges.len());
    assert_eq!(circles(edges), BTreeSet::new());
    let made = [["a", "b"], ["b", "c"], ["c", "b"], ["c", "d"]].map(|it| it.map(str::to_owned));
    let found: Vec<_> = circles(made.into()).into_iter().collect();
    assert_eq!(found, [["b", "c"], ["c", "b"]].map(|it| it.map(str::to_owned)));
}

/// The edges that are left if files that import none, and files that none imports, are taken away
/// again and again.
fn circles(mut edges: BTreeSet<[String; 2]>) -> BTreeSet<[String; 2]> {
    loop {
        let [from, to] = [0, 1].map(|end| -> BTreeSet<String> {
            edges.iter().map(|edge| edge[end].clone()).collect()
        });
        let before = edges.len();
        edges.retain(|[one, other]| to.contains(one) && from.contains(other));
        if edges.len() == before {
            return edges;
        }
    }
}

/// The names after each path to the room of a file that is `depth` levels below it. Some are items
/// of the room itself, which leads to no circle.
fn siblings(text: &str, room: &str, depth: usize) -> BTreeSet<String> {
    let code = code(text);
    let code = code.split("mod tests {").next().unwrap();
    let (up, down) = ("super::".repeat(depth), format!("crate::{room}::"));
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let mut found = BTreeSet::new();
    for path in [up.as_str(), &down] {
        for (at, _) in code.match_indices(path) {
            let rest = &code[at + path.len()..];
            if code[..at].ends_with("super::") || rest.starts_with("super::") {
                continue;
            }
            let list = rest.strip_prefix('{').and_then(|rest| rest.split_once("};"));
            let names = list.map_or(rest, |(names, _)| names);
            let each = if list.is_some() { names.split(',').collect() } else { vec![names] };
            let first = |it: &str| it.trim().split(is_other).next().unwrap_or("").to_owned();
            found.extend(each.into_iter().map(first));
        }
    }
    found
}

#[test]
fn imports_are_found_and_have_one_form() {
    let text = "use crate::plan::{A, b::C};\n// crate::not\nfn f() { crate::machine::g(crate::G) }\n\
                use super::own;\nmod tests {\n    use super::super::own;\n}\n";
    assert_eq!(imports(text, 2), Ok(["machine", "plan"].map(str::to_owned).into()));
    let text = "use super::own;\nuse super::{one, two::X};\nuse super::super::three::Y;\nuse crate::room::four;\n";
    let found = |depth| siblings(text, "room", depth).into_iter().collect::<Vec<_>>();
    assert_eq!(found(1), ["four", "one", "own", "two"]);
    assert_eq!(found(2), ["four", "three"]);
    for other in ["use crate::{plan::A, record};", "use super::super::run;"] {
        assert!(imports(other, 2).is_err(), "{other}");
    }
}

/// Modules of the crate that a file imports, if its own module is `depth` levels below the crate.
/// Each must be imported separately by `crate::`.
fn imports(text: &str, depth: usize) -> Result<BTreeSet<String>, String> {
    let code = code(text);
    // The tests are a module within the file and so one level deeper.
    let (outer, inner) = code.split_at(code.find("mod tests {").unwrap_or(code.len()));
    let reaches_crate = |code: &str, depth| code.contains(&"super::".repeat(depth));
    if reaches_crate(outer, depth) || reaches_crate(inner, depth + 1) || code.contains("crate::{") {
        return Err("say crate:: and the module, for each".to_owned());
    }
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    let names = code.split("crate::").skip(1).map(|rest| rest.split(is_other).next().unwrap());
    // Capitalised names are items of the crate itself, not modules.
    Ok(names.filter(|name| name.starts_with(char::is_lowercase)).map(str::to_owned).collect())
}

/// The text without comments.
fn code(text: &str) -> String {
    let code = |line: &str| line.split_once("//").map_or(line, |(code, _)| code).to_owned() + "\n";
    text.lines().map(code).collect()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}
