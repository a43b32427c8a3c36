//! A flight recorder: the newest seconds of a recording, and a file of them when something happens.
//!
//! A ring is a folder of segments, on a disk or in memory (`/dev/shm`). Each segment is a file of its
//! own that begins with the latched samples of its topics and is whole at every byte. So a recorder
//! that is killed leaves all that it had written, and the next one finds it. Segments that are not
//! needed any more are removed.
//!
//! A [trigger](Trigger) writes out what is in the ring, and what comes for some seconds after it, into
//! one file. That is done by a thread of its own, while the recording goes on; the segments are open
//! until they are copied, so they may be removed meanwhile.

mod saver;
mod segments;
#[cfg(test)]
mod tests;
mod trigger;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub use saver::{SaveError, Saved};
pub use segments::{RingError, recorder};
pub use trigger::Trigger;

use crate::ending::OpenError;
use crate::error::WriteError;
use crate::format::Metadata;
use crate::recorder::{Message, OneFile, Output, Progress, RecordedTopic};
use crate::writer::Options;
use saver::{Part, Saver};
use segments::{Segment, Segments};

/// How a ring is written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RingOptions {
    /// The ring has the messages of so long a time at least, if they are no more bytes than
    /// [`bytes_max`](RingOptions::bytes_max).
    pub keep: Duration,
    /// The ring has at most so many bytes, and at most nine tenths of what is free on its disk. A
    /// file that is being written out may keep as many more.
    pub bytes_max: u64,
    /// What comes for so long a time after a trigger is written out too.
    pub after: Duration,
    /// Where it is written out: for `run.mcap` into `run_0000.mcap`, `run_0001.mcap` …
    pub saves: PathBuf,
    /// How segments are written.
    pub writer: Options,
    /// How files are written after a trigger.
    pub saved: Options,
}

impl RingOptions {
    /// A ring of so long a time, that is written out to files with numbers behind this name.
    pub fn new(keep: Duration, saves: impl Into<PathBuf>) -> RingOptions {
        RingOptions {
            keep,
            bytes_max: 1 << 30,
            after: Duration::ZERO,
            saves: saves.into(),
            writer: Options::default(),
            saved: Options::default(),
        }
    }
}

/// An output to a ring of files.
pub struct Ring {
    options: RingOptions,
    /// What it may have now, as far as the disk has room.
    bytes_max: u64,
    segments: Segments,
    topics: Vec<RecordedTopic>,
    current: Current,
    triggers: Vec<Trigger>,
    shared: Arc<Shared>,
    saving: Option<Saving>,
    threads: Vec<JoinHandle<()>>,
    /// Of complete segments, by topic.
    lost: Vec<u64>,
    /// Of complete segments, removed ones too.
    bytes: u64,
    removed: u64,
    is_temporary: bool,
}

/// Messages of a recorder that has ended, which could not be written out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SalvageError {
    /// The ring cannot be opened.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// They cannot be read or written. They stay in the ring.
    #[error(transparent)]
    Save(#[from] SaveError),
}

impl From<OpenError> for SalvageError {
    fn from(error: OpenError) -> Self {
        SalvageError::Save(SaveError::Read(error))
    }
}

/// The segment that is written.
struct Current {
    output: OneFile<File>,
    path: PathBuf,
    /// When its first message came.
    begin: Option<Instant>,
    /// Messages in it, and those at its begin that the segment before has too.
    messages: u64,
    repeated: u64,
    /// Whether a write failed. It can be completed, and no more.
    has_failed: bool,
}

/// A file that is written after a trigger.
struct Saving {
    parts: Sender<Part>,
    until: Instant,
    /// Messages of the current segment that it has.
    messages: u64,
    reasons: Arc<Mutex<Vec<String>>>,
}

#[derive(Default)]
struct Shared {
    /// Triggers from outside.
    asked: Mutex<Vec<String>>,
    is_asked: AtomicBool,
    saved: Mutex<Vec<Result<Saved, SaveError>>>,
}

/// Writes out a ring whose recording has been given away.
#[derive(Clone)]
pub struct RingHandle(Arc<Shared>);

impl RingHandle {
    /// Writes out what is in the ring and what comes after, for this reason. While a file is being
    /// written out, it becomes longer instead.
    pub fn trigger(&self, reason: impl Into<String>) {
        lock(&self.0.asked).push(reason.into());
        // ORDER: Release, with the load in `Ring::check`: who sees it, sees the reason.
        self.0.is_asked.store(true, Ordering::Release);
    }

    /// The files that were completed since the last call, and those that failed.
    pub fn take_saved(&self) -> Vec<Result<Saved, SaveError>> {
        std::mem::take(&mut lock(&self.0.saved))
    }
}

impl Ring {
    /// Opens the ring in this folder, or makes one. Messages that an earlier recorder has left there
    /// are in it.
    ///
    /// # Errors
    /// Those of the file system, and if another recorder writes it.
    pub fn open(folder: impl AsRef<Path>, options: RingOptions) -> Result<Ring, RingError> {
        let folder = folder.as_ref();
        let mut segments = Segments::open(folder)?;
        let bytes_max = bytes_max(&segments, &options);
        segments.remove_old(options.keep, bytes_max);
        let current = begin(&mut segments, &options, bytes_max);
        let current = current.map_err(|error| RingError::Io { path: folder.to_owned(), error })?;
        Ok(Ring {
            options,
            bytes_max,
            segments,
            topics: Vec::new(),
            current,
            triggers: Vec::new(),
            shared: Arc::default(),
            saving: None,
            threads: Vec::new(),
            lost: Vec::new(),
            bytes: 0,
            removed: 0,
            is_temporary: false,
        })
    }

    /// Writes out what recorders have left in this folder, and removes it: after one was killed.
    ///
    /// # Errors
    /// Those of [`open`](Ring::open), and if the file cannot be written.
    pub fn salvage(
        folder: impl AsRef<Path>,
        saves: &Path,
        options: &Options,
    ) -> Result<Option<Saved>, SalvageError> {
        let mut segments = Segments::open(folder.as_ref())?;
        let parts = segments.iter().map(|it| Part::new(&it.path, it.bytes, 0));
        let parts: Vec<_> = parts.collect::<Result<_, _>>().map_err(OpenError::Io)?;
        if parts.is_empty() {
            segments.remove_all();
            return Ok(None);
        }
        let reasons = Mutex::new(vec!["the recorder has ended".to_owned()]);
        // Nothing comes after.
        let (_, after) = channel();
        let saved = save(saves, options, parts, &after, &reasons)?;
        // A disk that is full has not all of it.
        if saved.written.lost.is_empty() {
            segments.remove_all();
        }
        Ok(Some(saved))
    }

    /// Removes the ring when it is dropped. Otherwise what is in it stays, for the next recorder.
    pub fn remove_at_end(&mut self) {
        self.is_temporary = true;
    }

    /// Adds a trigger.
    pub fn add_trigger(&mut self, trigger: Trigger) {
        self.triggers.push(trigger);
    }

    /// For triggers from elsewhere.
    pub fn handle(&self) -> RingHandle {
        RingHandle(Arc::clone(&self.shared))
    }

    /// Begins a file, or makes the one longer that is being written.
    fn save(&mut self, reason: String) {
        let until = Instant::now() + self.options.after;
        if let Some(saving) = &mut self.saving {
            saving.until = until;
            lock(&saving.reasons).push(reason);
            return;
        }
        // What is not flushed is lost with a failed disk; the rest is saved.
        let _ = self.current.output.flush();
        let mut before = Vec::new();
        for segment in self.segments.iter() {
            let skipped = if before.is_empty() { 0 } else { segment.repeated };
            before.extend(Part::new(&segment.path, segment.bytes, skipped));
        }
        let skipped = if before.is_empty() { 0 } else { self.current.repeated };
        before.extend(self.current.part(skipped));
        let (parts, after) = channel();
        let reasons = Arc::new(Mutex::new(vec![reason]));
        let (path, options) = (self.options.saves.clone(), self.options.saved.clone());
        let (shared, known) = (Arc::clone(&self.shared), Arc::clone(&reasons));
        self.threads.retain(|thread| !thread.is_finished());
        self.threads.push(std::thread::spawn(move || {
            // Recording goes first.
            let _ = rustix::process::nice(SAVER_NICE);
            let saved = save(&path, &options, before, &after, &known);
            lock(&shared.saved).push(saved);
        }));
        let messages = self.current.messages;
        self.saving = Some(Saving { parts, until, messages, reasons });
    }

    /// Gives the file what is new in the current segment.
    fn save_current(&mut self) {
        let Some(saving) = &mut self.saving else { return };
        let skipped = saving.messages.max(self.current.repeated);
        if self.current.messages > skipped
            && let Ok(part) = self.current.part(skipped)
        {
            // If the file has failed, nobody takes it.
            let _ = saving.parts.send(part);
            saving.messages = self.current.messages;
        }
    }

    /// After a write that failed for want of space the segment is complete. The next one gets the
    /// space of the oldest one.
    fn survive(&mut self, written: Result<(), WriteError>) -> Result<(), WriteError> {
        let Err(error) = written else { return Ok(()) };
        let has_ended = matches!(error, WriteError::Ended) && self.current.has_failed;
        if !matches!(error, WriteError::Full(_)) && !has_ended {
            return Err(error);
        }
        let was_known = std::mem::replace(&mut self.current.has_failed, true);
        if !was_known && !self.segments.remove_oldest() {
            return Err(error);
        }
        self.removed += u64::from(!was_known);
        Err(WriteError::RingFull)
    }

    /// Removes what is not needed, so that so many bytes have room.
    fn make_room(&mut self, bytes: u64) {
        let current = self.current.output.bytes() + bytes;
        let complete_max = self.bytes_max.saturating_sub(current);
        self.removed += self.segments.remove_old(self.options.keep, complete_max);
    }
}

impl Current {
    /// What is in the file, without so many messages.
    fn part(&self, skipped: u64) -> std::io::Result<Part> {
        Part::new(&self.path, self.path.metadata()?.len(), skipped)
    }
}

impl Output for Ring {
    fn add_topic(&mut self, topic: &RecordedTopic) -> Result<(), WriteError> {
        self.topics.push(topic.clone());
        self.lost.push(0);
        self.current.output.add_topic(topic)
    }

    fn write(&mut self, message: &Message<'_>) -> Result<(), WriteError> {
        let bytes = message.data.iter().map(|part| part.len() as u64).sum();
        self.make_room(bytes);
        self.current.begin.get_or_insert_with(Instant::now);
        let written = self.current.output.write(message);
        let written = self.survive(written);
        self.current.messages += u64::from(written.is_ok());
        self.current.repeated += u64::from(written.is_ok() && message.is_repeated);
        if !message.is_repeated {
            let topic = &self.topics[message.topic];
            let fired = self
                .triggers
                .iter_mut()
                .filter_map(|it| it.see(topic, message).then(|| it.reason().to_owned()));
            for reason in fired.collect::<Vec<_>>() {
                self.save(reason);
            }
        }
        written
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        let flushed = self.current.output.flush();
        self.survive(flushed)
    }

    fn advance(&mut self) -> Result<(), WriteError> {
        let advanced = self.current.output.advance();
        self.survive(advanced)
    }

    fn write_records(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        let written = self.current.output.write_records(records);
        self.survive(written)
    }

    fn has_parts(&self) -> bool {
        true
    }

    fn is_part_due(&mut self, _log_ns: u64, bytes: u64) -> bool {
        let part = |of: u64| of / u64::from(SEGMENTS);
        let is_long =
            self.current.begin.is_some_and(|it| it.elapsed() > self.options.keep / SEGMENTS);
        let is_large = self.current.output.bytes() + bytes > part(self.bytes_max);
        self.current.messages > self.current.repeated && (is_long || is_large)
            || self.current.has_failed
    }

    fn begin_part(&mut self) -> Result<(), WriteError> {
        self.bytes_max = bytes_max(&self.segments, &self.options);
        self.make_room(0);
        self.current = begin(&mut self.segments, &self.options, self.bytes_max)?;
        for topic in &self.topics {
            let _ = self.current.output.add_topic(topic);
        }
        Ok(())
    }

    fn finish(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        let finished = self.current.output.finish(records);
        let finished = self.survive(finished);
        self.save_current();
        if let Some(saving) = &mut self.saving {
            saving.messages = 0;
        }
        for (sum, lost) in self.lost.iter_mut().zip(self.current.output.lost()) {
            *sum += lost;
        }
        let bytes = self.current.output.bytes();
        self.bytes += bytes;
        let Current { path, repeated, .. } = &self.current;
        let (path, repeated) = (path.clone(), *repeated);
        self.segments.push(Segment { path, bytes, repeated, end: Instant::now() });
        finished
    }

    fn lost(&self) -> Vec<u64> {
        let current = self.current.output.lost();
        self.lost.iter().zip(current).map(|(before, now)| before + now).collect()
    }

    fn check(&mut self) -> Option<String> {
        let fired =
            self.triggers.iter_mut().filter_map(|it| it.look().then(|| it.reason().to_owned()));
        let mut reasons: Vec<_> = fired.collect();
        // ORDER: Acquire, with the store in `RingHandle::trigger`.
        if self.shared.is_asked.swap(false, Ordering::Acquire) {
            reasons.append(&mut lock(&self.shared.asked));
        }
        for reason in reasons {
            self.save(reason);
        }
        if self.saving.as_ref().is_some_and(|saving| saving.until <= Instant::now()) {
            let _ = self.current.output.flush();
            self.save_current();
            // The thread ends when nothing more comes.
            self.saving = None;
        }
        self.make_room(0);
        None
    }

    fn progress(&self) -> Progress {
        let mut progress = Progress::default();
        let complete = self.segments.iter().map(|segment| &segment.path);
        progress.files = complete.chain([&self.current.path]).cloned().collect();
        progress.bytes = self.bytes + self.current.output.bytes();
        progress.removed = self.removed;
        progress
    }
}

/// Waits for files that are being written out. They end with what was recorded.
impl Drop for Ring {
    fn drop(&mut self) {
        self.saving = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if self.is_temporary {
            let _ = std::fs::remove_file(&self.current.path);
            self.segments.remove_all();
        }
    }
}

/// Nine tenths of what is free, without the ring, or what the user has set.
fn bytes_max(segments: &Segments, options: &RingOptions) -> u64 {
    options.bytes_max.min(segments.space().unwrap_or(u64::MAX) / 10 * 9)
}

fn begin(
    segments: &mut Segments,
    options: &RingOptions,
    bytes_max: u64,
) -> std::io::Result<Current> {
    let (file, path) = segments.create()?;
    let mut writer = options.writer.clone();
    // A step may not be a large part of the ring.
    writer.reserve_bytes = writer.reserve_bytes.min(bytes_max / u64::from(SEGMENTS) / 4);
    let output = OneFile::new(file, writer);
    Ok(Current { output, path, begin: None, messages: 0, repeated: 0, has_failed: false })
}

/// Writes out, to a file that has the next free number.
fn save(
    saves: &Path,
    options: &Options,
    before: Vec<Part>,
    after: &Receiver<Part>,
    reasons: &Mutex<Vec<String>>,
) -> Result<Saved, SaveError> {
    let mut number = 0;
    let (path, saver) = loop {
        let path = numbered(saves, number);
        match Saver::create(&path, options.clone(), &before) {
            Err(SaveError::Write { error: WriteError::Io(error), .. })
                if error.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                number += 1;
            }
            saver => break (path, saver?),
        }
    };
    let written = saver.run(&path, before, after, reasons)?;
    let reasons = lock(reasons).clone();
    Ok(Saved { path, reasons, written })
}

fn numbered(path: &Path, number: u32) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("mcap".into(), |it| it.to_string_lossy());
    path.with_file_name(format!("{stem}_{number:04}.{extension}"))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A ring of so many bytes or of so long a time has at least so many segments.
const SEGMENTS: u32 = 8;
/// What a thread that writes out adds to its process's.
const SAVER_NICE: i32 = 10;
