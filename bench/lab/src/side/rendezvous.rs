//! Where the two sides of a topic find each other: a folder of this user, in which each side has a
//! file with its offer. Its owner has locked the file; the kernel unlocks it when the process ends, for
//! any reason, so an unlocked file is of a side that has ended.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use myelin_bench_kit::protocol::{Reliability, Role, System};
use myelin_bench_kit::samples::SampleFile;
use serde::{Deserialize, Serialize};

use super::{DEPTH, Side, Terms};
use crate::input_error::InputError;

/// What a side runs with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Offer {
    /// `pub` or `sub`.
    pub side: String,
    pub index: u32,
    pub payload_bytes: u64,
    pub subscribers: u32,
    pub reliability: Reliability,
    pub depth: u32,
    /// Where its records can be read while it lives.
    pub records: Option<PathBuf>,
}

/// A side's place in the folder. Dropping it removes its file, and the folder with the last one.
pub(super) struct Rendezvous {
    folder: PathBuf,
    topic: String,
    path: PathBuf,
    file: File,
    offer: Offer,
    /// The publisher's records that were opened last.
    seen: Option<PathBuf>,
}

impl Rendezvous {
    /// Enters the folder of a topic, with the settings of the sides that are there.
    pub fn enter(side: &Side, system: &System) -> Result<Self> {
        let folder = home()?.join(format!("{}-{}", system.name, side.topic));
        make(&folder).with_context(|| folder.display().to_string())?;
        let others = offers(&folder);
        let terms = settle(&side.terms, others.first(), &side.topic)?;
        let reliabilities = &system.streams.reliability;
        let usual = reliabilities.first().copied().unwrap_or_default();
        let mut offer = Offer {
            side: name_of(side.role).into(),
            index: 0,
            payload_bytes: terms.payload_bytes.unwrap_or(PAYLOAD_BYTES),
            subscribers: terms.subscribers.unwrap_or(1),
            reliability: terms.reliability.unwrap_or(usual),
            depth: terms.depth.unwrap_or(DEPTH),
            records: None,
        };
        within_limits(&offer, system)?;
        let indices = match (side.role, terms.index) {
            (Role::Ping, _) => 0..1,
            (_, Some(index)) => index..index + 1,
            (_, None) => 0..offer.subscribers,
        };
        for index in indices.clone() {
            let path = folder.join(format!("{}-{index}.json", offer.side));
            let open =
                || File::options().create(true).truncate(false).read(true).write(true).open(&path);
            let file = open().with_context(|| path.display().to_string())?;
            if lock(&file) {
                offer.index = index;
                let topic = side.topic.clone();
                let mut here = Rendezvous { folder, topic, path, file, offer, seen: None };
                here.write()?;
                return Ok(here);
            }
        }
        let (name, number) = (&offer.side, indices.len());
        let text = format!("{name}: {number} of topic {} run already", side.topic);
        Err(InputError::new(text)
            .remedy("choose another --topic, or more --subscribers for both sides")
            .into())
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Says where the records of this side are.
    pub fn publish_records(&mut self, path: Option<PathBuf>) -> Result<()> {
        self.offer.records = path;
        self.write()
    }

    /// Compares the settings once more: both may have come at the same time.
    pub fn agree(&self) -> Result<(), InputError> {
        let own = Terms {
            payload_bytes: Some(self.offer.payload_bytes),
            subscribers: Some(self.offer.subscribers),
            index: None,
            reliability: Some(self.offer.reliability),
            depth: Some(self.offer.depth),
        };
        offers(&self.folder).iter().try_for_each(|it| settle(&own, Some(it), &self.topic).map(drop))
    }

    /// The publisher's records, when they have appeared, once for each publisher.
    pub fn publishers_records(&mut self) -> Option<Arc<SampleFile>> {
        let publisher = read(&self.folder.join("pub-0.json"))?;
        let path = publisher.records.filter(|path| self.seen.as_ref() != Some(path))?;
        let file = SampleFile::look(&path).ok()?;
        self.seen = Some(path);
        Some(Arc::new(file))
    }

    /// Whether the publisher whose records were opened has ended, and no other has come.
    pub fn has_lost_publisher(&self) -> bool {
        self.seen.is_some() && read(&self.folder.join("pub-0.json")).is_none()
    }

    fn write(&mut self) -> Result<()> {
        let text = serde_json::to_vec(&self.offer).expect("plain data serialises");
        let path = self.path.display().to_string();
        let write = |file: &mut File| {
            file.set_len(0)?;
            file.seek(SeekFrom::Start(0))?;
            file.write_all(&text)
        };
        write(&mut self.file).with_context(|| path)
    }
}

impl Drop for Rendezvous {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        if offers(&self.folder).is_empty() {
            let _ = fs::remove_dir_all(&self.folder);
        }
    }
}

/// Whether the file could be locked. Others who look at it hold it for a moment.
fn lock(file: &File) -> bool {
    (0..LOCK_TRIES).any(|_| {
        file.try_lock().is_ok() || {
            std::thread::sleep(LOCK_PAUSE);
            false
        }
    })
}

/// What this side runs with: its own options, or what the other has.
fn settle(own: &Terms, other: Option<&Offer>, topic: &str) -> Result<Terms, InputError> {
    let Some(other) = other else { return Ok(*own) };
    let differs = |option: &str, own: &str, theirs: &str| {
        let text = format!("--{option} {own}: the `{}` of topic {topic} has {theirs}", other.side);
        Err(InputError::new(text)
            .remedy("leave the option out, or start both sides with the same one"))
    };
    match own {
        Terms { payload_bytes: Some(own), .. } if *own != other.payload_bytes => {
            return differs("size", &own.to_string(), &other.payload_bytes.to_string());
        }
        Terms { subscribers: Some(own), .. } if *own != other.subscribers => {
            return differs("subscribers", &own.to_string(), &other.subscribers.to_string());
        }
        Terms { reliability: Some(own), .. } if *own != other.reliability => {
            return differs("reliability", own.name(), other.reliability.name());
        }
        Terms { depth: Some(own), .. } if *own != other.depth => {
            return differs("depth", &own.to_string(), &other.depth.to_string());
        }
        _ => {}
    }
    Ok(Terms {
        payload_bytes: Some(other.payload_bytes),
        subscribers: Some(other.subscribers),
        index: own.index,
        reliability: Some(other.reliability),
        depth: Some(other.depth),
    })
}

fn within_limits(offer: &Offer, system: &System) -> Result<(), InputError> {
    let refuse = |text: String| Err(InputError::new(format!("{}: {text}", system.name)));
    let (most, subscribers) = (system.payload_bytes_max, system.streams.subscribers_max);
    if most != 0 && offer.payload_bytes > most {
        return refuse(format!("--size: it carries {most} B at most"));
    }
    if subscribers != 0 && offer.subscribers > subscribers {
        return refuse(format!("--subscribers: {subscribers} at most"));
    }
    if !system.streams.reliability.contains(&offer.reliability) {
        let offered: Vec<&str> = system.streams.reliability.iter().map(|it| it.name()).collect();
        return refuse(format!("--reliability: it is {}", offered.join(" or ")));
    }
    Ok(())
}

fn name_of(role: Role) -> &'static str {
    if role == Role::Ping { "pub" } else { "sub" }
}

/// The offers of the sides that live.
fn offers(folder: &Path) -> Vec<Offer> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| read(&entry.path())).collect()
}

/// An offer; `None` if its side has ended, has not written it yet, or it is another file.
fn read(path: &Path) -> Option<Offer> {
    if path.extension().is_none_or(|kind| kind != "json") {
        return None;
    }
    let mut file = File::open(path).ok()?;
    match file.try_lock_shared() {
        Err(TryLockError::WouldBlock) => {}
        _ => return None,
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// The folder of all topics of this user.
fn home() -> Result<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    let place = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|it| it.is_dir());
    let home = match place {
        Some(place) => place.join("myelin-bench"),
        None => std::env::temp_dir().join(format!("myelin-bench-{user}")),
    };
    make(&home).with_context(|| home.display().to_string())?;
    let owner = fs::metadata(&home)?.uid();
    if owner != user {
        let text = format!("{}: it belongs to user {owner}", home.display());
        return Err(InputError::new(text)
            .remedy("set XDG_RUNTIME_DIR to a folder of yours")
            .into());
    }
    Ok(home)
}

/// Makes a folder for this user alone, unless it is there.
fn make(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

const LOCK_TRIES: u32 = 5;
const LOCK_PAUSE: Duration = Duration::from_millis(10);
/// The size if neither side names one.
const PAYLOAD_BYTES: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn offer() -> Offer {
        Offer {
            side: "pub".into(),
            index: 0,
            payload_bytes: 64,
            subscribers: 2,
            reliability: Reliability::BestEffort,
            depth: 16,
            records: None,
        }
    }

    #[test]
    fn the_second_side_has_the_settings_of_the_first_or_names_what_differs() {
        let open = Terms::default();
        assert_eq!(settle(&open, None, "hand").unwrap().payload_bytes, None);
        let terms = settle(&open, Some(&offer()), "hand").unwrap();
        assert_eq!((terms.payload_bytes, terms.subscribers), (Some(64), Some(2)));
        for (own, expected) in [
            (
                Terms { payload_bytes: Some(1024), ..open },
                "--size 1024: the `pub` of topic hand has 64",
            ),
            (
                Terms { subscribers: Some(1), ..open },
                "--subscribers 1: the `pub` of topic hand has 2",
            ),
            (Terms { depth: Some(1), ..open }, "--depth 1: the `pub` of topic hand has 16"),
            (
                Terms { reliability: Some(Reliability::Reliable), ..open },
                "--reliability reliable: the `pub` of topic hand has best-effort",
            ),
        ] {
            let error = settle(&own, Some(&offer()), "hand").unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn an_offer_is_read_as_long_as_its_side_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pub-0.json");
        fs::write(&path, serde_json::to_string(&offer()).unwrap()).unwrap();
        assert_eq!(read(&path), None, "nobody holds it");
        let held = File::open(&path).unwrap();
        held.try_lock().unwrap();
        assert_eq!(offers(folder.path()), [offer()]);
        fs::write(folder.path().join("pong.log"), "text").unwrap();
        assert_eq!(offers(folder.path()).len(), 1);
        drop(held);
        assert!(offers(folder.path()).is_empty());
    }
}
