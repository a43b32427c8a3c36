//! kill -9 and SIGSTOP at random points, again and again: survivors see whole samples and exact
//! losses, get every slot back, and nothing is left behind. Publishers are best effort or reliable,
//! with history; subscribers poll, sleep, have a descriptor or a callback, and hold samples.
//!
//! `MYELIN_KILLS` sets the number of kills (default 2,000), `SEED` repeats a storm.

use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_shm::callback::Callback;
use myelin_shm::data_plane::subscription::RawSample;
use myelin_shm::dispatch::callback::{Function, Lengths};
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::wait::{self, Wait};

#[test]
fn survivors_of_a_kill_storm_lose_no_other_samples() {
    if let Ok(role) = std::env::var(ROLE) {
        return work(&role);
    }
    let kills: u32 = std::env::var("MYELIN_KILLS").map_or(2_000, |kills| kills.parse().unwrap());
    let seed: u64 = std::env::var("SEED").map_or_else(|_| wait::now_ns(), |s| s.parse().unwrap());
    println!("SEED={seed} KILLS={kills}");
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(seed | 1);

    let node = open(folder.path());
    let mut senders = [Reliability::BestEffort, Reliability::Reliable]
        .map(|reliability| Sender::new(&node, reliability, &mut random));
    let mut checkers =
        [false, true].map(|has_fd| Checker::new(subscriber(&node, has_fd, &mut random)));
    let called = Called::new(&node, &mut random);
    let mut children: Vec<Victim> = Vec::new();
    let (mut killed, mut stopped) = (0, 0);
    let (mut taken_in_all, mut most_bytes) = (0u64, 0);
    while killed < kills {
        if children.len() < CHILDREN {
            let role = ROLES[random.below(ROLES.len() as u64) as usize];
            children.push(Victim::spawn(role, folder.path(), &mut random));
        }
        for sender in &mut senders {
            sender.send(&mut random);
            most_bytes = most_bytes.max(sender.publisher.writer.slot_counts().bytes);
        }
        for checker in &mut checkers {
            taken_in_all += checker.take_some(&mut random);
        }
        children.retain_mut(|child| {
            if random.below(20) == 0 {
                child.stop_or_go_on();
                stopped += u32::from(child.is_stopped);
            }
            let due = child.end <= Instant::now();
            if due {
                child.kill();
                killed += 1;
            }
            !due
        });
    }
    for mut child in children {
        child.kill();
    }
    assert!(taken_in_all > u64::from(kills), "the survivors read: {taken_in_all}");

    // Only the survivors are left: all slots come back, except the history and those that the
    // checkers hold.
    let survivors = checkers.len() + 1;
    watched("the dead are forgotten", || {
        senders.iter().all(|sender| sender.publisher.matched() == survivors)
    });
    watched("every slot is back", || {
        for checker in &mut checkers {
            checker.take_some(&mut random);
            checker.let_go();
        }
        called.let_go();
        senders.iter_mut().all(|sender| {
            let counts = sender.publisher.writer.slot_counts();
            counts.free + HISTORY as usize >= counts.total
        })
    });
    called.check();
    println!(
        "{taken_in_all} samples taken by survivors, {} calls; {stopped} stopped; at most {most_bytes} B",
        called.callback.calls()
    );
    assert!(most_bytes < 64 << 20, "slots leaked: {most_bytes} B");
    drop((senders, checkers, called, node));
    // The next node removes sockets of killed ones; the name of a node that was killed before it
    // listened is removed a second later.
    watched("nothing is left behind", || {
        drop(open(folder.path()));
        std::fs::read_dir(folder.path()).unwrap().next().is_none()
    });
}

/// Publishes or subscribes until it is killed.
fn work(role: &str) {
    let mut random = Random(std::env::var(SEED).unwrap().parse::<u64>().unwrap() | 1);
    let folder = std::env::var_os(FOLDER).unwrap();
    let node = open(Path::new(&folder));
    match role {
        "publisher" | "reliable publisher" => {
            let reliability = match role {
                "publisher" => Reliability::BestEffort,
                _ => Reliability::Reliable,
            };
            let mut sender = Sender::new(&node, reliability, &mut random);
            loop {
                sender.send(&mut random);
            }
        }
        "callback" => {
            // With a publisher of its own, which runs the callback.
            let called = Called::new(&node, &mut random);
            let mut sender = Sender::new(&node, Reliability::BestEffort, &mut random);
            loop {
                sender.send(&mut random);
                called.check();
            }
        }
        _ => {
            let has_fd = role == "descriptor";
            let mut checker = Checker::new(subscriber(&node, has_fd, &mut random));
            loop {
                let limit = Duration::from_micros(random.below(2_000));
                checker.wait(has_fd, limit, &mut random);
                checker.take_some(&mut random);
            }
        }
    }
}

/// A publisher that numbers what it sends.
struct Sender {
    publisher: Publisher,
    sent: u64,
}

impl Sender {
    fn new(node: &Node, reliability: Reliability, random: &mut Random) -> Self {
        let depth = HISTORY + random.below(13) as u32;
        let block_max = Duration::from_micros(500);
        let transient_local = HISTORY;
        let qos = PublisherQos {
            depth,
            transient_local,
            reliability,
            block_max,
            ..PublisherQos::default()
        };
        Sender { publisher: node.publisher(topic(), qos).unwrap(), sent: 0 }
    }

    fn send(&mut self, random: &mut Random) {
        let length = match random.below(4) {
            0 => random.below(80),
            1 => random.below(1_000),
            _ => random.below(50_000),
        };
        let writer = &mut self.publisher.writer;
        let mut loan = writer.loan(HEAD as u64 + length).unwrap();
        // SAFETY: the writer lives.
        fill(unsafe { loan.bytes_mut() }, random.next(), self.sent);
        if random.below(10) == 0 {
            // SAFETY: the loan is this writer's.
            unsafe { writer.discard(loan) };
        } else {
            // SAFETY: the loan is this writer's.
            assert_eq!(unsafe { writer.publish(loan) }.unwrap().sequence, self.sent);
            self.sent += 1;
        }
        if random.below(8) == 0 {
            std::thread::sleep(Duration::from_micros(random.below(200)));
        }
    }
}

/// Follows the samples of publishers: no sample twice, none out of order, every missing one
/// reported.
#[derive(Default)]
struct Ledger {
    /// The next expected sequence of each publisher.
    next: HashMap<u64, u64>,
}

impl Ledger {
    fn note(&mut self, taken: &RawSample) {
        check(taken.bytes(), taken.sequence);
        // A first sample may come late: its losses are counted from the match on.
        let first = taken.sequence - taken.lost_before;
        let next = self.next.entry(taken.publisher).or_insert(first);
        assert_eq!(first, *next, "{} lost before {}", taken.lost_before, taken.sequence);
        *next = taken.sequence + 1;
    }
}

/// Takes samples, holds some for a while, and checks all of them.
struct Checker {
    subscriber: Subscriber,
    ledger: Ledger,
    held: Vec<RawSample>,
}

impl Checker {
    fn new(subscriber: Subscriber) -> Self {
        Checker { subscriber, ledger: Ledger::default(), held: Vec::new() }
    }

    fn wait(&mut self, has_fd: bool, limit: Duration, random: &mut Random) {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        if has_fd {
            let event = self.subscriber.reader.event().expect("it has asked for one");
            let limit = Timespec { tv_sec: 0, tv_nsec: limit.as_nanos() as _ };
            // A signal, SIGCONT, may end it.
            let _ = poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&limit));
            return;
        }
        let until_ns = wait::now_ns() + limit.as_nanos() as u64;
        let how = [Wait::Block, Wait::Adaptive][random.below(2) as usize];
        self.subscriber.reader.wait(how, until_ns).unwrap();
    }

    fn take_some(&mut self, random: &mut Random) -> u64 {
        let mut count = 0;
        while let Some(taken) = self.subscriber.reader.take().expect("no peer is corrupt") {
            self.ledger.note(&taken);
            count += 1;
            if self.held.len() < HELD && random.below(3) == 0 {
                self.held.push(taken);
            }
            if random.below(3) == 0 && !self.held.is_empty() {
                let at = random.below(self.held.len() as u64) as usize;
                let taken = self.held.swap_remove(at);
                check(taken.bytes(), taken.sequence);
            }
            if count >= 64 {
                break;
            }
        }
        count
    }

    fn let_go(&mut self) {
        self.held.drain(..).for_each(|taken| check(taken.bytes(), taken.sequence));
    }
}

/// A callback that checks samples and keeps some.
struct Called {
    callback: Callback,
    held: Arc<Mutex<Vec<RawSample>>>,
}

impl Called {
    fn new(node: &Node, random: &mut Random) -> Self {
        let (mut ledger, held) = (Ledger::default(), Arc::new(Mutex::new(Vec::new())));
        let keep: Arc<Mutex<Vec<RawSample>>> = held.clone();
        let call = Box::new(move |taken: &RawSample| {
            ledger.note(taken);
            let mut held = keep.lock().unwrap();
            if held.len() == HELD {
                held.clear();
            }
            held.push(taken.clone());
        });
        let function = Function { call, lengths: Lengths::Such(|_| true), align: 1 };
        let subscriber = subscriber(node, false, random);
        Called { callback: Callback::start(subscriber, Wait::Block, function).unwrap(), held }
    }

    fn check(&self) {
        assert_eq!(self.callback.panics(), 0, "a callback has found a fault");
        let error = self.callback.error();
        assert!(error.is_none(), "{error:?}");
    }

    fn let_go(&self) {
        self.held.lock().unwrap().clear();
    }
}

fn fill(bytes: &mut [u8], key: u64, sequence: u64) {
    let (head, rest) = bytes.split_at_mut(HEAD);
    head[..8].copy_from_slice(&key.to_le_bytes());
    head[8..].copy_from_slice(&sequence.to_le_bytes());
    let mut random = Random(key | 1);
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]);
    }
}

fn check(bytes: &[u8], sequence: u64) {
    let (head, rest) = bytes.split_at(HEAD);
    let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
    assert_eq!(word(8), sequence, "another sample's bytes");
    let mut random = Random(word(0) | 1);
    for chunk in rest.chunks(8) {
        assert_eq!(chunk, &random.next().to_le_bytes()[..chunk.len()], "a torn sample");
    }
}

/// A process that will be killed, and may be stopped before.
struct Victim {
    child: Child,
    end: Instant,
    is_stopped: bool,
}

impl Victim {
    fn spawn(role: &str, folder: &Path, random: &mut Random) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "survivors_of_a_kill_storm_lose_no_other_samples", "--nocapture"])
            .env(ROLE, role)
            .env(FOLDER, folder)
            .env(SEED, random.next().to_string())
            .stdout(Stdio::null())
            .spawn();
        let life = Duration::from_micros(random.below(15_000));
        Victim { child: child.unwrap(), end: Instant::now() + life, is_stopped: false }
    }

    fn stop_or_go_on(&mut self) {
        self.is_stopped = !self.is_stopped;
        let signal = if self.is_stopped { libc::SIGSTOP } else { libc::SIGCONT };
        // SAFETY: no memory is concerned; the process is our child, not yet waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(status.signal(), Some(libc::SIGKILL), "a worker failed by itself: {status}");
    }
}

fn open(folder: &Path) -> Node {
    let folder = Some(folder.to_owned());
    Node::open(NodeOptions { name: "storm".into(), runtime_dir: folder, ..NodeOptions::default() })
        .unwrap()
}

fn topic() -> Topic {
    Topic { name: "storm".into(), type_name: "bytes".into(), type_hash: 1 }
}

/// Random depth, history and reliability.
fn subscriber(node: &Node, descriptor: bool, random: &mut Random) -> Subscriber {
    let reliability = [Reliability::BestEffort, Reliability::Reliable][random.below(2) as usize];
    let qos = SubscriberQos {
        depth: 2 + random.below(7) as u32,
        transient_local: random.below(4) as u32,
        publishers_max: 64,
        reliability,
        descriptor,
        ..SubscriberQos::default()
    };
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
const ROLES: [&str; 5] =
    ["publisher", "reliable publisher", "subscriber", "descriptor", "callback"];
const CHILDREN: usize = 6;
/// Samples kept for late subscribers.
const HISTORY: u32 = 3;
/// Bytes of key and number before the rest of a payload.
const HEAD: usize = 16;
/// Below the subscriber's `held_max`, so that a take is never refused.
const HELD: usize = 12;
