//! Records topics while they run.
//!
//! | thread | does |
//! |---|---|
//! | `record-find` | finds topics, asks for their schemas, subscribes |
//! | `record-take` | takes samples by polling, and borrows them: [`taker`] |
//! | `record-write` | writes them to the [`Output`] from where they lie: [`writing`] |

mod buffer;
mod clock;
mod files;
mod follower;
pub(crate) mod losses;
mod output;
mod records;
mod ros_metadata;
mod selection;
mod status;
mod taker;
mod writing;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin::Node;

use crate::error::WriteError;

pub use files::{FileOptions, Files};
pub use output::{Message, OneFile, Output, Progress, RecordedTopic};
pub use status::{End, Status, TopicStatus};

use follower::Follower;
use selection::Selection;
use status::Shared;
use taker::Taker;
use writing::Writing;

/// Records topics, from the start until it is finished.
///
/// It takes part as a best-effort subscriber that polls: publishers neither wait for it nor wake it.
/// Samples go from shared memory into the file; large ones are not copied before. It knows exactly
/// what it has missed: [`Status::losses`].
///
/// ```
/// use myelin_bag::{Info, Recorder};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let recorder = Recorder::builder(&node).topic("camera/*").topic("imu").start_file(&path)?;
/// # let publisher = node.topic::<f64>("imu").publisher()?;
/// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
/// # publisher.publish_copy(&9.81)?;
/// // ... until there is enough:
/// let recorded = recorder.finish();
/// assert_eq!(recorded.status.losses.total(), 0);
/// // The message, and one with the losses of the topic.
/// let info = Info::read(std::fs::File::open(&path)?)?;
/// assert_eq!(info.statistics.messages, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Topics that come later are recorded too, from when they are found. If it is dropped, it finishes
/// the file as well.
pub struct Recorder {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    begin: Instant,
}

/// Settings of a [`Recorder`]. Patterns of names have `*` and `?`; a topic of ROS 2 is named as
/// there. Made by [`Recorder::builder`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `start`"]
pub struct RecorderBuilder {
    node: Node,
    selection: Selection,
    buffer_bytes: u64,
    messages_max: Option<u64>,
}

/// A recording that has ended.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// What is in it, and what is not.
    pub status: Status,
    /// Why it has ended.
    pub end: End,
    /// What the user should know.
    pub problems: Vec<String>,
}

/// A recording that cannot begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecorderError {
    /// The library refuses.
    #[error(transparent)]
    Library(#[from] myelin::Error),
    /// The file cannot be created.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A thread cannot be started.
    #[error("no thread can be started: {0}")]
    Thread(std::io::Error),
}

impl Recorder {
    /// Settings of a recorder of all topics of this node's domain. With a network, it also records
    /// those of other hosts.
    pub fn builder(node: &Node) -> RecorderBuilder {
        let (node, selection) = (node.clone(), Selection::default());
        RecorderBuilder { node, selection, buffer_bytes: BUFFER_BYTES, messages_max: None }
    }

    /// How it goes.
    pub fn status(&self) -> Status {
        self.shared.status(self.begin.elapsed())
    }

    /// What the user should know and has not got yet, a sentence each.
    pub fn problems(&self) -> Vec<String> {
        self.shared.take_problems()
    }

    /// Ends the recording. [`finish`](Recorder::finish) waits for the end.
    pub fn end(&self) {
        self.shared.end(End::Stopped);
        for thread in &self.threads {
            thread.thread().unpark();
        }
    }

    /// Whether the recording is ending, also by itself: [`End`].
    pub fn is_ending(&self) -> bool {
        self.shared.is_ending()
    }

    /// Whether all is written.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Ends it without writing what is in memory: samples that were taken count as lost by the
    /// recorder. The output is complete nevertheless.
    pub fn discard(&self) {
        self.shared.is_discarding.store(true, Ordering::Relaxed);
        self.end();
    }

    /// Ends it, takes what was published before, and waits until all is written.
    pub fn finish(mut self) -> Recorded {
        self.join();
        Recorded {
            status: self.status(),
            end: self.shared.why_ended().unwrap_or(End::Stopped),
            problems: self.problems(),
        }
    }

    fn join(&mut self) {
        self.end();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                self.shared.report("a thread of the recorder has failed".to_owned());
            }
        }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Recorder").field("is_ending", &self.is_ending()).finish_non_exhaustive()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.join();
    }
}

impl RecorderBuilder {
    /// Records the topics of this name or pattern. Without topics and [types](Self::of_type), all.
    pub fn topic(mut self, pattern: &str) -> Self {
        self.selection.topics.push(pattern.to_owned());
        self
    }

    /// Records the topics whose types have this name, or match this pattern, besides those of
    /// [`topic`](Self::topic).
    pub fn of_type(mut self, pattern: &str) -> Self {
        self.selection.types.push(pattern.to_owned());
        self
    }

    /// Leaves out topics, whatever else selects them.
    pub fn exclude(mut self, pattern: &str) -> Self {
        self.selection.exclude.push(pattern.to_owned());
        self
    }

    /// Whether it also records the topics of ROS 2's services. By default only those that a
    /// [`topic`](Self::topic) names in full.
    pub fn services(mut self, wanted: bool) -> Self {
        self.selection.services = wanted;
        self
    }

    /// Records at most so many messages a second of each of these topics. The others are
    /// [skipped](Status::skipped), and no loss.
    pub fn max_rate(mut self, pattern: &str, hz: f64) -> Self {
        self.selection.max_rate_hz.push((pattern.to_owned(), hz));
        self
    }

    /// The reliable publishers of these topics wait for the recorder, as they do for other reliable
    /// subscribers. By default nobody waits for it.
    pub fn reliable(mut self, pattern: &str) -> Self {
        self.selection.reliable.push(pattern.to_owned());
        self
    }

    /// How many bytes of samples may wait to be written, by default 256 MiB. They are in their
    /// publishers' memory, which grows by as much.
    pub fn buffer_bytes(mut self, bytes: u64) -> Self {
        self.buffer_bytes = bytes;
        self
    }

    /// Ends after so many messages, of all topics together.
    pub fn messages_max(mut self, messages: u64) -> Self {
        self.messages_max = Some(messages);
        self
    }

    /// Starts to record to a file, which must not exist.
    ///
    /// # Errors
    /// Those of the file system, and as for [`start`](Self::start).
    pub fn start_file(self, path: impl AsRef<Path>) -> Result<Recorder, RecorderError> {
        let files = Files::create(path.as_ref(), FileOptions::default())?;
        self.start(files)
    }

    /// Starts to record. On return it has subscribed to the topics that are there.
    ///
    /// # Errors
    /// Those of [`Node::graph`]; if no thread can be started.
    pub fn start<O: Output + 'static>(self, output: O) -> Result<Recorder, RecorderError> {
        let RecorderBuilder { node, selection, buffer_bytes, messages_max } = self;
        let shared = Arc::new(Shared::new(buffer_bytes));
        shared.add_topic(losses::topic());
        // A fresh node knows nobody yet.
        node.graph_within(FIRST_LOOK_LIMIT)?;
        let changes = node.graph_changes()?;
        let mut follower = Follower::new(node.clone(), selection, shared.clone());
        let sources = follower.follow()?;
        let (ask, asked) = mpsc::channel();
        let (send, found) = mpsc::channel();
        let taker = Taker::new(node, shared.clone(), sources, found, (ask, changes));
        let writing = Writing::new(output, shared.clone(), messages_max);
        let mut recorder = Recorder { shared, threads: Vec::new(), begin: Instant::now() };
        recorder.spawn("record-write", move || writing.run())?;
        recorder.spawn("record-find", move || follower.run(&asked, &send))?;
        recorder.spawn("record-take", move || taker.run())?;
        Ok(recorder)
    }
}

impl Recorder {
    fn spawn(
        &mut self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> Result<(), RecorderError> {
        let thread = std::thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(run).inspect_err(|_| self.shared.buffer.close());
        self.threads.push(thread.map_err(RecorderError::Thread)?);
        Ok(())
    }
}

/// What a disk that stalls for a moment needs.
const BUFFER_BYTES: u64 = 256 << 20;
const FIRST_LOOK_LIMIT: Duration = Duration::from_millis(500);
