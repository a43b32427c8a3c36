//! The C and C++ code in the docs and in the headers' own examples compiles; a shell parses the
//! commands.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::crate_folder;

/// Its blocks are pieces of the programs in examples/: `examples/rust/tests/guide.rs` compares them.
const PIECES: &str = "guide.md";

#[test]
fn every_block_of_the_docs_compiles() {
    let root = crate_folder().join("../..");
    let mut pages = vec![root.join("README.md")];
    find_pages(&root.join("docs"), &mut pages);
    let mut count = 0;
    for page in pages.iter().filter(|page| !page.ends_with(PIECES)) {
        let text = std::fs::read_to_string(page).unwrap();
        for (language, block) in blocks(&text) {
            compile(language, block, &format!("{}:\n{block}", page.display()));
            count += 1;
        }
    }
    assert!(count >= 15, "{count} blocks were found");
}

/// The example at the beginning of each header, and that of a struct in C.
#[test]
fn the_examples_of_the_headers_compile() {
    let read = |name| std::fs::read_to_string(crate_folder().join("include").join(name)).unwrap();
    let (c, cpp) = (read("myelin.h"), read("myelin.hpp"));
    let [first, imu] = examples(&c, " *     ").try_into().expect("two examples");
    compile("c", &program("c", "", &first), &first);
    compile("c", &format!("#include <myelin.h>\n{imu}\nconst void *used = &imu;\n"), &imu);
    let [first] = examples(&cpp, "//     ").try_into().expect("one example");
    let (description, body) = first.split_once("\n\n").expect("a struct, and how it is used");
    compile("cpp", &program("cpp", description, body), &first);
}

/// `body` in a `main`.
fn program(language: &str, description: &str, body: &str) -> String {
    let include = if language == "c" {
        "<stdio.h>\n#include <myelin.h>"
    } else {
        "<iostream>\n#include <myelin.hpp>"
    };
    format!("#include {include}\n{description}\nint main() {{\n{body}\nreturn 0;\n}}\n")
}

/// Runs of lines with this prefix, without the prefix; an empty line of the comment belongs to a
/// run.
fn examples(header: &str, margin: &str) -> Vec<String> {
    let (mut found, mut current): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in header.lines() {
        match line.strip_prefix(margin) {
            // Deeper lines without an example before them continue a section of the header's text.
            Some(code) if !code.starts_with("      ") || !current.is_empty() => current.push(code),
            _ if line == margin.trim_end() && !current.is_empty() => current.push(""),
            _ if !current.is_empty() => {
                found.push(std::mem::take(&mut current).join("\n").trim().to_string());
            }
            _ => {}
        }
    }
    found
}

/// The blocks in C, C++ and of commands: the language and the lines of each.
fn blocks(page: &str) -> impl Iterator<Item = (&'static str, &str)> {
    page.split("\n```").skip(1).step_by(2).filter_map(|block| {
        let (language, lines) = block.split_once('\n')?;
        let language = ["c", "cpp", "sh"].into_iter().find(|it| *it == language)?;
        Some((language, lines))
    })
}

fn compile(language: &str, code: &str, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(format!("block.{language}"));
    std::fs::write(&source, format!("{code}\n")).unwrap();
    let [include, bag] = ["include", "../myelin-bag-c/include"]
        .map(|folder| format!("-I{}", crate_folder().join(folder).display()));
    let strict = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", &include, &bag];
    let mut command = match language {
        "c" => Command::new("cc"),
        "cpp" => Command::new("c++"),
        _ => Command::new("bash"),
    };
    match language {
        "c" => command.args(strict).args(["-std=gnu11", "-Wno-unused-function"]),
        "cpp" => command.args(strict).args(["-std=c++17", "-Wshadow"]),
        _ => command.arg("-n"),
    };
    let compiled = command.arg(&source).output().unwrap();
    assert!(compiled.status.success(), "{what}\n{}", String::from_utf8_lossy(&compiled.stderr));
}

fn find_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            find_pages(&path, pages);
        } else if path.extension().is_some_and(|it| it == "md") {
            pages.push(path);
        }
    }
}

#[test]
fn a_wrong_code_block_is_detected() {
    let wrong = |language, code| {
        std::panic::catch_unwind(|| compile(language, code, "it is wrong")).is_err()
    };
    assert!(wrong("c", "#include <myelin.h>\nint a = myelin_nothing();"));
    assert!(wrong("cpp", "#include <myelin.hpp>\nint a = myelin::nothing();"));
    assert!(wrong("sh", "if true; do"));
    let page = "text\n```c\nint a;\n```\nmore\n```text\nls\n```\n```cpp\nint b;\n```\n";
    assert_eq!(blocks(page).collect::<Vec<_>>(), [("c", "int a;"), ("cpp", "int b;")]);
}
