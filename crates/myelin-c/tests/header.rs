//! `include/myelin.h` equals cbindgen's output for the crate, so that no declaration differs from
//! its definition.

mod made_header;

#[test]
fn the_header_is_that_of_the_code() {
    made_header::check(env!("CARGO_MANIFEST_DIR"), "myelin.h", "myelin-c");
}

/// Everything in C has a form in C++; the header's own version is used as in C.
#[test]
fn the_cpp_header_has_all_of_it() {
    let include = format!("{}/include", env!("CARGO_MANIFEST_DIR"));
    let read = |name| std::fs::read_to_string(format!("{include}/{name}")).unwrap();
    let (c, cpp) = (read("myelin.h"), read("myelin.hpp"));
    let is_of_name = |of: char| of.is_alphanumeric() || of == '_';
    let mentioned = |text: &str, name: &str| text.split(|of| !is_of_name(of)).any(|it| it == name);
    let functions = c.lines().filter(|line| line.starts_with("myelin_code myelin_"));
    let names = functions.filter_map(|line| line["myelin_code ".len()..].split('(').next());
    let missing: Vec<_> = names.filter(|name| !mentioned(&cpp, name)).collect();
    assert!(missing.is_empty(), "myelin.hpp has no form of {missing:?}");
}
