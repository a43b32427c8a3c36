//! A header in C that cbindgen makes of a crate.

/// Checks that `include/<header>` of the crate in `folder` is what cbindgen makes of its code.
/// `MYELIN_WRITE=1` writes it.
pub fn check(folder: &str, header: &str, package: &str) {
    let path = format!("{folder}/include/{header}");
    let mut made = Vec::new();
    cbindgen::generate(folder).unwrap().write(&mut made);
    let made = without_safety(&String::from_utf8(made).unwrap());
    if std::env::var_os("MYELIN_WRITE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == made,
        "include/{header} is another one; MYELIN_WRITE=1 cargo test -p {package} --test header makes it"
    );
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
