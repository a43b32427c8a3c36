//! An output to files: one, or several that are split by size and by time.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::output::{Message, OneFile, Output, Progress, RecordedTopic};
use crate::error::WriteError;
use crate::format::Metadata;
use crate::writer::Options;

/// How a recording is split, and how much space it leaves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FileOptions {
    /// How each file is written.
    pub writer: Options,
    /// A file that has so many bytes is followed by another one.
    pub split_bytes: Option<u64>,
    /// A file with messages of so long a time is followed by another one.
    pub split_time: Option<Duration>,
    /// So many bytes of the disk stay free: the recording ends before.
    pub keep_free_bytes: Option<u64>,
    /// Instead, the oldest of its own complete files are removed.
    pub delete_oldest: bool,
}

/// An output to files.
///
/// Split files have the number of the part in their names: `run_0000.mcap`, `run_0001.mcap`.
pub struct Files {
    path: PathBuf,
    options: FileOptions,
    topics: Vec<RecordedTopic>,
    current: OneFile<File>,
    current_path: PathBuf,
    /// The log time of its first message.
    begin_ns: Option<u64>,
    index: u32,
    complete: VecDeque<PathBuf>,
    /// Of complete files.
    complete_bytes: u64,
    complete_lost: Vec<u64>,
    removed: u64,
    free_bytes: Option<u64>,
    /// When the space was looked at last: at this number of bytes.
    checked_bytes: u64,
}

impl Files {
    /// Creates the first file. None of this name may exist.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: impl Into<PathBuf>, options: FileOptions) -> Result<Files, WriteError> {
        let path = path.into();
        let current_path = part_path(&path, 0, options.is_split());
        let current = create(&current_path, &options)?;
        let mut files = Files {
            path,
            topics: Vec::new(),
            current,
            current_path,
            begin_ns: None,
            index: 0,
            complete: VecDeque::new(),
            complete_bytes: 0,
            complete_lost: Vec::new(),
            removed: 0,
            free_bytes: None,
            checked_bytes: 0,
            options,
        };
        files.look_at_disk();
        Ok(files)
    }

    fn look_at_disk(&mut self) {
        self.checked_bytes = self.complete_bytes + self.current.bytes();
        let folder = self.path.parent().filter(|it| !it.as_os_str().is_empty());
        let disk = rustix::fs::statvfs(folder.unwrap_or(Path::new("."))).ok();
        self.free_bytes = disk.map(|it| it.f_bavail.saturating_mul(it.f_frsize));
    }
}

impl FileOptions {
    /// Whether there may be several files.
    pub fn is_split(&self) -> bool {
        self.split_bytes.is_some() || self.split_time.is_some()
    }
}

impl Output for Files {
    fn add_topic(&mut self, topic: &RecordedTopic) -> Result<(), WriteError> {
        self.topics.push(topic.clone());
        self.complete_lost.push(0);
        self.current.add_topic(topic)
    }

    fn write(&mut self, message: &Message<'_>) -> Result<(), WriteError> {
        self.begin_ns.get_or_insert(message.log_ns);
        self.current.write(message)
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        self.current.flush()
    }

    fn advance(&mut self) -> Result<(), WriteError> {
        self.current.advance()
    }

    fn write_records(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        self.current.write_records(records)
    }

    fn has_parts(&self) -> bool {
        self.options.is_split()
    }

    fn is_part_due(&mut self, log_ns: u64, bytes: u64) -> bool {
        if !self.current.has_messages() {
            return false;
        }
        let FileOptions { split_bytes, split_time, .. } = &self.options;
        let is_full = split_bytes.is_some_and(|max| self.current.bytes() + bytes > max);
        let since = Duration::from_nanos(log_ns.saturating_sub(self.begin_ns.unwrap_or(log_ns)));
        is_full || split_time.is_some_and(|max| since >= max)
    }

    fn begin_part(&mut self) -> Result<(), WriteError> {
        let path = part_path(&self.path, self.index + 1, true);
        let mut next = create(&path, &self.options)?;
        for topic in &self.topics {
            let _ = next.add_topic(topic);
        }
        for (sum, lost) in self.complete_lost.iter_mut().zip(self.current.lost()) {
            *sum += lost;
        }
        self.complete_bytes += self.current.bytes();
        self.complete.push_back(std::mem::replace(&mut self.current_path, path));
        (self.current, self.begin_ns, self.index) = (next, None, self.index + 1);
        Ok(())
    }

    fn finish(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        self.current.finish(records)
    }

    fn lost(&self) -> Vec<u64> {
        let current = self.current.lost();
        self.complete_lost.iter().zip(current).map(|(before, now)| before + now).collect()
    }

    fn check(&mut self) -> Option<String> {
        self.look_at_disk();
        let keep = self.options.keep_free_bytes?;
        while self.free_bytes? < keep && self.options.delete_oldest {
            let Some(oldest) = self.complete.pop_front() else { break };
            // One that cannot be removed frees nothing, and the next one may.
            self.removed += u64::from(std::fs::remove_file(&oldest).is_ok());
            self.look_at_disk();
        }
        let free = self.free_bytes?;
        let [free_gb, keep_gb] = [free, keep].map(|bytes| bytes as f64 / 1e9);
        let why = || {
            format!("{free_gb:.1} GB are free on the disk, and {keep_gb:.1} GB are to stay free")
        };
        (free < keep).then(why)
    }

    fn progress(&self) -> Progress {
        let files = self.complete.iter().chain([&self.current_path]).cloned().collect();
        Progress {
            files,
            bytes: self.complete_bytes + self.current.bytes(),
            removed: self.removed,
            free_bytes: self.free_bytes,
        }
    }
}

fn create(path: &Path, options: &FileOptions) -> Result<OneFile<File>, WriteError> {
    let file = File::options().write(true).create_new(true).open(path)?;
    Ok(OneFile::new(file, options.writer.clone()))
}

/// The path of a file of a recording.
fn part_path(path: &Path, index: u32, is_split: bool) -> PathBuf {
    if !is_split {
        return path.to_owned();
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map_or("mcap".into(), |it| it.to_string_lossy());
    path.with_file_name(format!("{stem}_{index:04}.{extension}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::losses;

    #[test]
    fn the_oldest_files_are_removed_before_the_recording_ends() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = FileOptions::default();
        (options.split_bytes, options.delete_oldest) = (Some(1_000), true);
        let mut files = Files::create(folder.path().join("run.mcap"), options).unwrap();
        files.add_topic(&losses::topic()).unwrap();
        for number in 0..5 {
            let data: &[&[u8]] = &[&[7; 600]];
            let (sequence, log_ns, publish_ns) = (number, number.into(), number.into());
            if files.is_part_due(log_ns, 600) {
                files.finish(&[]).unwrap();
                files.begin_part().unwrap();
            }
            let (topic, is_repeated) = (0, false);
            let message = Message { topic, sequence, log_ns, publish_ns, is_repeated, data };
            files.write(&message).unwrap();
        }
        let names = || {
            let mut names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
            names.sort_by_key(|it| it.as_ref().unwrap().file_name());
            names.into_iter().map(|it| it.unwrap().path()).collect::<Vec<_>>()
        };
        assert_eq!(files.check(), None, "nothing is to stay free");
        assert_eq!((names().len(), files.progress().files), (5, names()));
        files.options.keep_free_bytes = Some(u64::MAX);
        assert!(files.check().unwrap().contains("to stay free"));
        assert_eq!((files.progress().removed, files.progress().files), (4, names()));
        assert_eq!(names(), [folder.path().join("run_0004.mcap")]);
        files.finish(&[]).unwrap();
    }
}
