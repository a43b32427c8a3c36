//! `libpsmx_myelin.so` and the programs beside it, built against the CycloneDDS 11 that is cached.

#[path = "../../../myelin/tests/support/cache.rs"]
mod cache;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use self::cache::cache;
use crate::host::{self, on_own_host};

/// The folder of CycloneDDS, and the folder of the built files. `None`, with the reason printed,
/// without CycloneDDS 11.
pub fn plug_in() -> Option<&'static (PathBuf, PathBuf)> {
    static FOUND: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let prefix = prefix().filter(|it| it.join("lib/cmake/CycloneDDS").is_dir());
        let Some(prefix) = prefix else {
            println!("skipped: CycloneDDS 11 is not built: scripts/cyclonedds11");
            return None;
        };
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
        // In a test on a host of its own it has been built already.
        if !host::is_inside() {
            let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            let mut script = Command::new(root.join("scripts/cyclonedds11"));
            script.arg("test").env("CARGO", env!("CARGO")).env("CARGO_TARGET_DIR", &target);
            let output = script.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "scripts/cyclonedds11 test: {said}");
        }
        Some((prefix, target.join("debug/psmx_myelin")))
    });
    found.as_ref()
}

fn prefix() -> Option<PathBuf> {
    let named = std::env::var_os("CYCLONEDDS11_PREFIX").map(PathBuf::from);
    named.or_else(|| Some(cache()?.join("cyclonedds11")))
}

/// Runs `body` of the test called `test` on a host of its own, if there is a plug-in.
pub fn on_a_host(test: &str, body: impl FnOnce()) {
    if plug_in().is_some() {
        on_own_host(test, body);
    }
}
