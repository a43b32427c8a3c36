//! Compiles C and C++ programs against the library, and runs them in a domain of their own.
#![allow(dead_code, reason = "each test file uses its own part")]

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Nothing in these tests takes nearly so long.
pub const WATCHDOG: Duration = Duration::from_secs(120);

/// The folder of `libmyelin.so`, which is built at the first use; or of another `libmyelin`, named
/// by `MYELIN_C_LIBRARY`.
pub fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        if let Some(folder) = std::env::var_os("MYELIN_C_LIBRARY") {
            return folder.into();
        }
        let script = crate_folder().join("../../scripts/c-library");
        let said = Command::new(script)
            .env("CARGO", env!("CARGO"))
            .env("CARGO_TARGET_DIR", target())
            .stderr(Stdio::inherit())
            .output()
            .expect("scripts/c-library");
        assert!(said.status.success(), "scripts/c-library failed");
        String::from_utf8(said.stdout).unwrap().trim_end().into()
    })
}

/// A program of `examples/rust`.
pub fn rust_example(name: &str) -> PathBuf {
    let built = Command::new(env!("CARGO"))
        .args(["build", "-q", "-p", "myelin-examples", "--example", name])
        .env("CARGO_TARGET_DIR", target())
        .current_dir(crate_folder())
        .status()
        .expect("cargo");
    assert!(built.success(), "cargo build --example {name}");
    target().join("debug/examples").join(name)
}

pub fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where this test is built: `<target>/<profile>/deps/<test>`.
pub fn target() -> PathBuf {
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().into()
}

/// A folder for sockets and programs, which goes with it.
pub struct Place(TempDir);

impl Place {
    pub fn new() -> Place {
        let place = Place(tempfile::tempdir().unwrap());
        std::fs::DirBuilder::new().mode(0o700).create(place.sockets()).unwrap();
        place
    }

    pub fn sockets(&self) -> PathBuf {
        self.0.path().join("sockets")
    }

    /// A node of this process in it.
    pub fn node(&self) -> myelin::Node {
        let node = myelin::Node::builder("test").runtime_dir(self.sockets()).domain(domain());
        node.open().unwrap()
    }

    /// Compiles a source, named from this crate; `options` come first. The lines of
    /// `MYELIN_C_FLAGS`, each an option, come last.
    pub fn compile(&self, source: &str, options: &[&str]) -> PathBuf {
        let is_cpp = source.ends_with(".cpp");
        let (compiler, standard) =
            if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=gnu11") };
        let program = self.0.path().join(source.replace(['/', '.'], "-"));
        let more = std::env::var("MYELIN_C_FLAGS").unwrap_or_default();
        let compiled = Command::new(compiler)
            .arg(standard)
            .args(options)
            .args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
            .arg(&program)
            .arg(crate_folder().join(source))
            .arg(format!("-I{}", crate_folder().join("include").display()))
            .arg(format!("-L{}", library().display()))
            .arg(format!("-Wl,-rpath,{}", library().display()))
            .args(["-lmyelin", "-lm"])
            .args(more.lines())
            .output()
            .unwrap_or_else(|error| panic!("{compiler}: {error}; apt-get install g++"));
        assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        program
    }

    /// `program` in this place; nothing leaves the host.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        command
            .env("MYELIN_RUNTIME_DIR", self.sockets())
            .env("MYELIN_DOMAIN", domain().to_string())
            .env("MYELIN_INTERFACE", "lo")
            .env("MYELIN_PEERS", "127.0.0.1");
        command
    }

    /// Starts it, with `arguments`.
    pub fn start(&self, program: impl AsRef<Path>, arguments: &[&str]) -> Child {
        start(self.command(program), arguments)
    }

    /// Its output; it has to succeed.
    pub fn run(&self, program: impl AsRef<Path>, arguments: &[&str]) -> String {
        said(end(self.start(program, arguments)))
    }
}

/// A domain for which DDS has ports, different from the first ones, which robots use.
fn domain() -> u32 {
    100 + std::process::id() % 130
}

/// Starts it; its output is for [`end`].
pub fn start(mut command: Command, arguments: &[&str]) -> Child {
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// A program's output; it has to succeed.
pub fn said(output: Output) -> String {
    let (out, error) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {out}{error}", output.status);
    out.into_owned()
}

/// Waits for its end; fails the test if that does not come.
pub fn end(child: Child) -> Output {
    let pid = Pid::from_child(&child);
    let (to, from) = mpsc::channel();
    std::thread::spawn(move || to.send(child.wait_with_output().unwrap()));
    from.recv_timeout(WATCHDOG).unwrap_or_else(|_| {
        let _ = kill_process(pid, Signal::KILL);
        panic!("the program has not ended after {WATCHDOG:?}: {:?}", from.recv());
    })
}
