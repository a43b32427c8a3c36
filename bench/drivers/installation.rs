//! What the build scripts of drivers share whose middleware lies in a folder that a variable names. Without
//! one, or with one that does not serve, the driver builds all the same and says what to do; the build never
//! fails for it. A file and no crate: build scripts take it in by its path.

// Each takes what it needs.
#![allow(dead_code)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Of a middleware: where it is, and what to tell the user who has none.
pub struct Installation {
    pub middleware: &'static str,
    /// What names the folder, an absolute path.
    pub variable: &'static str,
    /// What to do where it names none.
    pub absent: &'static str,
    /// What to do where the folder does not serve.
    pub remedy: &'static str,
}

impl Installation {
    /// What `build` makes of the folder, or what the driver's systems miss: `build` has said why.
    pub fn build<T>(&self, build: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
        println!("cargo:rerun-if-env-changed={}", self.variable);
        let folder = std::env::var_os(self.variable).filter(|folder| !folder.is_empty());
        let folder = PathBuf::from(folder.ok_or(self.absent)?);
        let built = if folder.is_absolute() && folder.is_dir() {
            build(&folder)
        } else {
            // As long as it is not there, cargo runs the script at every build.
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

/// Whether each of the files is there; otherwise what has to be done that it is.
pub fn require(folder: &Path, files: &[(&str, &str)]) -> Result<(), String> {
    match files.iter().find(|(file, _)| !folder.join(file).is_file()) {
        None => Ok(()),
        Some((file, remedy)) => Err(format!("no {file} there; it has to be {remedy}")),
    }
}

/// The commit of `sources`, if they are a clone: for middlewares that number no versions.
pub fn commit(sources: &Path) -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(sources).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    // The clone around the sources may be somebody else's.
    let top = git(&["rev-parse", "--show-toplevel"]).map(PathBuf::from);
    let is_own = top.and_then(|top| top.canonicalize().ok()) == sources.canonicalize().ok();
    is_own.then(|| git(&["log", "-1", "--format=%h of %cs"])).flatten()
}
