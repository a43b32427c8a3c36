//! Rings without a recorder: what they keep, what is written out, and what a killed process leaves.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::*;
use crate::recorded_losses::RecordedLosses;
use crate::recorder::losses;
use crate::scanner::{Item, Scanner};

/// Writes as a recorder does: latched samples begin each segment.
struct Source {
    ring: Ring,
    number: u32,
    latched: Option<u32>,
    full: u32,
}

impl Source {
    fn new(folder: &Path, options: RingOptions) -> Source {
        let mut ring = Ring::open(folder, options).unwrap();
        ring.add_topic(&topic("/numbers")).unwrap();
        ring.add_topic(&topic("/latched")).unwrap();
        Source { ring, number: 0, latched: None, full: 0 }
    }

    fn write(&mut self) {
        if self.ring.is_part_due(0, BYTES as u64) {
            self.next_part();
        }
        let number = self.number;
        self.put(0, number, false);
        self.number += 1;
    }

    fn latch(&mut self, number: u32) {
        self.latched = Some(number);
        self.put(1, number, false);
    }

    fn next_part(&mut self) {
        match self.ring.finish(&[("node", [("name".to_owned(), "a".to_owned())].into())]) {
            Ok(()) | Err(WriteError::RingFull) => {}
            Err(error) => panic!("{error}"),
        }
        self.ring.begin_part().unwrap();
        if let Some(number) = self.latched {
            self.put(1, number, true);
        }
    }

    fn put(&mut self, topic: usize, sequence: u32, is_repeated: bool) {
        let (log_ns, publish_ns) = (now_ns(), sequence.into());
        let bytes = [sequence as u8; BYTES];
        let data: &[&[u8]] = &[&crate::CDR_HEADER, &bytes];
        let message = Message { topic, sequence, log_ns, publish_ns, is_repeated, data };
        match self.ring.write(&message) {
            Ok(()) => {}
            Err(WriteError::RingFull) => self.full += 1,
            Err(error) => panic!("{error}"),
        }
    }

    /// Until the next file is written out.
    fn saved(&mut self) -> Saved {
        let handle = self.ring.handle();
        let end = Instant::now() + WATCHDOG;
        loop {
            self.ring.check();
            if let Some(saved) = handle.take_saved().pop() {
                return saved.unwrap();
            }
            assert!(Instant::now() < end, "nothing is written out");
            self.write();
            std::thread::yield_now();
        }
    }
}

fn topic(name: &str) -> RecordedTopic {
    let mut topic = losses::topic();
    topic.name = name.to_owned();
    topic
}

fn options(folder: &Path) -> RingOptions {
    let mut options = RingOptions::new(Duration::from_secs(3600), folder.join("run.mcap"));
    options.bytes_max = 200_000;
    options.writer.chunk_bytes = 3_000;
    options
}

/// The numbers of a topic's messages, in the order of the file.
fn numbers(path: &Path, topic: &str) -> Vec<u32> {
    let mut scanner = Scanner::new(File::open(path).unwrap()).unwrap();
    let mut numbers = Vec::new();
    while let Some(item) = scanner.next().unwrap() {
        if let Item::Message { head, channel, data, .. } = item
            && channel.topic == topic
        {
            assert_eq!(data[4..], [head.sequence as u8; BYTES]);
            numbers.push(head.sequence);
        }
    }
    assert!(scanner.report().losses.len() <= 1, "{:?}", scanner.report());
    numbers
}

fn saved_numbers(saved: &Saved) -> Vec<u32> {
    assert!(crate::check(File::open(&saved.path).unwrap()).unwrap().findings.is_empty());
    let numbers = numbers(&saved.path, "/numbers");
    let first = numbers[0];
    assert!(numbers.iter().copied().eq(first..first + numbers.len() as u32), "{numbers:?}");
    numbers
}

fn folder_bytes(folder: &Path) -> u64 {
    let files = folder.read_dir().unwrap().map(|it| it.unwrap());
    files.filter(|it| it.path().is_file()).map(|it| it.metadata().unwrap().len()).sum()
}

#[test]
fn a_ring_has_the_newest_messages_and_no_more_bytes_than_it_may() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("ring");
    let mut source = Source::new(&ring, options(folder.path()));
    for _ in 0..2_000 {
        source.write();
        assert!(folder_bytes(&ring) <= 200_000, "{}", folder_bytes(&ring));
    }
    source.ring.handle().trigger("enough");
    let saved = source.saved();
    assert_eq!(saved.reasons, ["enough"]);
    let numbers = saved_numbers(&saved);
    assert_eq!(numbers.last(), Some(&1_999));
    assert!(numbers.len() as u64 * BYTES as u64 > 200_000 * 6 / 8, "{}", numbers.len());
    assert!(source.ring.progress().removed > 5);
}

#[test]
fn a_ring_has_at_least_so_long_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let ring = folder.path().join("ring");
    let mut options = options(folder.path());
    (options.keep, options.bytes_max) = (Duration::from_millis(40), 1 << 30);
    let mut source = Source::new(&ring, options);
    let mut written = Vec::new();
    while source.ring.progress().removed < 3 {
        written.push(Instant::now());
        source.write();
        source.ring.check();
        std::thread::sleep(Duration::from_micros(200));
    }
    let now = Instant::now();
    source.ring.handle().trigger("enough");
    let first = saved_numbers(&source.saved())[0] as usize;
    let kept = now - written[first];
    assert!(kept >= Duration::from_millis(40), "{kept:?}");
    assert!(first > 0, "older ones are removed");
}

#[test]
fn what_comes_after_a_trigger_is_written_out_too_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = options(folder.path());
    options.after = Duration::from_millis(20);
    let mut source = Source::new(&folder.path().join("ring"), options);
    source.latch(77);
    for _ in 0..300 {
        source.write();
    }
    let handle = source.ring.handle();
    handle.trigger("first");
    source.ring.check();
    let at_trigger = source.number;
    let begin = Instant::now();
    let mut in_time = 0;
    while begin.elapsed() < Duration::from_millis(15) {
        source.write();
        in_time = source.number;
        std::thread::sleep(Duration::from_micros(100));
    }
    handle.trigger("second");
    let saved = source.saved();
    assert_eq!(saved.reasons, ["first", "second"]);
    assert_eq!(saved.path, folder.path().join("run_0000.mcap"));
    let numbers = saved_numbers(&saved);
    assert!(*numbers.last().unwrap() + 1 >= in_time && in_time > at_trigger, "{in_time}");
    let latched = self::numbers(&saved.path, "/latched");
    assert_eq!(latched, [77], "once, though each segment begins with it");
    // The next one is another file; the ring goes on.
    source.ring.handle().trigger("third");
    assert_eq!(source.saved().path, folder.path().join("run_0001.mcap"));
}

#[test]
fn one_recorder_writes_a_ring() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ring");
    assert_eq!(recorder(&path), None);
    let ring = Ring::open(&path, options(folder.path())).unwrap();
    let refused = Ring::open(&path, options(folder.path())).err().unwrap();
    assert!(matches!(refused, RingError::Busy { pid, .. } if pid == std::process::id()));
    assert_eq!(recorder(&path), Some(std::process::id()));
    drop(ring);
    assert_eq!(recorder(&path), None);
    let mut ring = Ring::open(&path, options(folder.path())).unwrap();
    ring.remove_at_end();
    drop(ring);
    assert!(!path.exists());

    use std::os::unix::fs::PermissionsExt;
    std::fs::create_dir(&path).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let refused = Ring::open(&path, options(folder.path())).err().unwrap();
    assert!(matches!(refused, RingError::NotPrivate { .. }), "{refused}");
}

#[test]
fn what_a_killed_recorder_has_flushed_is_in_the_ring_of_the_next_one() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let mut source = Source::new(&folder.join("ring"), options(folder));
        source.latch(5);
        loop {
            source.write();
            if source.number.is_multiple_of(9) {
                source.ring.flush().unwrap();
                println!("flushed {}", source.number);
            }
        }
    }
    for run in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let name = "ring::tests::what_a_killed_recorder_has_flushed_is_in_the_ring_of_the_next_one";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", name, "--nocapture"]).env(FOLDER, folder.path());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut flushed =
            lines.filter_map(|line| line.strip_prefix("flushed ")?.parse::<u32>().ok());
        let first = flushed.nth(run * 37).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        let flushed = flushed.last().unwrap_or(first);
        let ring = folder.path().join("ring");
        if run % 2 == 0 {
            let saved = Ring::salvage(&ring, &folder.path().join("left.mcap"), &Options::default());
            let saved = saved.unwrap().unwrap();
            assert!(*saved_numbers(&saved).last().unwrap() + 1 >= flushed);
            assert!(!numbers(&saved.path, "/latched").is_empty());
            assert!(!ring.exists(), "it is written out");
            continue;
        }
        let mut source = Source::new(&ring, options(folder.path()));
        source.put(1, 9, false);
        source.ring.handle().trigger("restarted");
        let saved = source.saved();
        assert!(*saved_numbers(&saved).last().unwrap() + 1 >= flushed);
        assert_eq!(saved.written.statistics.channels, 2, "those of both recorders are united");
        assert_eq!(numbers(&saved.path, "/latched").last(), Some(&9));
    }
}

/// In a mount namespace of its own, with a file system of 300 KiB.
#[test]
fn on_a_full_disk_a_ring_goes_on_with_less_time() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let mut options = options(folder);
        (options.bytes_max, options.writer.end_bytes) = (2_400_000, 1_000);
        let mut source = Source::new(&folder.join("disk/ring"), options);
        for number in 0..5_000 {
            source.write();
            if number == 500 {
                // Another program takes the half of it.
                let _ = std::fs::write(folder.join("disk/other"), vec![0; 150_000]);
            }
        }
        assert!(source.full > 0, "{}", source.full);
        let lost: u64 = source.ring.lost().iter().sum();
        assert!(lost > 0 && lost < 100, "{lost}");
        source.ring.handle().trigger("full");
        let saved = source.saved();
        let numbers = numbers(&saved.path, "/numbers");
        assert!(numbers.len() > 30 && numbers.is_sorted(), "{}", numbers.len());
        assert!(*numbers.last().unwrap() > 4_900, "{numbers:?}");
        println!("{DONE}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("disk")).unwrap();
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let script =
        "mount -t tmpfs -o size=300k,mode=700 none \"$1/disk\" || exit 77; shift; exec \"$@\"";
    command.args([script, "sh"]).arg(folder.path()).arg(std::env::current_exe().unwrap());
    let name = "ring::tests::on_a_full_disk_a_ring_goes_on_with_less_time";
    command.args(["--exact", name, "--nocapture"]).env(FOLDER, folder.path());
    match command.output() {
        Ok(output) if output.status.success() => {
            assert!(String::from_utf8_lossy(&output.stdout).contains(DONE), "{output:?}");
        }
        Ok(output) if output.status.code() == Some(101) => panic!("{output:?}"),
        other => println!("skipped: no mount namespaces here: {other:?}"),
    }
}

#[test]
fn triggers_fire_when_their_event_begins() {
    let folder = tempfile::tempdir().unwrap();
    let mut source = Source::new(&folder.path().join("ring"), options(folder.path()));
    let is_five = |_: &RecordedTopic, data: &[&[u8]]| data[1][0] % 8 >= 5;
    source.ring.add_trigger(Trigger::on_message("five or more", "/numbers", is_five));
    for _ in 0..5 {
        source.write();
    }
    assert!(source.ring.saving.is_none());
    source.write();
    assert!(source.ring.saving.is_some());
    assert_eq!(source.saved().reasons, ["five or more"]);

    let mut child = Command::new("sleep").arg("100").spawn().unwrap();
    let mut ends = Trigger::on_end_of_process("sleep ends", child.id()).unwrap();
    assert!(!ends.look());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(ends.look() && !ends.look());
    assert!(Trigger::on_end_of_process("it is gone", child.id()).is_err());

    let mut on_loss = Trigger::on_loss(Some("/numbers".to_owned()));
    let topic = losses::topic();
    let mut see = |name: &str, recorder: u64| {
        let data = losses::message(&RecordedLosses { recorder, ..RecordedLosses::default() }, name);
        let (sequence, is_repeated) = (0, false);
        let (log_ns, publish_ns, data) = (0, 0, &[&data[..]][..]);
        let message = Message { topic: 0, sequence, log_ns, publish_ns, is_repeated, data };
        on_loss.see(&topic, &message)
    };
    assert!(!see("/numbers", 0) && !see("/other", 3));
    assert!(see("/numbers", 3) && !see("/numbers", 3) && see("/numbers", 4));
}

#[test]
fn a_rate_falls_when_it_was_there_and_is_no_more() {
    let mut rate = trigger::Rate::new("/imu".to_owned(), 100.0);
    let begin = Instant::now();
    let at = |ms: u64| begin + Duration::from_millis(ms);
    for ms in (0..2_000).step_by(20) {
        rate.count(at(ms));
    }
    assert_eq!(rate.is_below(at(2_000)), None, "it never had it");
    for ms in (2_000..4_000).step_by(9) {
        rate.count(at(ms));
    }
    assert_eq!(rate.is_below(at(4_000)), Some(false));
    assert_eq!(rate.is_below(at(4_050)), Some(false), "one late message is no fall");
    assert_eq!(rate.is_below(at(4_300)), Some(true));
}

fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.unwrap().as_nanos() as u64
}

const BYTES: usize = 1_000;
const FOLDER: &str = "MYELIN_TEST_RING";
const DONE: &str = "a full ring went on";
const WATCHDOG: Duration = Duration::from_secs(60);
