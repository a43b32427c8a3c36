//! Driver of `myelin bench` for Myelin from Python: contains `driver.py` and runs it. Without
//! Python or its modules it says what to do.
//!
//! The interpreter is `python3`, unless `MYELIN_PYTHON` names another. The modules `myelin` and
//! `myelin_bench_kit` come from the folder `python` beside this program, where
//! `scripts/python driver` puts them; without that folder the installed ones are used.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use myelin_bench_kit::protocol::{Prepare, System};
use myelin_bench_kit::{Driver, Error, RoundTrip};

fn main() -> ExitCode {
    // A measuring process need not check this.
    let describes = std::env::args_os().nth(1).is_some_and(|verb| verb == "describe");
    if let Some(missing) = describes.then(missing).flatten() {
        return myelin_bench_kit::main(&Missing(missing));
    }
    let failed = python().args(["-c", DRIVER]).args(std::env::args_os().skip(1)).exec();
    eprintln!("{}: {failed}", interpreter().display());
    ExitCode::FAILURE
}

fn interpreter() -> PathBuf {
    let named = std::env::var_os("MYELIN_PYTHON").filter(|name| !name.is_empty());
    named.unwrap_or_else(|| "python3".into()).into()
}

fn python() -> Command {
    let mut python = Command::new(interpreter());
    let beside = std::env::current_exe().ok();
    let beside = beside.as_deref().and_then(Path::parent).map(|folder| folder.join("python"));
    let others = std::env::var_os("PYTHONPATH").unwrap_or_default();
    let folders = beside.into_iter().chain(std::env::split_paths(&others));
    if let Ok(path) = std::env::join_paths(folders) {
        python.env("PYTHONPATH", path);
    }
    python.env("MYELIN_BENCH_SYSTEMS", SYSTEMS);
    python
}

/// Why the driver cannot run here, and what to do.
fn missing() -> Option<String> {
    let interpreter = interpreter();
    let tried = match python().args(["-c", "import myelin, myelin_bench_kit"]).output() {
        Ok(tried) => tried,
        Err(error) => {
            let name = interpreter.display();
            return Some(format!(
                "no {name} ({error}): apt-get install python3, or name one in MYELIN_PYTHON"
            ));
        }
    };
    if tried.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&tried.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("ended without output");
    let release = if cfg!(debug_assertions) { "" } else { " --release" };
    Some(format!("{}: {said}: scripts/python driver{release} installs it", interpreter.display()))
}

/// The driver if it cannot run.
struct Missing(String);

impl Driver for Missing {
    fn systems(&self) -> Vec<System> {
        let mut systems: Vec<System> = serde_json::from_str(SYSTEMS).expect("the protocol's");
        for system in &mut systems {
            system.missing = Some(self.0.clone());
        }
        systems
    }

    fn check(&self, _: &Prepare) -> Result<(), Error> {
        Err(Error::new(self.0.clone()))
    }

    fn open(&self, _: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(self.0.clone()))
    }
}

const DRIVER: &str = include_str!("driver.py");
const SYSTEMS: &str = include_str!("systems.json");
