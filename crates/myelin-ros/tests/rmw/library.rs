//! `librmw_myelin.so`, built against the wheels of ROS 2 that scripts/setup installs.

#[path = "../../../myelin/tests/support/cache.rs"]
mod cache;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use self::cache::cache;
use crate::host;

/// The environment with ROS 2's wheels, and the library. `None`, with the reason printed, if
/// something is not installed.
pub fn library() -> Option<&'static (PathBuf, PathBuf)> {
    static FOUND: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let venv = venv()?;
        let has = |program: &str| Command::new(program).arg("--version").output().is_ok();
        if !has("cmake") || !has("c++") {
            println!("skipped: rmw_myelin needs cmake and a C++ compiler: scripts/setup test");
            return None;
        }
        let target = std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned();
        // In a test on a host of its own it has been built already.
        if !host::is_inside() {
            build(&venv, &target);
        }
        Some((venv, target.join("debug/rmw_myelin/librmw_myelin.so")))
    });
    found.as_ref()
}

/// It has `rclpy` and the messages of the tests.
fn venv() -> Option<PathBuf> {
    let venv = cache()?.join("ros2");
    let import = Command::new(venv.join("bin/python")).args(["-c", "import test_msgs"]).output();
    let is_there = import.is_ok_and(|output| output.status.success());
    if !is_there {
        println!("skipped: ROS 2's wheels are not installed: scripts/setup test");
    }
    is_there.then_some(venv)
}

fn build(venv: &Path, target: &Path) {
    let mut script = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/rmw"));
    script.arg("test").env("ROS2_PREFIX", venv).env("CARGO", env!("CARGO"));
    run(script.env("CARGO_TARGET_DIR", target));
}

/// Runs it to its end; returns its output. It has to succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, error) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{error}");
    out
}
