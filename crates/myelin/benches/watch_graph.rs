//! The cost of an update of a graph watcher: of many topics, on many nodes, each in a process of its
//! own, which has publishers and subscribes to those of the next one.
//!
//! `cargo bench -p myelin --bench watch_graph`; as a test it has a few topics and updates.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use myelin::{Error, GraphStatus, Node};

fn main() -> Result<(), Error> {
    if let Some(role) = std::env::var_os(ROLE) {
        return be_watched(&role.into_string().expect("written here"));
    }
    let is_bench = std::env::args().any(|argument| argument == "--bench");
    let (processes, topics, updates) = if is_bench { (20, 50, 101) } else { (2, 3, 3) };
    let folder = tempfile::tempdir().expect("a folder");
    let node = Node::builder("watcher").runtime_dir(folder.path()).match_limit(LIMIT).open()?;
    let _others = Others::start(folder.path(), processes, topics);
    let mut watcher = node.watch_graph("*");
    while !is_complete(watcher.update(LIMIT)?, processes, topics) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let (mut ms, mut cpu_ms, mut others_ms) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..updates {
        std::thread::sleep(Duration::from_millis(20));
        let (begin, of_process) = (myelin::now(), cpu_ns());
        watcher.update(LIMIT)?;
        ms.push((myelin::now() - begin) as f64 / 1e6);
        cpu_ms.push((cpu_ns() - of_process) as f64 / 1e6);
        let status = watcher.status();
        let others = status.nodes.iter().filter(|it| it.info.name != "watcher");
        let percent: f64 = others.filter_map(|it| it.cpu_percent).sum();
        others_ms.push(percent / 100.0 * status.since_ns.unwrap_or_default() as f64 / 1e6);
    }
    println!(
        "{} topics on {processes} nodes, ms an update (quartiles of {updates})",
        processes * topics
    );
    for (what, ms) in [("time", ms), ("CPU, own", cpu_ms), ("CPU, all others", others_ms)] {
        println!("  {what:16} {:7.2?}", quartiles(ms));
    }
    Ok(())
}

/// One publisher and one subscriber of each topic, matched.
fn is_complete(status: &GraphStatus, processes: usize, topics: usize) -> bool {
    let is_matched = |it: &myelin::EndpointStatus| {
        it.matches.iter().any(|it| it.state == myelin::MatchState::Matched)
    };
    status.topics.len() == processes * topics
        && status
            .topics
            .iter()
            .all(|it| it.subscribers.iter().filter(|it| is_matched(it)).count() == 1)
}

fn be_watched(role: &str) -> Result<(), Error> {
    let mut words = role.split(' ');
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).expect("a number");
    let (index, processes, topics) = (number(), number(), number());
    let node = Node::new(&format!("node{index}"))?;
    let topic = |of: usize, at: usize| node.topic::<Sample>(&format!("robot/node{of}/topic{at}"));
    let publish = |at| topic(index, at).publisher();
    let publishers = (0..topics).map(publish).collect::<Result<Vec<_>, _>>()?;
    let next = (index + 1) % processes;
    let subscribe = |at| topic(next, at).subscriber();
    let _subscribers = (0..topics).map(subscribe).collect::<Result<Vec<_>, _>>()?;
    for publisher in &publishers {
        publisher.publish_copy(&Sample { stamp_ns: 1, values: [0.0; 6] })?;
    }
    let _ = std::io::stdin().read(&mut [0]); // until the bench ends
    Ok(())
}

#[derive(Clone, Copy, myelin::PlainData)]
#[repr(C)]
struct Sample {
    stamp_ns: u64,
    values: [f64; 6],
}

struct Others(Vec<Child>);

impl Others {
    fn start(folder: &std::path::Path, processes: usize, topics: usize) -> Others {
        let program = std::env::current_exe().expect("it runs");
        let start = |index: usize| {
            let mut command = Command::new(&program);
            command.env(ROLE, format!("{index} {processes} {topics}"));
            command.env("MYELIN_RUNTIME_DIR", folder).stdin(Stdio::piped());
            command.spawn().expect("it runs")
        };
        Others((0..processes).map(start).collect())
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = (child.kill(), child.wait());
        }
    }
}

fn cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn quartiles(mut ms: Vec<f64>) -> [f64; 3] {
    ms.sort_by(f64::total_cmp);
    [1, 2, 3].map(|quarter| ms[(ms.len() - 1) * quarter / 4])
}

const ROLE: &str = "MYELIN_BENCH_ROLE";
const LIMIT: Duration = Duration::from_secs(10);
