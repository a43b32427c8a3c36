//! Messages to record, a disk in memory, and what reads a file.

#[path = "../../../myelin/tests/support/cache.rs"]
mod cache;

use std::io::{self, BufRead, BufReader, IoSlice, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use self::cache::cache;
use myelin_bag::{Channel, Item, MessageHead, Options, Report, Scanner, Schema, Storage, Writer};

/// A message: all but its data, and the data in two parts.
pub type Message = (MessageHead, Vec<u8>, Vec<u8>);

/// Messages of four channels: three of small ones, and one that is larger than [`options`] copies.
pub fn messages(count: u32) -> Vec<Message> {
    let message = |number: u32| {
        let channel = if number % 10 == 9 { 4 } else { number % 3 + 1 };
        let bytes = if channel == 4 { 300 } else { number as usize % 7 };
        let log_ns = u64::from(number) * 1_000 + 1_700_000_000_000_000_000;
        let head = MessageHead {
            channel: channel as u16,
            sequence: number,
            log_ns,
            publish_ns: log_ns - 5,
        };
        (head, vec![0, 1, 0, 0], vec![number as u8; bytes])
    };
    (0..count).map(message).collect()
}

/// Small chunks, so that small files have several.
pub fn options() -> Options {
    let mut options = Options::default();
    options.chunk_bytes = 600;
    options.small_bytes_max = 200;
    options.end_bytes = 0;
    options.reserve_bytes = 64;
    options
}

/// Adds the channels of [`messages`].
pub fn add_channels<S: Storage>(writer: &mut Writer<S>) {
    let text = "uint8[3] pixels\n";
    for number in 1..=4 {
        let name = format!("robot/msg/Part{number}");
        let schema = Schema::new("ros2msg", &name, text);
        let schema = writer.add_schema(&schema).expect("a file has space for these");
        let channel = Channel {
            schema,
            topic: format!("/part/{number}"),
            encoding: "cdr".into(),
            metadata: [("unit".to_owned(), "m".to_owned())].into(),
        };
        let id = writer.add_channel(&channel).expect("a file has space for these");
        assert_eq!(id, number);
    }
}

/// A file in memory, with all of the messages.
pub fn file(options: Options, messages: &[Message]) -> Vec<u8> {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options).expect("a disk of endless space");
    add_channels(&mut writer);
    for (head, first, second) in messages {
        writer.write(head, &[first, second]).expect("a disk of endless space");
    }
    let written = writer.finish().expect("a disk of endless space");
    let bytes = disk.bytes();
    assert_eq!(written.bytes, bytes.len() as u64);
    assert_eq!(written.statistics.messages, messages.len() as u64);
    bytes
}

/// What the scanner reads.
pub fn read(bytes: &[u8]) -> (Vec<(MessageHead, Vec<u8>)>, Report) {
    let mut scanner = Scanner::new(bytes).expect("a file of MCAP");
    let mut messages = Vec::new();
    while let Some(item) = scanner.next().expect("memory can be read") {
        if let Item::Message { head, data, .. } = item {
            messages.push((head, data.to_vec()));
        }
    }
    (messages, scanner.report().clone())
}

/// What the scanner should read.
pub fn joined(messages: &[Message]) -> Vec<(MessageHead, Vec<u8>)> {
    let joined = |(head, first, second): &Message| (*head, [&first[..], &second[..]].concat());
    messages.iter().map(joined).collect()
}

/// Messages as `read.py` and `read.mjs` print them.
pub fn as_lines(messages: &[(MessageHead, Vec<u8>)]) -> String {
    let line = |(head, data): &(MessageHead, Vec<u8>)| {
        let hex: String = data.iter().map(|byte| format!("{byte:02x}")).collect();
        let MessageHead { channel, sequence, log_ns, publish_ns } = head;
        format!("/part/{channel} {sequence} {log_ns} {publish_ns} {hex}\n")
    };
    messages.iter().map(line).collect()
}

/// A disk of a limited size. It writes little at once, as a kernel may.
#[derive(Clone)]
pub struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    size: usize,
    pub can_reserve: bool,
}

impl Disk {
    pub fn new(size: usize) -> Disk {
        Disk { bytes: Arc::default(), size, can_reserve: true }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.lock().expect("no test panics with it").clone()
    }
}

impl Storage for Disk {
    fn reserve(&mut self, _: u64, end: u64) -> io::Result<()> {
        if self.can_reserve && end > self.size as u64 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    fn write_at(&mut self, parts: &[IoSlice<'_>], at: u64) -> io::Result<usize> {
        let mut bytes = self.bytes.lock().expect("no test panics with it");
        assert_eq!(at, bytes.len() as u64, "it is written in order");
        let left = self.size - bytes.len();
        if left == 0 {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let all = parts.iter().flat_map(|part| part.iter().copied());
        let before = bytes.len();
        bytes.extend(all.take(left.min(97)));
        let written = bytes.len() - before;
        Ok(written)
    }

    fn truncate(&mut self, end: u64) -> io::Result<()> {
        self.bytes.lock().expect("no test panics with it").truncate(end as usize);
        Ok(())
    }
}

/// A script of this folder for the Python of the tests' own environment, which `scripts/setup test`
/// makes; `None`, with a message, without it.
pub fn python(script: &str) -> Option<Command> {
    let cache = cache()?;
    let list = std::fs::read_to_string(cache.join("venv/requirements-test.txt"));
    if !list.is_ok_and(|list| list.contains("mcap")) {
        let text = "the Python packages are missing: run `scripts/setup test`";
        assert!(std::env::var_os("CI").is_none(), "{text}");
        println!("skipped: {text}");
        return None;
    }
    let mut command = Command::new(cache.join("venv/bin/python"));
    command.arg(script_path(script));
    Some(command)
}

/// Likewise for Node.js, with Foxglove's packages of npm.
pub fn node(script: &str) -> Option<Command> {
    let folder = cache()?.join("npm");
    if !folder.join("requirements-npm.txt").exists() {
        println!("left out: Foxglove's readers: no packages of npm: run `scripts/setup test`");
        return None;
    }
    let mut command = Command::new("node");
    command.arg(script_path(script)).env("MYELIN_NPM", folder);
    Some(command)
}

fn script_path(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bag").join(script)
}

/// A reader of others that reads file after file.
pub struct OtherReader {
    pub name: &'static str,
    process: Child,
    paths: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl OtherReader {
    /// Those that are installed: `mcap` of Python, and `@mcap/core`.
    pub fn all() -> Vec<OtherReader> {
        let of = |name, command: Option<Command>| {
            let mut command = command?;
            command.arg("serve").stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut process = command.spawn().expect("it can be started");
            let paths = process.stdin.take().expect("a pipe");
            let lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
            Some(OtherReader { name, process, paths, lines })
        };
        let all = [of("Python", python("read.py")), of("@mcap/core", node("read.mjs"))];
        all.into_iter().flatten().collect()
    }

    /// The messages of a file, as [`as_lines`] has them, and whether it is complete.
    pub fn read(&mut self, path: &Path) -> (String, bool) {
        writeln!(self.paths, "{}", path.display()).expect("it reads");
        let mut messages = String::new();
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("{}: it failed", self.name));
            let line = line.expect("text");
            match line.strip_prefix("= ") {
                Some(end) => return (messages, end == "complete"),
                None => messages.push_str(&(line + "\n")),
            }
        }
    }
}

impl Drop for OtherReader {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What a program prints, if it succeeds.
pub fn output(command: &mut Command) -> String {
    let output = command.output().expect("it can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    String::from_utf8(output.stdout).expect("it prints text")
}
