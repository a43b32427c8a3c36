//! What recording costs. Run one alone, in release, with `--ignored --nocapture`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myelin::Node;
use myelin_bag::Recorder;
use myelin_bag::recorder::{OneFile, Recorded};

use crate::support::{Disk, node};

/// Publishes on many topics, at a rate, and prints how long a publish took.
#[test]
#[ignore = "a process of other tests"]
fn load_process() {
    let Ok(options) = std::env::var(LOAD) else { return };
    let mut words = options.split(' ');
    let mut next = || words.next().expect("a word");
    let node = Node::builder("load").runtime_dir(next()).open().unwrap();
    let mut number = || next().parse::<u64>().expect("a number");
    let (topics, bytes, hz, seconds) = (number(), number(), number(), number());
    let (depth, reliable, matches) = (number(), number() == 1, number() as usize);
    let publishers: Vec<_> = (0..topics)
        .map(|it| {
            let topic = node.topic::<[u8]>(&format!("load/{it}")).depth(depth as u32);
            let topic = if reliable { topic.reliable(Duration::from_secs(5)) } else { topic };
            topic.publisher().unwrap()
        })
        .collect();
    publishers.iter().for_each(|it| assert!(it.wait_for_match(matches, Duration::from_secs(60))));
    let count = hz * seconds;
    let mut times_ns = Vec::with_capacity(count as usize);
    let (begin, cpu_before) = (Instant::now(), cpu_s());
    for at in 0..count {
        if !reliable {
            let due = Duration::from_nanos(at * 1_000_000_000 / hz);
            // In bursts of a millisecond at high rates.
            let due = Duration::from_millis(due.as_millis() as u64);
            std::thread::sleep(due.saturating_sub(begin.elapsed()));
        }
        let publisher = &publishers[(at % topics) as usize];
        let mut loan = publisher.loan(bytes as usize).unwrap();
        loan[..8].copy_from_slice(&at.to_le_bytes());
        let begin = Instant::now();
        loan.publish().unwrap();
        times_ns.push(begin.elapsed().as_nanos() as u64);
    }
    let passed = begin.elapsed().as_secs_f64();
    times_ns.sort_unstable();
    let at = |part: f64| times_ns[((times_ns.len() - 1) as f64 * part) as usize];
    println!(
        "published {count} in {passed:.2} s; publish ns: p50 {} p99 {} p99.9 {} max {}; cpu {:.2} s",
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        cpu_s() - cpu_before
    );
    std::thread::sleep(Duration::from_millis(300));
}

struct Load {
    topics: u64,
    bytes: u64,
    hz: u64,
    seconds: u64,
    depth: u64,
    is_reliable: bool,
}

impl Load {
    fn run(&self, folder: &Path, matches: usize) {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", "measure::load_process", "--ignored", "--nocapture"]);
        let Load { topics, bytes, hz, seconds, depth, is_reliable } = self;
        let reliable = u8::from(*is_reliable);
        let load = format!(
            "{} {topics} {bytes} {hz} {seconds} {depth} {reliable} {matches}",
            folder.display()
        );
        let output = command.env(LOAD, load).stderr(Stdio::inherit()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().find_map(|it| it.find("published").map(|at| &it[at..]));
        println!("  {}", line.unwrap_or("no line"));
    }
}

fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

fn show(recorded: &Recorded, cpu_s: f64, seconds: f64) {
    let status = &recorded.status;
    println!(
        "  recorded {} messages, {:.2} GB; {:?}; cpu {cpu_s:.2} s, {:.1} % of a core",
        status.messages,
        status.bytes as f64 / 1e9,
        status.losses,
        100.0 * cpu_s / seconds
    );
}

#[test]
#[ignore = "measures"]
fn large_samples() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("run.mcap");
    for (depth, is_reliable) in [(8, true), (8, true), (8, true)] {
        let dd = Command::new("dd")
            .args(["if=/dev/zero", "bs=10M", "count=200"])
            .arg(format!("of={}", folder.path().join("dd").display()))
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&dd.stderr).into_owned();
        println!("dd: {}", text.lines().last().unwrap_or_default());
        std::fs::remove_file(folder.path().join("dd")).unwrap();
        let load = Load { topics: 1, bytes: 10 << 20, hz: 200, seconds: 1, depth, is_reliable };
        let builder = Recorder::builder(&node(folder.path())).topic("load/*").reliable("load/*");
        let recorder = builder.start_file(&path).unwrap();
        let (before, begin) = (cpu_s(), Instant::now());
        load.run(folder.path(), 1);
        let recorded = recorder.finish();
        show(&recorded, cpu_s() - before, begin.elapsed().as_secs_f64());
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
#[ignore = "measures"]
fn many_small_messages() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = folder.path().join("run.mcap");
    let seconds = 10;
    let load =
        Load { topics: 1_000, bytes: 64, hz: 100_000, seconds, depth: 8, is_reliable: false };
    println!("without a recorder");
    load.run(folder.path(), 0);
    let recorder =
        Recorder::builder(&node(folder.path())).topic("load/*").start_file(&path).unwrap();
    println!("recorded");
    let (before, begin) = (cpu_s(), Instant::now());
    load.run(folder.path(), 1);
    let recorded = recorder.finish();
    show(&recorded, cpu_s() - before, begin.elapsed().as_secs_f64().min(seconds as f64));
}

/// The publishers of a recorder whose disk stands still.
#[test]
#[ignore = "measures"]
fn a_slow_disk() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let load =
        Load { topics: 1, bytes: 100_000, hz: 1_000, seconds: 5, depth: 8, is_reliable: false };
    println!("without a recorder");
    load.run(folder.path(), 0);
    for is_open in [true, false] {
        println!("{}", if is_open { "a disk in memory" } else { "a disk that stands still" });
        let disk = Disk::new(usize::MAX, is_open);
        let builder = Recorder::builder(&node(folder.path())).topic("load/*");
        let recorder = builder.start(OneFile::new(disk.clone(), Default::default())).unwrap();
        load.run(folder.path(), 1);
        disk.open();
        let recorded = recorder.finish();
        show(&recorded, 0.0, 1.0);
        let known = recorded.status.messages + recorded.status.losses.total();
        assert_eq!(known, load.hz * load.seconds);
    }
}

const LOAD: &str = "MYELIN_TEST_LOAD";
