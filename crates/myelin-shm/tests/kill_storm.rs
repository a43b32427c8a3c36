//! kill -9 at random points, again and again: whoever survives sees whole samples and exact losses,
//! gets every slot back, and nothing stays behind.
//!
//! `KILLS` sets how often (default 2,000), `SEED` repeats a storm.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::publication::Writer;
use myelin_shm::subscription::Taken;
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::wait::{self, Wait};

#[test]
fn survivors_of_a_kill_storm_lose_nothing_else() {
    if let Ok(role) = std::env::var(ROLE) {
        return work(&role);
    }
    let kills: u32 = std::env::var("KILLS").map_or(2_000, |kills| kills.parse().unwrap());
    let seed: u64 = std::env::var("SEED").map_or_else(|_| wait::now_ns(), |s| s.parse().unwrap());
    println!("SEED={seed} KILLS={kills}");
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed | 1);

    let node = open(folder.path());
    let mut publisher = publisher(&node);
    let mut checker = Checker::new(subscriber(&node));
    let mut children: Vec<(Child, Instant)> = Vec::new();
    let mut killed = 0;
    let (mut taken_in_all, mut most_bytes) = (0u64, 0);
    while killed < kills {
        if children.len() < CHILDREN {
            let role = if random.below(2) == 0 { "publisher" } else { "subscriber" };
            let life = Duration::from_micros(random.below(15_000));
            children.push((spawn(role, folder.path(), random.next()), Instant::now() + life));
        }
        send(&mut publisher.writer, &mut random);
        taken_in_all += checker.take_some(&mut random);
        let now = Instant::now();
        children.retain_mut(|(child, end)| {
            let due = *end <= now;
            if due {
                kill(child);
                killed += 1;
            }
            !due
        });
        most_bytes = most_bytes.max(publisher.writer.slot_counts().bytes);
    }
    for (mut child, _) in children {
        kill(&mut child);
    }
    assert!(taken_in_all > u64::from(kills), "the survivor read: {taken_in_all}");

    // Only the survivors are left: all slots but the ones the checker holds come back.
    watched("the dead are forgotten", || publisher.matched() == 1);
    checker.let_go();
    watched("every slot is back", || {
        checker.take_some(&mut random);
        checker.let_go();
        let counts = publisher.writer.slot_counts();
        counts.free == counts.total
    });
    println!("{taken_in_all} samples taken by the survivor, at most {most_bytes} B of slots");
    assert!(most_bytes < 64 << 20, "slots leaked: {most_bytes} B");
    drop((publisher, checker, node));
    // Sockets of the killed are removed by the next that comes; the name of one that was killed
    // before it listened, a second later.
    watched("nothing is left behind", || {
        drop(open(folder.path()));
        std::fs::read_dir(folder.path()).unwrap().next().is_none()
    });
}

/// Publishes or subscribes until it is killed.
fn work(role: &str) {
    let mut random = Random(std::env::var(SEED).unwrap().parse::<u64>().unwrap() | 1);
    let folder = std::env::var(FOLDER).unwrap();
    let node = open(Path::new(&folder));
    match role {
        "publisher" => {
            let mut publisher = publisher(&node);
            loop {
                send(&mut publisher.writer, &mut random);
            }
        }
        _ => {
            let mut checker = Checker::new(subscriber(&node));
            loop {
                let until_ns = wait::now_ns() + random.below(2_000_000);
                checker.subscriber.reader.wait(Wait::Block, until_ns).unwrap();
                checker.take_some(&mut random);
            }
        }
    }
}

fn send(writer: &mut Writer, random: &mut Random) {
    let length = match random.below(4) {
        0 => random.below(100),
        1 => random.below(1_000),
        _ => random.below(50_000),
    };
    let mut loan = writer.loan(8 + length).unwrap();
    // SAFETY: the writer lives.
    fill(unsafe { loan.bytes_mut() }, random.next());
    match random.below(10) {
        0 => writer.discard(loan),
        _ => drop(writer.publish(loan).unwrap()),
    }
    if random.below(8) == 0 {
        std::thread::sleep(Duration::from_micros(random.below(200)));
    }
}

/// Takes samples, holds some for a while, and checks all it sees.
struct Checker {
    subscriber: Subscriber,
    /// The sequence each publisher has to come with next.
    next: HashMap<u64, u64>,
    held: Vec<Taken>,
}

impl Checker {
    fn new(subscriber: Subscriber) -> Self {
        Checker { subscriber, next: HashMap::new(), held: Vec::new() }
    }

    fn take_some(&mut self, random: &mut Random) -> u64 {
        let mut count = 0;
        while let Some(taken) = self.subscriber.reader.take().expect("no peer is corrupt") {
            check(taken.bytes());
            // A first sample may come late: what it lost is counted from the match on.
            let first = taken.sequence - taken.lost_before;
            let next = self.next.entry(taken.publisher).or_insert(first);
            assert_eq!(first, *next, "{} lost before {}", taken.lost_before, taken.sequence);
            *next = taken.sequence + 1;
            count += 1;
            if self.held.len() < HELD && random.below(3) == 0 {
                self.held.push(taken);
            }
            if random.below(3) == 0 && !self.held.is_empty() {
                let at = random.below(self.held.len() as u64) as usize;
                check(self.held.swap_remove(at).bytes());
            }
            if count >= 64 {
                break;
            }
        }
        count
    }

    fn let_go(&mut self) {
        self.held.drain(..).for_each(|taken| check(taken.bytes()));
    }
}

fn fill(bytes: &mut [u8], key: u64) {
    let (head, rest) = bytes.split_at_mut(8);
    head.copy_from_slice(&key.to_le_bytes());
    let mut random = Random(key | 1);
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
    }
}

fn check(bytes: &[u8]) {
    let key = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let mut random = Random(key | 1);
    for chunk in bytes[8..].chunks(8) {
        assert_eq!(chunk, &random.next().to_le_bytes()[..chunk.len()], "a torn sample");
    }
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGKILL), "a worker failed by itself: {status}");
}

fn spawn(role: &str, folder: &Path, seed: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "survivors_of_a_kill_storm_lose_nothing_else", "--nocapture"])
        .env(ROLE, role)
        .env(FOLDER, folder)
        .env(SEED, seed.to_string())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

fn open(folder: &Path) -> Node {
    let folder = Some(folder.to_owned());
    Node::open(NodeOptions { name: "storm".into(), folder, ..NodeOptions::default() }).unwrap()
}

fn topic() -> Topic {
    Topic { name: "storm".into(), type_name: "bytes".into(), type_hash: 1 }
}

fn publisher(node: &Node) -> Publisher {
    node.publisher(topic(), PublisherQos::default()).unwrap()
}

fn subscriber(node: &Node) -> Subscriber {
    let qos = SubscriberQos { publishers_max: 64, ..SubscriberQos::default() };
    node.subscriber(topic(), qos).unwrap()
}

fn watched(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < end, "not in 20 s: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// xorshift64*: Vigna, *An experimental exploration of Marsaglia's xorshift generators*, 2016.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

const ROLE: &str = "MYELIN_STORM_ROLE";
const FOLDER: &str = "MYELIN_STORM_FOLDER";
const SEED: &str = "MYELIN_STORM_SEED";
const CHILDREN: usize = 6;
/// Below the subscriber's `held_max`, so that a take is never refused.
const HELD: usize = 12;
