//! The Python of the tests' own environment, which `scripts/setup test` makes.

#![allow(dead_code)]

#[path = "../../../../myelin/tests/support/cache.rs"]
mod cache;

use self::cache::cache;
use std::path::Path;
use std::process::Command;

/// A script of this repository, ready to run; `None`, with a message, without its packages.
pub fn python(script: &str) -> Option<Command> {
    let interpreter = cache()?.join("venv/bin/python");
    let is_whole = cache()?.join("venv/requirements-test.txt").exists();
    if !is_whole {
        let text = "the Python packages are missing: run `scripts/setup test`";
        assert!(std::env::var_os("CI").is_none(), "{text}");
        println!("skipped: {text}");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut command = Command::new(interpreter);
    command.arg(root.join(script));
    Some(command)
}
