//! `include/myelin_bag.h` equals cbindgen's output for the crate, C++ and the library have all of it.

use std::collections::BTreeSet;

#[test]
fn the_header_is_that_of_the_code() {
    let path = format!("{FOLDER}/include/myelin_bag.h");
    let mut made = Vec::new();
    cbindgen::generate(FOLDER).unwrap().write(&mut made);
    let made = without_safety(&String::from_utf8(made).unwrap());
    if std::env::var_os("MYELIN_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "include/myelin_bag.h is another one; MYELIN_WRITE=1 cargo test -p myelin-bag-c --test header makes it"
    );
}

#[test]
fn cpp_and_the_library_have_all_functions() {
    let read = |name| std::fs::read_to_string(format!("{FOLDER}/{name}")).unwrap();
    let header = read("include/myelin_bag.h");
    let functions: BTreeSet<&str> = header
        .lines()
        .filter_map(|line| {
            let rest =
                line.strip_prefix("myelin_bag_code ").or(line.strip_prefix("const char *"))?;
            rest.split('(').next()
        })
        .collect();
    assert!(functions.len() > 20, "the header is not read");
    let map = read("libmyelin_bag.map");
    let symbols = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    let symbols: BTreeSet<&str> = symbols.filter(|it| it.starts_with("myelin_")).collect();
    assert_eq!(functions, symbols, "libmyelin_bag.map lists the functions of the header");
    let cpp = read("include/myelin_bag.hpp");
    let is_name = |of: char| of.is_alphanumeric() || of == '_';
    let words: BTreeSet<&str> = cpp.split(|of| !is_name(of)).collect();
    let missing: Vec<_> = functions.difference(&words).collect();
    assert!(missing.is_empty(), "myelin_bag.hpp has no form of {missing:?}");
}

/// `# Safety` is for readers of Rust; the header states its demands at its beginning.
fn without_safety(header: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_safety = false;
    for line in header.lines() {
        if line == "// # Safety" {
            is_safety = true;
            kept.pop_if(|last| *last == "//");
        }
        is_safety &= line.starts_with("//");
        if !is_safety {
            kept.push(line);
        }
    }
    kept.join("\n") + "\n"
}

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
