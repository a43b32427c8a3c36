//! Shared by the tests of the examples: domains of their own, and the paths of the programs.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A domain that no other program uses. Its folder is removed with it: a program that the watchdog
/// kills leaves its socket, and no other node comes that would remove it.
pub struct Domain(pub u32);

impl Domain {
    pub fn new() -> Domain {
        Domain(next())
    }

    /// A domain for which DDS has ports, different from the first ones, which robots use.
    #[allow(dead_code, reason = "each test file uses its own part")]
    pub fn for_the_network() -> Domain {
        Domain(100 + next() % 130)
    }

    /// The folder of its sockets. It is there while there are nodes.
    pub fn runtime_dir(&self) -> PathBuf {
        user_folder().join(self.0.to_string())
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(self.runtime_dir());
        let _ = std::fs::remove_dir(user_folder()); // unless there are others
    }
}

/// A number of this process's own.
fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    std::process::id() * 16 + NEXT.fetch_add(1, Ordering::Relaxed)
}

fn user_folder() -> PathBuf {
    format!("/dev/shm/myelin-{}", rustix::process::geteuid().as_raw()).into()
}

/// `cargo test` builds the examples beside the tests.
pub fn executable(example: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().unwrap().parent().unwrap().join("examples").join(example)
}

/// Nothing in these tests takes nearly so long.
pub const WATCHDOG: Duration = Duration::from_secs(120);
