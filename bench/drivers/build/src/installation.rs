//! A middleware in a folder named by an environment variable. Without a usable folder the driver is
//! built without the middleware and says what to do; the build never fails for that.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The location of a middleware, and messages for users who do not have it.
pub struct Installation {
    /// Its name.
    pub middleware: &'static str,
    /// The variable that names the folder, an absolute path.
    pub variable: &'static str,
    /// What to do if the variable is not set.
    pub absent: &'static str,
    /// What to do if the folder is not usable.
    pub remedy: &'static str,
}

impl Installation {
    /// The result of `build` for the folder, or the reason why the driver's systems are missing.
    pub fn build<T>(&self, build: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
        println!("cargo:rerun-if-env-changed={}", self.variable);
        let folder = std::env::var_os(self.variable).filter(|folder| !folder.is_empty());
        let folder = PathBuf::from(folder.ok_or(self.absent)?);
        let built = if folder.is_absolute() && folder.is_dir() {
            build(&folder)
        } else {
            // As long as the folder does not exist, cargo runs the script at every build.
            println!("cargo:rerun-if-changed={}", folder.display());
            Err("no such folder; give an absolute path".to_owned())
        };
        built.map_err(|reason| {
            let reason = format!("{}={}: {reason}", self.variable, folder.display());
            println!(
                "cargo:warning={reason}; the driver of {} is built without it",
                self.middleware
            );
            format!("not built in: {reason}; {}", self.remedy)
        })
    }
}

/// Checks that each of the files exists; the error says how to get a missing one.
pub fn require(folder: &Path, files: &[(&str, &str)]) -> Result<(), String> {
    match files.iter().find(|(file, _)| !folder.join(file).is_file()) {
        None => Ok(()),
        Some((file, remedy)) => Err(format!("no {file} there; it has to be {remedy}")),
    }
}

/// The commit of `sources` if they are a clone, for middlewares without version numbers.
pub fn commit(sources: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(sources).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The sources may be within the clone of another project.
    let top = git(&["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    let is_own = top.and_then(|top| top.canonicalize().ok()) == sources.canonicalize().ok();
    is_own.then(|| git(&["log", "-1", "--format=%h of %cs"])).flatten()
}
