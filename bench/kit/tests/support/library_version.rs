//! Which version a driver tells of a library that is newer than the headers it was built with.

use std::path::{Path, PathBuf};
use std::process::Command;

use myelin_bench_kit::protocol::Description;

use crate::support::is_built_in;

/// Of the library whose file's name begins with `name`.
pub fn is_that_of_the_library_that_runs(executable: &Path, name: &str) {
    if !is_built_in(executable) {
        return;
    }
    let ldd = Command::new("ldd").arg(executable).output().expect("ldd is libc's");
    let ldd = String::from_utf8_lossy(&ldd.stdout).into_owned();
    // libddsc.so.0debian => /lib/x86_64-linux-gnu/libddsc.so.0debian (0x00007f…)
    let mut libraries = ldd.lines().filter_map(|line| line.trim().split_once(" => "));
    let (soname, rest) = libraries.find(|(soname, _)| soname.starts_with(name)).expect(&ldd);
    let installed = Path::new(rest.split(" (").next().unwrap_or(rest));
    let installed = installed.canonicalize().expect("the loader has found it");
    let (_, version) = installed.to_str().expect("a plain name").split_once(".so.").expect(&ldd);
    assert_eq!(told(executable, None), version);

    let folder = tempfile::tempdir().expect("a folder");
    let newer = folder.path().join(format!("{name}.9.8.7"));
    std::fs::copy(&installed, &newer).expect("a copy");
    std::os::unix::fs::symlink(&newer, folder.path().join(soname)).expect("a link");
    assert_eq!(told(executable, Some(folder.path().into())), "9.8.7");
}

/// The version of the driver's first system, with libraries looked for in `folder` first.
fn told(executable: &Path, folder: Option<PathBuf>) -> String {
    let mut driver = Command::new(executable);
    driver.arg("describe").envs(folder.map(|folder| ("LD_LIBRARY_PATH", folder)));
    let output = driver.output().expect("the driver starts");
    let description: Description = serde_json::from_slice(&output.stdout).expect("a description");
    description.systems[0].version.clone()
}
