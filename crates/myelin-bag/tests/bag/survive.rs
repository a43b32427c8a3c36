//! Recorders that are killed, files that are cut and disks that fill up: what was complete is read by
//! three readers, ours and those of others.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{OtherReader, add_channels, as_lines, file, joined, messages, options, read};
use myelin_bag::{Compression, MessageHead, Options, Scanner, WriteError, Writer, repair};

/// `MYELIN_BAG_KILLS` sets the number of kills, `SEED` repeats them.
#[test]
fn what_a_killed_recorder_has_written_is_read_by_three_readers() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        record_until_killed(Path::new(&folder));
    }
    let kills: u64 =
        std::env::var("MYELIN_BAG_KILLS").map_or(12, |it| it.parse().expect("a number"));
    let seed = std::env::var("SEED").map_or_else(|_| now_ns(), |it| it.parse().expect("a number"));
    println!("SEED={seed} KILLS={kills}");
    let mut random = Random(seed | 1);
    let mut others = OtherReader::all();
    let (mut in_files, mut broken) = (0, 0);
    for _ in 0..kills {
        let folder = tempfile::tempdir().expect("a folder");
        let said = kill(folder.path(), &mut random);
        let Some(&(last, written)) = said.last() else { continue };
        for number in [last.saturating_sub(1), last, last + 1] {
            let path = file_path(folder.path(), number);
            // The next one may have been begun, or not.
            let Ok(bytes) = std::fs::read(&path) else {
                assert!(number > last, "file {number} of {last}");
                continue;
            };
            let written = if number == last { written } else { 0 };
            let (count, is_complete) = check_file(&path, &bytes, number, written, &mut others);
            in_files += count;
            broken += u64::from(!is_complete);
        }
    }
    println!("{in_files} messages in {broken} broken files and those before them");
    assert!(broken > kills / 3, "{broken} of {kills}");
    assert!(in_files > kills * 5, "{in_files} messages");
}

/// Starts a recorder and kills it anywhere. What it has said: how many messages the files had.
fn kill(folder: &Path, random: &mut Random) -> Vec<(u64, u64)> {
    let name = "survive::what_a_killed_recorder_has_written_is_read_by_three_readers";
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    command.args(["--exact", name, "--nocapture"]);
    command.env(FOLDER, folder).env("SEED", random.next().to_string()).stdout(Stdio::piped());
    let mut recorder = command.spawn().expect("it can be started");
    let mut lines = BufReader::new(recorder.stdout.take().expect("a pipe")).lines();
    let number = |line: String| {
        let (file, written) = line.strip_prefix("written ")?.split_once(' ')?;
        Some((file.parse().ok()?, written.parse().ok()?))
    };
    let mut lines = lines.by_ref().map_while(Result::ok).filter_map(number);
    let mut said: Vec<_> = lines.next().into_iter().collect();
    // The moment of the kill: it is waited for nothing.
    std::thread::sleep(Duration::from_micros(random.below(30_000)));
    recorder.kill().expect("it is there");
    recorder.wait().expect("it is there");
    said.extend(lines);
    said
}

/// One file after the other, each of some dozens of messages.
fn record_until_killed(folder: &Path) -> ! {
    let seed = std::env::var("SEED").expect("by the test").parse::<u64>().expect("a number");
    let mut random = Random(seed | 1);
    for number in 0.. {
        let mut options = Options::default();
        options.chunk_bytes = 1 + random.below(60_000) as usize;
        options.has_checksums = random.below(2) == 0;
        options.compression = match random.below(3) {
            0 => Compression::Lz4,
            1 => Compression::Zstd,
            _ => Compression::None,
        };
        let mut writer = Writer::create(file_path(folder, number), options).expect("space");
        add_channels(&mut writer);
        let mut written = 0;
        println!("written {number} 0");
        for message in 0..random.below(200) as u32 {
            let (head, data) = message_of(number, message);
            writer.write(&head, &[&data]).expect("space");
            match random.below(12) {
                0 => writer.flush().expect("space"),
                1 => writer.advance().expect("space"),
                _ => {}
            }
            if writer.statistics().messages > written {
                written = writer.statistics().messages;
                println!("written {number} {written}");
            }
        }
        written = writer.finish().expect("space").statistics.messages;
        println!("written {number} {written}");
    }
    unreachable!("it is killed before there are so many files");
}

/// Reads a file that should have at least so many messages by all readers, also repaired. Returns
/// how many it has, and whether it is complete.
fn check_file(
    path: &Path,
    bytes: &[u8],
    number: u64,
    written: u64,
    others: &mut [OtherReader],
) -> (u64, bool) {
    if bytes.len() < 8 {
        assert_eq!(written, 0, "a file without a begin");
        return (0, false);
    }
    let (read, report) = read(bytes);
    assert!(read.len() as u64 >= written, "{} of {written}: {report:?}", read.len());
    for (sequence, message) in (0..).zip(&read) {
        assert!(message == &message_of(number, sequence), "message {sequence} of file {number}");
    }
    let lines = as_lines(&read);
    let repaired = path.with_extension("repaired.mcap");
    let scanner = Scanner::new(bytes).expect("a file of MCAP");
    let to = std::fs::File::create(&repaired).expect("space");
    repair(scanner, to, Options::default()).expect("space");
    for other in others {
        // A chunk that was cut is left out by the others; ours reads its complete messages.
        let (by_other, is_complete) = other.read(path);
        assert_eq!(is_complete, report.is_complete, "{}", other.name);
        assert!(lines.starts_with(&by_other), "{}: other messages", other.name);
        assert!(by_other.lines().count() as u64 >= written, "{}: too few", other.name);
        let (by_other, is_complete) = other.read(&repaired);
        assert!(is_complete && by_other == lines, "{}: other messages, repaired", other.name);
    }
    (read.len() as u64, report.is_complete)
}

#[test]
fn a_file_cut_at_each_byte_of_its_last_chunk_is_read_by_three_readers() {
    let mut others = OtherReader::all();
    if others.is_empty() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let sent = joined(&messages(39));
    let bytes = file(options(), &messages(39));
    let summary = mcap::Summary::read(&bytes).expect("a whole file").expect("with a summary");
    let last = summary.chunk_indexes.last().expect("with chunks");
    let (start, end) = (last.chunk_start_offset, last.chunk_start_offset + last.chunk_length);
    let indexes = summary.read_message_indexes(&bytes, last).expect("with indexes");
    let before = sent.len() - indexes.values().map(Vec::len).sum::<usize>();
    let (mut partial, path) = (0, folder.path().join("cut.mcap"));
    let repaired = folder.path().join("repaired.mcap");
    for cut in start..=end {
        let cut = &bytes[..cut as usize];
        let (read, _) = read(cut);
        assert_eq!(read, sent[..read.len()]);
        partial += usize::from((before + 1..sent.len()).contains(&read.len()));
        std::fs::write(&path, cut).expect("space");
        let scanner = Scanner::new(cut).expect("a file of MCAP");
        repair(scanner, std::fs::File::create(&repaired).expect("space"), options())
            .expect("space");
        for other in &mut others {
            let complete = if cut.len() as u64 == end { sent.len() } else { before };
            assert_eq!(other.read(&path), (as_lines(&sent[..complete]), false), "{}", other.name);
            assert_eq!(other.read(&repaired), (as_lines(&read), true), "{}", other.name);
        }
    }
    assert!(partial > 100, "{partial} cuts between the chunk's messages");
}

/// A limit of the size of files, and a disk of 512 KiB in a mount namespace of its own.
#[test]
fn a_file_that_could_not_grow_is_read_by_three_readers() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill(Path::new(&folder));
    }
    let name = "survive::a_file_that_could_not_grow_is_read_by_three_readers";
    let limit = "trap '' XFSZ; ulimit -f 1024 || exit 77; cd \"$1\"; shift; exec \"$@\"";
    let disk = "mkdir \"$1/disk\" && mount -t tmpfs -o size=512k none \"$1/disk\" || exit 77; \
                cd \"$1\"; shift; exec \"$@\"";
    let namespace = ["unshare", "--user", "--map-root-user", "--mount"];
    let mut others = OtherReader::all();
    for (before, script) in [(&[][..], limit), (&namespace[..], disk)] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut words = before.iter().copied().chain(["sh", "-c", script, "sh"]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words).arg(folder.path());
        command.arg(std::env::current_exe().expect("this program"));
        command.args(["--exact", name, "--nocapture"]).env(FOLDER, folder.path());
        let Ok(output) = command.output() else { continue };
        if output.status.code() == Some(77) || output.status.code() == Some(1) {
            println!("skipped: no limits or namespaces here: {output:?}");
            continue;
        }
        assert!(output.status.success(), "{output:?}");
        for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
            let path = file_path(folder.path(), compression as u64);
            let bytes = std::fs::read(&path).expect("it was written");
            assert!(bytes.len() > 250_000, "{} B", bytes.len());
            let (count, is_complete) =
                check_file(&path, &bytes, compression as u64, 1, &mut others);
            assert!(is_complete && count > 10, "{count}");
        }
    }
}

/// Fills the disk, or what is allowed of it, with a file of each compression.
fn fill(folder: &Path) {
    let disk = Some(folder.join("disk")).filter(|disk| disk.exists());
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let number = compression as u64;
        let mut options = Options::default();
        options.chunk_bytes = 50_000;
        options.compression = compression;
        let path = file_path(disk.as_deref().unwrap_or(folder), number);
        let mut writer = Writer::create(&path, options).expect("there is space for the begin");
        add_channels(&mut writer);
        let mut sent = 0;
        while writer.lost().is_empty() {
            let (head, data) = message_of(number, sent);
            sent += 1;
            match writer.write(&head, &[&data]) {
                Ok(()) | Err(WriteError::Full(_) | WriteError::Ended) => {}
                Err(error) => panic!("{error}"),
            }
        }
        let written = writer.finish().expect("the end has its space");
        let lost = written.lost.values().sum::<u64>();
        assert_eq!(written.statistics.messages + lost, u64::from(sent));
        if disk.is_some() {
            std::fs::copy(&path, file_path(folder, number)).expect("space");
            std::fs::remove_file(&path).expect("it is there");
        }
    }
}

fn file_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.mcap"))
}

/// What a recorder writes: small and large messages, the half of their bytes noise.
fn message_of(file: u64, number: u32) -> (MessageHead, Vec<u8>) {
    let mut random = Random((file << 32 | u64::from(number)) * 2 + 1);
    let log_ns = u64::from(number) * 1_000 + 1_700_000_000_000_000_000;
    let channel = (number % 4 + 1) as u16;
    let head = MessageHead { channel, sequence: number, log_ns, publish_ns: log_ns - 5 };
    let bytes = match random.below(20) {
        0 => 33_000 + random.below(100_000),
        1..5 => random.below(12_000),
        _ => random.below(900),
    };
    let mut data = vec![number as u8; bytes as usize];
    for part in data.chunks_mut(16) {
        let noise = random.next().to_le_bytes();
        let half = part.len().min(8);
        part[..half].copy_from_slice(&noise[..half]);
    }
    (head, data)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }
}

fn now_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(1, |since| since.as_nanos() as u64)
}

const FOLDER: &str = "MYELIN_TEST_SURVIVE";
