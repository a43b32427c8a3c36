//! The identity of this process as files, for a middleware that reads them.
//!
//! The lab makes the identities of a run and sends each process its own ([`Prepare::identity`]). The files are in
//! memory and readable by this user alone; the last process of the run removes them, and the next run those of
//! killed processes.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::protocol::{Identity, Prepare, Role, System};
use crate::run_folder::{RunFolder, RunFolders};

/// Writes the identity of `prepare`, if its system needs one, and sets [`Prepare::enclave`]. The files live as long
/// as the returned value.
pub(crate) fn enter(
    system: Option<&System>,
    prepare: &mut Prepare,
) -> Result<Option<RunFolder>, Error> {
    if !system.is_some_and(|system| system.secure) {
        return Ok(None);
    }
    let Some(identity) = prepare.identity.take() else {
        let text = format!("{}: this process has no identity", prepare.system);
        return Err(Error::new(text).remedy(
            "measure it with `myelin bench run` or `ping`, which make a keystore for each run",
        ));
    };
    let folder = KEYSTORES.enter(&prepare.run)?;
    let role = if prepare.role == Role::Ping { "ping" } else { "pong" };
    let enclave = folder.path.join("enclaves").join(format!("{role}{}", prepare.index));
    let written = write(&enclave, &identity);
    written.map_err(|error| Error::new(format!("{}: {error}", enclave.display())))?;
    prepare.enclave = Some(enclave);
    Ok(Some(folder))
}

/// Removes the files of killed processes.
pub(crate) fn clean() -> Result<(), Error> {
    KEYSTORES.clean()
}

fn write(enclave: &Path, Identity(files): &Identity) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(enclave)?;
    for (name, text) in files {
        let mut file = OpenOptions::new();
        file.write(true).create(true).truncate(true).mode(0o600);
        file.open(enclave.join(name))?.write_all(text.as_bytes())?;
    }
    Ok(())
}

impl Identity {
    /// Reads the files of the enclave in `folder`.
    pub fn read(folder: &Path) -> std::io::Result<Identity> {
        let read = |path: PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            Ok((name, fs::read_to_string(path)?))
        };
        let paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path()));
        // What it shares with others is behind links.
        let files = paths.filter(|path| path.as_ref().map_or(true, |path| path.is_file()));
        files
            .map(|path: std::io::Result<PathBuf>| read(path?))
            .collect::<Result<_, _>>()
            .map(Identity)
    }
}

const KEYSTORES: RunFolders = RunFolders::in_memory("myelin-bench-keystore-");
