//! The files of a ring: a folder that one process writes, and that survives it.

use std::collections::VecDeque;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use myelin::Clock;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::info::Info;

/// A ring that cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// The file system refused.
    #[error("{path}: {error}", path = path.display())]
    Io {
        /// The folder, or a file in it.
        path: PathBuf,
        /// What it answered.
        #[source]
        error: io::Error,
    },
    /// Another recorder writes it.
    #[error("{path}: process {pid} records into this folder", path = path.display())]
    Busy {
        /// The folder.
        path: PathBuf,
        /// The recorder.
        pid: u32,
    },
    /// Others may write to it, and so could replace what is recorded.
    #[error("{path}: the folder belongs to another user, or others may write to it: name another folder", path = path.display())]
    NotPrivate {
        /// The folder.
        path: PathBuf,
    },
}

impl RingError {
    fn of(path: &Path) -> impl FnOnce(io::Error) -> RingError {
        move |error| RingError::Io { path: path.to_owned(), error }
    }
}

/// The complete segments of a ring.
pub(super) struct Segments {
    folder: PathBuf,
    /// Locked as long as it is open, with the number of this process in it.
    _lock: File,
    complete: VecDeque<Segment>,
    next_number: u64,
}

/// A complete segment.
pub(super) struct Segment {
    pub path: PathBuf,
    pub bytes: u64,
    /// Messages at its begin that the segment before has too.
    pub repeated: u64,
    /// When its last message was recorded.
    pub end: Instant,
}

impl Segments {
    /// Opens the folder, or makes it. Segments of an earlier process are found.
    pub(super) fn open(folder: &Path) -> Result<Segments, RingError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(RingError::of(folder))?;
        let metadata = folder.metadata().map_err(RingError::of(folder))?;
        let is_own = metadata.uid() == rustix::process::geteuid().as_raw();
        if !is_own || metadata.permissions().mode() & 0o022 != 0 {
            return Err(RingError::NotPrivate { path: folder.to_owned() });
        }
        let lock = lock(folder)?;
        let mut segments = Segments {
            folder: folder.to_owned(),
            _lock: lock,
            complete: VecDeque::new(),
            next_number: 0,
        };
        segments.find().map_err(RingError::of(folder))?;
        Ok(segments)
    }

    fn find(&mut self) -> io::Result<()> {
        let mut found = Vec::new();
        for entry in self.folder.read_dir()? {
            let path = entry?.path();
            if let Some(number) = number_of(&path) {
                found.push((number, path));
            }
        }
        found.sort_unstable();
        let now = Instant::now();
        let now_ns = Clock::system().now();
        for (number, path) in found {
            self.next_number = number + 1;
            let info = File::open(&path).ok().and_then(|file| Info::read(file).ok());
            let Some(info) = info.filter(|info| info.statistics.messages > 0) else {
                // It was begun, and nothing more.
                let _ = std::fs::remove_file(&path);
                continue;
            };
            // A clock that was set back makes it new.
            let age = Duration::from_nanos(now_ns.saturating_sub(info.statistics.times.1));
            let end = now.checked_sub(age).unwrap_or(now);
            self.complete.push_back(Segment { path, bytes: info.bytes, repeated: 0, end });
        }
        Ok(())
    }

    /// Begins the file of the next segment.
    pub(super) fn create(&mut self) -> io::Result<(File, PathBuf)> {
        loop {
            let path = self.folder.join(format!("{:010}.{EXTENSION}", self.next_number));
            self.next_number += 1;
            match File::options().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                opened => return Ok((opened?, path)),
            }
        }
    }

    pub(super) fn push(&mut self, segment: Segment) {
        self.complete.push_back(segment);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.complete.iter()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.complete.iter().map(|segment| segment.bytes).sum()
    }

    /// Bytes that are free on the disk, or would be without the segments.
    pub(super) fn space(&self) -> io::Result<u64> {
        let disk = rustix::fs::statvfs(&self.folder)?;
        Ok(disk.f_bavail.saturating_mul(disk.f_frsize).saturating_add(self.bytes()))
    }

    /// Removes segments that ended before, and the oldest ones as long as there are more bytes.
    /// Returns how many it removed.
    pub(super) fn remove_old(&mut self, keep: Duration, bytes_max: u64) -> u64 {
        let mut removed = 0;
        let mut bytes = self.bytes();
        while let Some(oldest) = self.complete.front() {
            if oldest.end.elapsed() <= keep && bytes <= bytes_max {
                break;
            }
            bytes -= oldest.bytes;
            self.remove_oldest();
            removed += 1;
        }
        removed
    }

    /// False if there is none.
    pub(super) fn remove_oldest(&mut self) -> bool {
        let Some(oldest) = self.complete.pop_front() else { return false };
        // What cannot be removed is removed by somebody else, or by the next process.
        let _ = std::fs::remove_file(&oldest.path);
        true
    }

    /// Removes everything, the folder too.
    pub(super) fn remove_all(&mut self) {
        while self.remove_oldest() {}
        let _ = std::fs::remove_file(self.folder.join(LOCK));
        let _ = std::fs::remove_dir(&self.folder);
    }
}

/// The process that records into the ring in this folder, if one does.
pub fn recorder(folder: &Path) -> Option<u32> {
    let file = File::open(folder.join(LOCK)).ok()?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => pid_in(&file),
        _ => None,
    }
}

fn lock(folder: &Path) -> Result<File, RingError> {
    let path = folder.join(LOCK);
    let options = File::options().read(true).write(true).create(true).truncate(false).to_owned();
    let mut file = options.open(&path).map_err(RingError::of(&path))?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let pid = pid_in(&file).unwrap_or(0);
            return Err(RingError::Busy { path: folder.to_owned(), pid });
        }
        Err(error) => return Err(RingError::of(&path)(error.into())),
    }
    let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
    written.map_err(RingError::of(&path))?;
    Ok(file)
}

fn pid_in(file: &File) -> Option<u32> {
    let mut text = String::new();
    file.take(20).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn number_of(path: &Path) -> Option<u64> {
    if path.extension() != Some(OsStr::new(EXTENSION)) {
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}

const EXTENSION: &str = "mcap";
/// The file that a recorder locks.
const LOCK: &str = "recorder";
