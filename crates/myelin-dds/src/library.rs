//! Finds the CycloneDDS library.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::{ffi, package};

/// Loads CycloneDDS, unless it is loaded: the library that the environment variable
/// `MYELIN_CYCLONEDDS` names, or the one with the version that this was built for, from the
/// loader's usual places (`LD_LIBRARY_PATH`, `ldconfig -p`). It stays loaded until the process
/// ends.
///
/// # Errors
/// [`Error::Missing`].
pub fn load() -> Result<(), Error> {
    let mut is_loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_loaded {
        find(std::env::var_os(VARIABLE)).map_err(Error::Missing)?;
        *is_loaded = true;
    }
    Ok(())
}

fn find(named: Option<OsString>) -> Result<(), String> {
    let Some(name) = option_env!("CYCLONEDDS_LIBRARY") else {
        return Err(option_env!("CYCLONEDDS_MISSING").unwrap_or_default().to_owned());
    };
    let named = named.filter(|path| !path.is_empty());
    let remedy = match named {
        Some(_) => format!("set {VARIABLE} to the path of CycloneDDS 0.10's library, or unset it"),
        None => format!(
            "{}, or put it where the loader looks (LD_LIBRARY_PATH), or set {VARIABLE} to its path",
            package::install(&package::os_release(), "libddsc0debian", "libddsc0t64")
        ),
    };
    let library = named.unwrap_or_else(|| name.into()).into_vec();
    let library = CString::new(library).map_err(|_| remedy.clone())?;
    // SAFETY: a string; no function of the bridge is called before, and the lock excludes other
    // threads.
    let said = unsafe { ffi::myelin_dds_load(library.as_ptr()) };
    if said.is_null() {
        return Ok(());
    }
    // SAFETY: the loader's text, valid until this thread calls the loader again.
    let said = unsafe { CStr::from_ptr(said) }.to_string_lossy();
    Err(format!("{said}; {remedy}"))
}

/// The file of the loaded library, without links.
pub(crate) fn file() -> PathBuf {
    // SAFETY: the library is loaded, and the text stays.
    let file = unsafe { CStr::from_ptr(ffi::myelin_dds_file()) };
    Path::new(std::ffi::OsStr::from_bytes(file.to_bytes())).to_owned()
}

/// One of the plug-ins: beside the library, or in a folder there of its name, where Debian has them.
pub(crate) fn plug_in(library: &'static str) -> Result<PathBuf, Error> {
    let beside = file();
    let folder = beside.parent().unwrap_or(Path::new("/"));
    let folders = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_its = |entry: &std::fs::DirEntry| entry.file_name().as_bytes().starts_with(b"libddsc");
    let folders = folders.filter(is_its).map(|entry| entry.path());
    let mut places = std::iter::once(folder.to_owned()).chain(folders).map(|it| it.join(library));
    places.find(|file| file.is_file()).ok_or(Error::NoPlugIn { library, beside })
}

const VARIABLE: &str = "MYELIN_CYCLONEDDS";
/// No function of the bridge is called unless it is true.
static LOADED: Mutex<bool> = Mutex::new(false);
