//! `include/myelin.h` equals cbindgen's output for the crate, so that no declaration differs from
//! its definition.

#[test]
fn the_header_is_that_of_the_code() {
    let crate_folder = env!("CARGO_MANIFEST_DIR");
    let path = format!("{crate_folder}/include/myelin.h");
    let mut made = Vec::new();
    cbindgen::generate(crate_folder).unwrap().write(&mut made);
    let made = without_safety(&String::from_utf8(made).unwrap());
    if std::env::var_os("MYELIN_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "include/myelin.h is another one; MYELIN_WRITE=1 cargo test -p myelin-c --test header makes it"
    );
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
