//! The message about a library that pkg-config does not find, based on the output of the installed
//! pkg-config.

use std::process::Command;

use crate::probe;

/// The file in Debian's liblcm-dev.
const LCM: &str = "Name: lcm\nDescription: LCM\nVersion: 1.3.1\nRequires: glib-2.0 gthread-2.0\n\
    Libs: -llcm\n";
const PACKAGES: &str = "liblcm-dev libglib2.0-dev";

/// pkg-config's output about LCM if only `files` exist.
fn said(files: &[(&str, &str)]) -> Option<String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut command = Command::new("pkg-config");
    command.args(["--cflags", "--libs", "lcm"]).env_remove("PKG_CONFIG_PATH");
    match command.env("PKG_CONFIG_LIBDIR", folder.path()).output() {
        Ok(output) => Some(String::from_utf8(output.stderr).unwrap()),
        Err(error) => {
            println!("left out: pkg-config: {error}");
            None
        }
    }
}

#[test]
fn a_library_that_another_requires_is_named() {
    let Some(said) = said(&[("lcm.pc", LCM)]) else { return };
    assert_eq!(
        probe::not_found("lcm", PACKAGES, &said),
        "not installed: glib-2.0, which lcm requires; apt-get install liblcm-dev libglib2.0-dev"
    );
}

#[test]
fn a_library_that_is_not_there_at_all_is_not_said_to_require_any() {
    let Some(said) = said(&[]) else { return };
    assert_eq!(
        probe::not_found("lcm", PACKAGES, &said),
        "not installed: apt-get install liblcm-dev libglib2.0-dev"
    );
}
