//! A node of the test, and recordings.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use myelin::{Node, Subscriber};
use myelin_bag::{Channel, MessageHead, Metadata, Options, Schema, TopicFormat, Writer};
use tempfile::TempDir;

/// Two nodes: one for the player, one for subscribers; and a folder for files.
pub struct Robot {
    pub folder: TempDir,
    pub player: Node,
    pub node: Node,
}

impl Robot {
    pub fn new() -> Robot {
        let folder = tempfile::tempdir().unwrap();
        let open = |name| {
            let builder = Node::builder(name).runtime_dir(folder.path());
            builder.match_limit(WATCHDOG).open().unwrap()
        };
        let (player, node) = (open("player"), open("robot"));
        Robot { folder, player, node }
    }

    /// A file that is to be written.
    pub fn file(&self, name: &str) -> File {
        let path = self.folder.path().join(name);
        let writer = Writer::create(&path, Options::default()).unwrap();
        File { path, writer, sequence: 0 }
    }
}

pub struct File {
    path: PathBuf,
    pub writer: Writer,
    sequence: u32,
}

/// A topic of a file.
pub struct Topic {
    pub id: u16,
    format: TopicFormat,
}

impl File {
    pub fn topic(&mut self, name: &str, schema: &Schema<'_>, qos: Option<&str>) -> Topic {
        let format = TopicFormat::new(schema);
        let id = self.writer.add_schema(&format.schema().as_schema()).unwrap();
        let mut channel: Channel = format.channel(name, id);
        if let Some(qos) = qos {
            let metadata: Metadata = [("offered_qos_profiles".to_owned(), qos.to_owned())].into();
            channel.metadata.extend(metadata);
        }
        Topic { id: self.writer.add_channel(&channel).unwrap(), format }
    }

    /// Writes a sample that was published at this time, and recorded a little later.
    pub fn write(&mut self, topic: &Topic, publish_ns: u64, sample: &[u8]) {
        self.sequence += 1;
        let log_ns = publish_ns + 500;
        let head = MessageHead { channel: topic.id, sequence: self.sequence, log_ns, publish_ns };
        self.writer.write(&head, &topic.format.message(sample, &mut Vec::new())).unwrap();
    }

    pub fn finish(self) -> PathBuf {
        self.writer.finish().unwrap();
        self.path
    }
}

/// Of numbers, one each ms from 1 s on.
pub fn numbers(robot: &Robot, name: &str, count: u64) -> PathBuf {
    let mut file = robot.file(name);
    let topic = file.topic("number", &Schema::layout("u64"), None);
    for number in 0..count {
        file.write(&topic, SECOND + number * MS, &number.to_ne_bytes());
    }
    file.finish()
}

/// A subscriber that loses nothing: its samples come as bytes.
pub fn collect<T: myelin::Payload + ?Sized + 'static>(
    topic: &myelin::Topic<T>,
) -> (myelin::Callback, Receiver<Vec<u8>>) {
    let subscriber: Subscriber<T> = topic.clone().depth(256).subscriber().unwrap();
    let (to, from) = channel();
    let callback = subscriber.on_sample(move |sample| to.send(sample.as_bytes().to_vec()).unwrap());
    (callback.unwrap(), from)
}

/// The next so many samples.
pub fn next(from: &Receiver<Vec<u8>>, count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|_| from.recv_timeout(WATCHDOG).expect("a sample")).collect()
}

pub fn next_numbers(from: &Receiver<Vec<u8>>, count: usize) -> Vec<u64> {
    let number = |bytes: Vec<u8>| u64::from_ne_bytes(bytes.try_into().unwrap());
    next(from, count).into_iter().map(number).collect()
}

/// Waits under a watchdog.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = std::time::Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < WATCHDOG, "waited for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub fn cut(path: &Path, keep: impl FnOnce(u64) -> u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(keep(file.metadata().unwrap().len())).unwrap();
}

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;
pub const WATCHDOG: Duration = Duration::from_secs(60);
