//! A list in the source tree of what users rely on (docs/reference/compatibility.md), one fact a
//! line. Lines may come; a line that goes or changes breaks users' programs.

use std::collections::BTreeSet;
use std::path::Path;
use std::{env, fs};

/// Fails if a line of the list is not in `now`, or if something new is not listed.
/// `MYELIN_WRITE=1` adds what is new; it never removes a line.
pub fn check(list: &Path, now: &BTreeSet<String>) {
    let text = fs::read_to_string(list).unwrap_or_default();
    let kept: BTreeSet<String> =
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    let gone: Vec<&str> = kept.difference(now).map(String::as_str).collect();
    assert!(
        gone.is_empty(),
        "users of 0.1 rely on what is gone or has changed:\n{}\nTo break it on purpose in a minor \
         release, delete these lines of {} and say **Breaking** in CHANGELOG.md",
        gone.join("\n"),
        list.display()
    );
    if env::var_os("MYELIN_WRITE").is_some() {
        let head: String = text
            .lines()
            .filter(|line| line.starts_with('#'))
            .map(|line| line.to_owned() + "\n")
            .collect();
        let lines: String = now.iter().map(|line| line.to_owned() + "\n").collect();
        return fs::write(list, head + &lines).unwrap();
    }
    let new: Vec<&str> = now.difference(&kept).map(String::as_str).collect();
    assert!(
        new.is_empty(),
        "not listed yet; run this test with MYELIN_WRITE=1 to add to {}:\n{}",
        list.display(),
        new.join("\n")
    );
}
