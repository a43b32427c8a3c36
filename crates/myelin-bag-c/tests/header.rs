//! `include/myelin_bag.h` equals cbindgen's output for the crate, C++ and the library have all of it.

#[path = "../../myelin-c/tests/made_header/mod.rs"]
mod made_header;

use std::collections::BTreeSet;

#[test]
fn the_header_is_that_of_the_code() {
    made_header::check(FOLDER, "myelin_bag.h", "myelin-bag-c");
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

const FOLDER: &str = env!("CARGO_MANIFEST_DIR");
