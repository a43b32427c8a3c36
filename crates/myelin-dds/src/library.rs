//! Finds the CycloneDDS library.

use std::ffi::{CStr, CString, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::error::Error;
use crate::{ffi, package};

/// Loads CycloneDDS, unless it is loaded: the library that the environment variable
/// `MYELIN_CYCLONEDDS` names; or that of ROS 2, if its version is without the known faults; or the
/// one that this was built for, from the loader's usual places (`LD_LIBRARY_PATH`, `ldconfig -p`). It
/// stays loaded until the process ends. Returns its file.
///
/// # Errors
/// [`Error::Missing`].
pub fn load() -> Result<PathBuf, Error> {
    let mut is_loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_loaded {
        find(std::env::var_os(VARIABLE)).map_err(Error::Missing)?;
        *is_loaded = true;
    }
    Ok(file())
}

/// The version in the name of a library's file, `libddsc.so.0.10.2`.
pub fn version_of(file: &Path) -> Option<[u32; 3]> {
    let (_, version) = file.file_name()?.to_str()?.split_once(".so.")?;
    let mut parts = version.split('.').map(str::parse);
    let mut next = || parts.next()?.ok();
    Some([next()?, next()?, next()?])
}

/// Of ROS 2, the newest first: without the known faults, and of the series that this was built for. The
/// loader does not find them by name, because Debian's has another one.
fn of_ros() -> Vec<PathBuf> {
    let prefixes = std::env::var_os("AMENT_PREFIX_PATH").unwrap_or_default();
    let named = std::env::split_paths(&prefixes).filter(|prefix| prefix.is_absolute());
    let prefixes = named.chain(entries(Path::new("/opt/ros"))).map(|prefix| prefix.join("lib"));
    let is_multiarch = |path: &PathBuf| path.as_os_str().as_bytes().ends_with(b"-linux-gnu");
    let folders = prefixes.flat_map(|lib| {
        let inner: Vec<PathBuf> = entries(&lib).filter(is_multiarch).collect();
        std::iter::once(lib).chain(inner)
    });
    let files = folders.flat_map(|folder| entries(&folder).collect::<Vec<_>>());
    let version = |file: &PathBuf| {
        let is_it = file.file_name()?.as_bytes().starts_with(b"libddsc.so.");
        version_of(file).filter(|version| is_it && version[..2] == SOUND[..2] && *version >= SOUND)
    };
    let mut found: Vec<_> = files.filter_map(|file| Some((version(&file)?, file))).collect();
    found.sort();
    found.into_iter().rev().map(|(_, file)| file).collect()
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
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
    // One of another architecture, or without what it needs, does not matter.
    if named.is_none() && of_ros().into_iter().any(|file| load_from(file.into()).is_ok()) {
        return Ok(());
    }
    load_from(named.unwrap_or_else(|| name.into())).map_err(|said| format!("{said}; {remedy}"))
}

/// Called with the lock, before any other function of the bridge.
fn load_from(library: OsString) -> Result<(), String> {
    let library = CString::new(library.into_vec()).map_err(|_| "a name with a NUL".to_owned())?;
    // SAFETY: a string; no function of the bridge is called before, and the lock excludes other
    // threads.
    let said = unsafe { ffi::myelin_dds_load(library.as_ptr()) };
    if said.is_null() {
        return Ok(());
    }
    // SAFETY: the loader's text, valid until this thread calls the loader again.
    Err(unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned())
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
/// From here on the authentication plug-in does not read behind a malformed handshake
/// (`DDS_Security_Deserialize_BuiltinTopicKey`, `_string` and `_OctetSeq`; commits 1d8aef61 and 683f50ed).
pub const SOUND: [u32; 3] = [0, 10, 5];
/// No function of the bridge is called unless it is true.
static LOADED: Mutex<bool> = Mutex::new(false);
