//! The files of a run:
//!
//! ```text
//! /tmp/myelin-iceoryx2-<tag>/        root of the run: iceoryx2's folders and event sockets
//!   gate                             held by the role that opens its ports
//! /dev/shm/mlx2-<tag>_…              its shared memory
//! ```
//! `<tag>` is derived from the run's name, so runs do not see each other. iceoryx2 removes the files of its
//! ports when they are dropped; [`RUNS`] removes what a killed role has left.

use std::fs::{File, OpenOptions};
use std::path::Path;

use iceoryx2::prelude::{Config, FileName, Path as RootPath, SemanticString};
use myelin_bench_kit::Error;
use myelin_bench_kit::run_folder::{RunFolder, RunFolders, tag};

/// Where runs have their files: iceoryx2's own default, since the path of a socket may have 107 bytes.
pub const RUNS: RunFolders =
    RunFolders { parent: "/tmp", prefix: "myelin-iceoryx2-", memory: Some(PREFIX) };

/// A role's use of its run's place. It ends with the value, or with the process unless that is killed.
pub struct Place {
    tag: String,
    folder: RunFolder,
}

impl Place {
    /// Joins `run`.
    pub fn enter(run: &str) -> Result<Self, Error> {
        let tag = tag(run);
        Ok(Place { folder: RUNS.enter(&tag)?, tag })
    }

    /// iceoryx2's defaults at this place, without the user's configuration file.
    pub fn config(&self) -> Result<Config, Error> {
        let root = &self.folder.path;
        let invalid = |error| Error::new(format!("{}: {error:?}", root.display()));
        let mut config = Config::default();
        let path = RootPath::new(root.as_os_str().as_encoded_bytes()).map_err(invalid)?;
        config.global.set_root_path(&path);
        let prefix = format!("{PREFIX}{}_", self.tag);
        config.global.prefix = FileName::new(prefix.as_bytes()).map_err(invalid)?;
        Ok(config)
    }

    /// A lock that one role holds at a time.
    pub fn gate(&self) -> Result<File, Error> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let gate = options.open(self.folder.path.join("gate"))?;
        gate.lock()?;
        Ok(gate)
    }
}

/// Why iceoryx2 cannot run here.
pub fn missing() -> Option<String> {
    let memory = Path::new(MEMORY);
    (!memory.is_dir()).then(|| format!("there is no {MEMORY}: mount -t tmpfs tmpfs {MEMORY}"))
}

/// Fails if `bytes` do not fit into shared memory. iceoryx2 reserves memory without allocating it:
/// if it runs out later, SIGBUS ends the process.
pub fn check_room(bytes: u64) -> Result<(), Error> {
    let room = rustix::fs::statvfs(MEMORY).map_err(std::io::Error::from)?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if bytes <= free {
        return Ok(());
    }
    Err(Error::new(format!("{MEMORY} has room for {free} B, but the run needs {bytes} B"))
        .remedy(format!("mount -o remount,size=… {MEMORY}; in a container: --shm-size")))
}

/// The folder of `shm_open`.
const MEMORY: &str = "/dev/shm";
const PREFIX: &str = "mlx2-";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_fit() {
        // A port's number has up to 39 digits.
        let name = format!("{PREFIX}{}_{}.event", tag("run"), u128::MAX);
        let path = RUNS.path(&tag("run")).join(name);
        assert!(path.as_os_str().len() <= 107, "{}", path.display());
    }
}
