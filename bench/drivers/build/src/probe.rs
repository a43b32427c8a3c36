//! A C library that pkg-config finds.

use std::ops::RangeBounds;
use std::path::Path;
use std::process::Command;

use pkg_config::{Config, Error, Library};

use crate::packages;

/// Finds the library `name` in one of `versions`, which `known` names; the packages that contain it are those of
/// `need` in the table of packages. Does not tell cargo to link it: our own must come first. The error says
/// what to do.
pub fn find(
    name: &str,
    need: &str,
    versions: impl RangeBounds<&'static str>,
    known: &str,
) -> Result<Library, String> {
    packages::built_here()?;
    config().range_version(versions).probe(name).map_err(|error| {
        await_packages();
        match config().probe(name) {
            Ok(library) => format!("needs {known}, found {}", library.version),
            Err(_) => missing(name, need, &error),
        }
    })
}

fn config() -> Config {
    let mut config = Config::new();
    config.cargo_metadata(false).env_metadata(true);
    config
}

/// Links a library, after those linked so far.
pub fn link(library: &Library) {
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}

/// Makes cargo run the script again when pkg-config's files change. The missing library may be a
/// dependency of the requested one, and installing it changes none of the latter's files.
fn await_packages() {
    let asked = Command::new("pkg-config").args(["--variable", "pc_path", "pkg-config"]).output();
    match asked {
        Ok(output) => {
            let folders = String::from_utf8_lossy(&output.stdout);
            // For a path that does not exist, cargo would run the script at every build.
            for folder in folders.trim().split(':').filter(|folder| Path::new(folder).is_dir()) {
                println!("cargo:rerun-if-changed={folder}");
            }
        }
        Err(_) => println!("cargo:rerun-if-changed=/usr/bin/pkg-config"),
    }
}

/// The message for a user without `name`.
fn missing(name: &str, need: &str, error: &Error) -> String {
    let remedy = packages::not_installed(need);
    match error {
        Error::Command { .. } => remedy.replace("apt-get install", "apt-get install pkg-config"),
        Error::Failure { output, .. } | Error::ProbeFailure { output, .. } => {
            not_found(name, &remedy, &String::from_utf8_lossy(&output.stderr))
        }
        _ => remedy,
    }
}

/// The same for the message that pkg-config `said`: a library may be installed without its
/// dependencies.
pub fn not_found(name: &str, remedy: &str, said: &str) -> String {
    let mut absent = said.lines().filter_map(|line| {
        let (absent, _) = line.strip_prefix("Package ")?.split_once(" was not found")?;
        (absent != name).then_some(absent)
    });
    match absent.next() {
        Some(absent) => remedy.replacen(": ", &format!(": {absent}, which {name} requires; "), 1),
        None => remedy.to_owned(),
    }
}
