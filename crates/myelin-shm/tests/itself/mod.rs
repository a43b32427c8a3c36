//! Tests that start themselves again, as another process.

use std::ffi::OsStr;
use std::process::Command;

/// This test program, to be started again.
pub fn itself() -> Command {
    run(std::env::current_exe().expect("it runs"))
}

/// A command that runs this test program, which lies at `program`. `MYELIN_TEST_RUNNER` is the
/// command that runs it where the kernel cannot: an emulator with its options, like cargo's
/// `runner`.
pub fn run(program: impl AsRef<OsStr>) -> Command {
    let Ok(runner) = std::env::var("MYELIN_TEST_RUNNER") else { return Command::new(program) };
    let mut words = runner.split_whitespace();
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).arg(program);
    command
}
