//! Where a run's files lie, and their removal.
//!
//! ```text
//! /dev/shm/horus_myelin_<run>/   HORUS's folder of the run's namespace, with a file for each topic
//!   alive                        shared lock of every living role of the run
//! ```
//! HORUS removes a topic's file with its last handle, and never its folders. The last role of a run to go
//! removes all of it. The kernel drops the lock of a process with the process, so the lock tells whether a
//! run still lives; [`clean`] removes the runs of which nobody does.

#[cfg(has_horus)]
mod stay;

use std::fs::{self, File};
use std::io::ErrorKind::{NotFound, PermissionDenied};
use std::path::Path;

use myelin_bench_kit::Error;

#[cfg(has_horus)]
pub use stay::Place;

/// Removes what runs have left of which no role lives.
pub fn clean() -> Result<(), Error> {
    let entries = fs::read_dir(MEMORY).into_iter().flatten().map_while(Result::ok);
    let roots = entries.map(|entry| entry.path()).filter(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(ROOT))
    });
    for root in roots {
        match File::open(root.join(ALIVE)) {
            Ok(alive) if alive.try_lock().is_ok() => remove_run(&root)?,
            // Somebody lives, or it is another user's.
            Ok(_) => {}
            // Just made by somebody who has not come to make the lock, or half removed.
            Err(error) if error.kind() == NotFound => drop(fs::remove_dir(&root)),
            Err(_) => {}
        }
    }
    Ok(())
}

/// The lock goes last: an interrupted removal is repeated.
fn remove_run(root: &Path) -> Result<(), Error> {
    for entry in fs::read_dir(root).into_iter().flatten().map_while(Result::ok) {
        let path = entry.path();
        if path.is_dir() {
            tolerate(&path, fs::remove_dir_all(&path))?;
        } else if entry.file_name() != ALIVE {
            tolerate(&path, fs::remove_file(&path))?;
        }
    }
    tolerate(root, fs::remove_file(root.join(ALIVE)))?;
    // Not empty: somebody has just come.
    let _ = fs::remove_dir(root);
    Ok(())
}

/// What is not there, or is another user's, is not our business.
fn tolerate(path: &Path, result: std::io::Result<()>) -> Result<(), Error> {
    match result {
        Err(error) if !matches!(error.kind(), NotFound | PermissionDenied) => {
            Err(Error::new(format!("removing {}: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

const MEMORY: &str = "/dev/shm";
/// HORUS's prefix and ours.
const ROOT: &str = "horus_myelin_";
const ALIVE: &str = "alive";
