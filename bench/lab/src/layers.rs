//! The order of the modules, which a test enforces: each may import only those before it, so there
//! is no cycle.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// From left to right. The first line may be used by all; then scenario → plan → run → record →
/// analyse → report. The hosts that a run needs come before the plan, which names them.
const ORDER: [&str; 33] = [
    "input_error",
    "lists",
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
    "run",    //
    "record", //
    "summary",
    "analyse", //
    "score",
    "advise",
    "report",
    "live",
    "progress",
    "session",
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

#[test]
fn imports_are_found_and_have_one_form() {
    let text = "use crate::plan::{A, b::C};\n// crate::not\nfn f() { crate::machine::g(crate::G) }\n\
                use super::own;\nmod tests {\n    use super::super::own;\n}\n";
    assert_eq!(imports(text, 2), Ok(["machine", "plan"].map(str::to_owned).into()));
    for other in ["use crate::{plan::A, record};", "use super::super::run;"] {
        assert!(imports(other, 2).is_err(), "{other}");
    }
}

/// Modules of the crate that a file imports, if its own module is `depth` levels below the crate.
/// Each must be imported separately by `crate::`.
fn imports(text: &str, depth: usize) -> Result<BTreeSet<String>, String> {
    let code: String = text
        .lines()
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code).to_owned() + "\n")
        .collect();
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

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries.flat_map(below).filter(|path| path.extension().is_some_and(|it| it == "rs")).collect()
}
