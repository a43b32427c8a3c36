//! Publishers in processes of their own, storages of the tests' own, and what is in a file.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IoSlice, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use myelin::Node;
use myelin_bag::recorder::{Recorder, Status};
use myelin_bag::{Channel, Item, MessageHead, Scanner, Storage};

/// A node of this test.
pub fn node(folder: &Path) -> Node {
    Node::builder("test").runtime_dir(folder).open().expect("a node")
}

/// A process that publishes on topics of bytes.
pub struct Publisher {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Publisher {
    /// Publishes on a topic with this depth.
    pub fn start(folder: &Path, topic: &str, depth: u32) -> Publisher {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "support::publisher_process", "--ignored", "--nocapture"]);
        command.env(PUBLISHER, format!("{} {topic} {depth}", folder.display()));
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("this program runs");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut publisher = Publisher { child, input, output };
        publisher.answer("ready");
        publisher
    }

    /// Publishes so many samples of so many bytes, as fast as it can.
    pub fn publish(&mut self, count: u64, bytes: usize) {
        writeln!(self.input, "{count} {bytes}").expect("it runs");
        self.answer("published");
    }

    /// Waits until it is matched with so many subscribers.
    pub fn wait_for_match(&mut self, subscribers: usize) {
        writeln!(self.input, "match {subscribers}").expect("it runs");
        self.answer("matched");
    }

    fn answer(&mut self, expected: &str) {
        let mut line = String::new();
        while line.trim() != expected {
            line.clear();
            assert!(self.output.read_line(&mut line).expect("it runs") > 0, "it has ended");
        }
    }
}

impl Drop for Publisher {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[ignore = "a process of other tests"]
fn publisher_process() {
    let Ok(options) = std::env::var(PUBLISHER) else { return };
    let words: Vec<&str> = options.split(' ').collect();
    let node = Node::builder("talker").runtime_dir(words[0]).open().unwrap();
    let topic = node.topic::<[u8]>(words[1]).depth(words[2].parse().unwrap());
    let publisher = topic.publisher().unwrap();
    println!("\nready");
    let mut number = 0_u64;
    for line in io::stdin().lines() {
        let line = line.unwrap();
        let (first, second) = line.split_once(' ').unwrap();
        if first == "match" {
            publisher.wait_for_match(second.parse().unwrap(), Duration::MAX);
            println!("\nmatched");
            continue;
        }
        let mut sample = vec![0; second.parse().unwrap()];
        for _ in 0..first.parse::<u64>().unwrap() {
            sample[..8].copy_from_slice(&number.to_le_bytes());
            publisher.publish_copy(&sample).unwrap();
            number += 1;
        }
        println!("\npublished");
    }
}

const PUBLISHER: &str = "MYELIN_TEST_PUBLISHER";

/// A storage in memory that writes only while its gate is open, and only so many bytes.
#[derive(Clone)]
pub struct Disk(Arc<(Mutex<DiskState>, Condvar)>);

pub struct DiskState {
    pub bytes: Vec<u8>,
    pub space: usize,
    pub is_open: bool,
    /// Whether somebody waits at the gate.
    pub is_waiting: bool,
}

impl Disk {
    pub fn new(space: usize, is_open: bool) -> Disk {
        let state = DiskState { bytes: Vec::new(), space, is_open, is_waiting: false };
        Disk(Arc::new((Mutex::new(state), Condvar::new())))
    }

    pub fn open(&self) {
        self.0.0.lock().unwrap().is_open = true;
        self.0.1.notify_all();
    }

    pub fn close(&self) {
        self.0.0.lock().unwrap().is_open = false;
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().bytes.clone()
    }

    pub fn is_waiting(&self) -> bool {
        self.0.0.lock().unwrap().is_waiting
    }
}

impl Storage for Disk {
    fn reserve(&mut self, _from: u64, end: u64) -> io::Result<()> {
        match end as usize > self.0.0.lock().unwrap().space {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn write_at(&mut self, parts: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        let mut state = self.0.0.lock().unwrap();
        while !state.is_open {
            state.is_waiting = true;
            state = self.0.1.wait(state).unwrap();
        }
        state.bytes.truncate(at as usize);
        let before = state.bytes.len();
        parts.iter().for_each(|part| state.bytes.extend_from_slice(part));
        Ok(state.bytes.len() - before)
    }

    fn truncate(&mut self, end: u64) -> io::Result<()> {
        self.0.0.lock().unwrap().bytes.truncate(end as usize);
        Ok(())
    }
}

/// What is in a file.
pub struct Content {
    pub channels: BTreeMap<u16, Channel>,
    pub messages: Vec<(MessageHead, Vec<u8>)>,
    pub is_complete: bool,
    pub profile: String,
    pub metadata: BTreeMap<String, BTreeMap<String, String>>,
}

impl Content {
    pub fn read(source: impl myelin_bag::Source) -> Content {
        let mut scanner = Scanner::new(source).expect("a file of MCAP");
        let (mut messages, mut metadata) = (Vec::new(), BTreeMap::new());
        while let Some(item) = scanner.next().expect("it can be read") {
            match item {
                Item::Message { head, data, .. } => messages.push((head, data.to_vec())),
                Item::Metadata { name, values } => _ = metadata.insert(name, values),
                _ => {}
            }
        }
        let channels = scanner.definitions().channels.clone();
        let is_complete = scanner.report().is_complete && scanner.report().is_lossless();
        let profile = scanner.profile().to_owned();
        Content { channels, messages, is_complete, profile, metadata }
    }

    pub fn of(path: &Path) -> Content {
        Content::read(File::open(path).expect("the file is there"))
    }

    /// The messages of a topic.
    pub fn of_topic(&self, topic: &str) -> Vec<&(MessageHead, Vec<u8>)> {
        let is_its = |it: &&(MessageHead, _)| self.channels[&it.0.channel].topic == topic;
        self.messages.iter().filter(is_its).collect()
    }
}

/// Waits under a watchdog.
pub fn wait_until(recorder: &Recorder, what: &str, condition: impl Fn(&Status) -> bool) {
    let begin = Instant::now();
    while !condition(&recorder.status()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{what}: {:?}", recorder.status());
        std::thread::sleep(Duration::from_millis(1));
    }
}
