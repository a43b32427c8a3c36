//! Baselines: sessions under a name, kept by machine, for `compare --baseline`.
//!
//! ```text
//! $XDG_DATA_HOME/myelin/baselines/MACHINE/NAME/1 2 …      copies of the results folders
//! ```
//! A copy outlives the folder that it was made of. It has the records, from which `compare` analyses
//! it with the same program as the new state. MACHINE is [`Identity::key`].

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use crate::input_error::InputError;
use crate::lists::ascending;
use crate::machine::Identity;
use crate::record::{Folder, RECORDS};
use crate::root::Root;

/// All baselines of a user.
pub struct Baselines {
    folder: PathBuf,
}

/// The sessions of a baseline.
#[derive(Clone, Debug, Serialize)]
pub struct Baseline {
    /// Its name.
    pub name: String,
    /// The machine that it was measured on.
    pub machine: Identity,
    /// Whether that is this machine.
    pub is_here: bool,
    /// When its last session began, RFC 3339; absent if that is unknown.
    pub begun: Option<String>,
    /// Size of the copies.
    pub bytes: u64,
    /// The copies.
    pub sessions: Vec<PathBuf>,
}

impl Baselines {
    /// Those of this user, below `$XDG_DATA_HOME` or `~/.local/share`.
    pub fn of_user() -> Result<Self> {
        let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
        // The specification has relative paths ignored.
        let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
        let data = data.or_else(|| Some(variable("HOME")?.join(".local/share")));
        let data = data.ok_or_else(|| {
            InputError::new("baselines: neither XDG_DATA_HOME nor HOME is set")
                .remedy("set XDG_DATA_HOME to a folder for them")
        })?;
        Ok(Self::below(&data.join("myelin/baselines")))
    }

    /// Those below a folder, which need not exist.
    pub fn below(folder: &Path) -> Self {
        Baselines { folder: folder.to_owned() }
    }

    /// Copies results folders of one machine, in place of an earlier baseline of this name.
    pub fn set(&self, name: &str, folders: &[PathBuf]) -> Result<Baseline> {
        check(name)?;
        let machine = one_machine(folders)?;
        let of_machine = self.folder.join(machine.key());
        let make = || -> io::Result<PathBuf> {
            fs::create_dir_all(&of_machine)?;
            // A name that is no baseline's: an interrupted copy is never taken for one.
            let temporary = of_machine.join(format!(".{name}.new"));
            if temporary.exists() {
                fs::remove_dir_all(&temporary)?;
            }
            for (folder, number) in folders.iter().zip(1..) {
                let session = temporary.join(format!("{number}"));
                fs::create_dir_all(&session)?;
                // Without the reports, which are made of these.
                for records in RECORDS.into_iter().filter(|it| folder.join(it).exists()) {
                    copy(&folder.join(records), &session.join(records))?;
                }
            }
            Ok(temporary)
        };
        let place = |error| anyhow!("{}: {error}", of_machine.display());
        let temporary = make().map_err(place)?;
        let path = of_machine.join(name);
        let replace = || -> io::Result<()> {
            if path.exists() {
                fs::remove_dir_all(&path)?;
            }
            fs::rename(&temporary, &path)
        };
        replace().map_err(place)?;
        read(&path)
    }

    /// All, those of this machine first, by name.
    pub fn list(&self) -> Result<Vec<Baseline>> {
        let mut all = Vec::new();
        for machine in entries(&self.folder)? {
            for path in entries(&machine)? {
                all.push(read(&path)?);
            }
        }
        all.sort_by(|a, b| (!a.is_here, &a.name).cmp(&(!b.is_here, &b.name)));
        Ok(all)
    }

    /// Removes a baseline of this machine; if it has none of this name, that of another one.
    pub fn remove(&self, name: &str) -> Result<Baseline> {
        check(name)?;
        let all = self.list()?;
        let mut same = all.iter().filter(|it| it.name == name);
        let found = same.next().ok_or_else(|| unknown(name, &all))?;
        if !found.is_here && same.next().is_some() {
            let text = format!("baseline `{name}`: several other machines have one");
            let remedy = format!("remove one of the folders in {}", self.folder.display());
            return Err(InputError::new(text).remedy(remedy).into());
        }
        let path = self.folder.join(found.machine.key()).join(name);
        fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
        Ok(found.clone())
    }

    /// The sessions of a baseline that was measured on the machine of `compared`.
    pub fn sessions(&self, name: &str, compared: &[PathBuf]) -> Result<Vec<PathBuf>> {
        check(name)?;
        let machine = one_machine(compared)?;
        let all = self.list()?;
        let same = || all.iter().filter(|it| it.name == name);
        if let Some(found) = same().find(|it| !it.machine.is_another(&machine)) {
            return Ok(found.sessions.clone());
        }
        let Some(other) = same().next() else { return Err(unknown(name, &all).into()) };
        let text = format!(
            "baseline `{name}` is of another machine: {}; {} was measured on {machine}",
            other.machine,
            compared[0].display()
        );
        let remedy =
            "make one there: `myelin bench baseline set`, or name folders to compare machines";
        Err(InputError::new(text).remedy(remedy).into())
    }
}

/// A baseline's name is that of a folder.
fn check(name: &str) -> Result<(), InputError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-+".contains(letter);
    let is_good = (1..=NAME_MAX).contains(&name.len())
        && name.chars().all(is_plain)
        && !name.starts_with('.');
    let remedy = format!("use up to {NAME_MAX} letters, digits, `-`, `_`, `+` and `.`");
    let error = || InputError::new(format!("baseline `{name}`: not a plain word")).remedy(remedy);
    if is_good { Ok(()) } else { Err(error()) }
}

fn unknown(name: &str, all: &[Baseline]) -> InputError {
    let known = ascending(all.iter().map(|it| it.name.as_str()));
    InputError::unknown("baseline", name, known.into_iter())
        .remedy("`myelin bench baseline list` shows them")
}

/// The machine of results folders that nobody measures into; an error if there are several.
fn one_machine(folders: &[PathBuf]) -> Result<Identity> {
    let mut first: Option<Identity> = None;
    for path in folders {
        let name = || path.display().to_string();
        let (folder, _, machine) =
            Folder::open(path).map_err(|error| no_folder(&name(), &error))?;
        let machine = machine.map_err(|error| no_folder(&name(), &error))?.identity;
        if folder.in_progress() {
            let text = format!("{}: another session is using this folder", name());
            return Err(InputError::new(text).remedy("wait until it has ended").into());
        }
        match &first {
            Some(known) if known.is_another(&machine) => {
                let text = format!(
                    "{} was measured on {machine}, and {} on {known}",
                    name(),
                    folders[0].display()
                );
                return Err(InputError::new(text).remedy("a baseline has one machine").into());
            }
            Some(_) => {}
            None => first = Some(machine),
        }
    }
    first.ok_or_else(|| InputError::new("no results folder given").into())
}

fn no_folder(name: &str, error: &anyhow::Error) -> InputError {
    InputError::new(format!("{name}: {error:#}"))
        .remedy("name a results folder of `myelin bench run`")
}

/// Copies a folder with all below it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// The folders in a folder, by name, without hidden ones; none if it does not exist.
fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found.with_context(|| folder.display().to_string())?,
    };
    let paths = found.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>();
    let paths = paths.with_context(|| folder.display().to_string())?;
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_none_or(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    Ok(ascending(paths.into_iter().filter(|path| path.is_dir() && !is_hidden(path))))
}

fn read(path: &Path) -> Result<Baseline> {
    let mut sessions = entries(path)?;
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    sessions.sort_by_key(number);
    let last = sessions.last().with_context(|| format!("{}: no session", path.display()))?;
    let (_, plan, machine) = Folder::open(last)?;
    let machine = machine?.identity;
    let Some(Component::Normal(name)) = path.components().next_back() else {
        return Err(anyhow!("{}: no name", path.display()));
    };
    Ok(Baseline {
        name: name.to_string_lossy().into_owned(),
        is_here: !machine.is_another(&Identity::read(&Root::machine())),
        machine,
        begun: plan.begun,
        bytes: bytes_below(path)?,
        sessions,
    })
}

fn bytes_below(folder: &Path) -> io::Result<u64> {
    fs::read_dir(folder)?.try_fold(0, |sum, entry| {
        let entry = entry?;
        let bytes = match entry.file_type()?.is_dir() {
            true => bytes_below(&entry.path())?,
            false => entry.metadata()?.len(),
        };
        Ok(sum + bytes)
    })
}

const NAME_MAX: usize = 64;
