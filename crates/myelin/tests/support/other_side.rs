//! The other side of a test across processes: its test program, started again.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The process, killed when it is dropped.
pub struct Other(pub Child);

impl Other {
    /// `program` is a test program with a test `the_other_side`, which does what `role` says.
    pub fn start(mut program: Command, role: &str, folder: &Path) -> Other {
        program.args(["--exact", "the_other_side", "--nocapture"]);
        program.env(ROLE, role).env(FOLDER, folder).stdout(Stdio::null());
        Other(program.spawn().unwrap())
    }

    /// Sends it a signal, such as `STOP`.
    pub fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The variables by which it gets its role and the folder of its node.
pub const ROLE: &str = "MYELIN_TEST_ROLE";
pub const FOLDER: &str = "MYELIN_TEST_FOLDER";
