//! Other processes for the tests, and their roles.

#[path = "../itself/mod.rs"]
mod itself;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::io::FdFlags;
use rustix::process::{
    Pid, Resource, Rlimit, WaitId, WaitIdOptions, getrlimit, prlimit, setrlimit, waitid,
};
use rustix::time::{ClockId, clock_gettime};

use myelin_shm::Error;
use myelin_shm::event::Event;
use myelin_shm::layout::VERSION;
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};

/// Longer than anything takes.
pub const WATCHDOG: Duration = Duration::from_secs(60);
/// Environment: the role of a helper.
pub const ROLE: &str = "MYELIN_TEST_ROLE";
const FOLDER: &str = "MYELIN_TEST_FOLDER";
const GROUP: &str = "MYELIN_TEST_GROUP";

/// Waits for a condition.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < WATCHDOG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Whether the tests may act for other users; prints a message if not.
pub fn is_root(what: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        println!("skipped: {what} needs root");
    }
    root
}

/// A process; killed when dropped.
pub struct Helper {
    child: Mutex<Child>,
    pid: u32,
    stdin: Mutex<Option<ChildStdin>>,
    said: Arc<Mutex<Vec<String>>>,
}

impl Helper {
    pub fn start(role: &str, folder: &Path) -> Helper {
        Self::spawn(Self::command(None, role, folder))
    }

    /// `command` runs the arguments that are appended to it.
    pub fn start_by(command: Command, role: &str, folder: &Path) -> Helper {
        Self::spawn(Self::command(Some(command), role, folder))
    }

    pub fn start_as(role: &str, folder: &Path, uid: u32, gid: u32, group: Option<u32>) -> Helper {
        let mut command = Self::command(None, role, folder);
        if let Some(group) = group {
            command.env(GROUP, group.to_string());
        }
        command.uid(uid).gid(gid);
        Self::spawn(command)
    }

    fn command(by: Option<Command>, role: &str, folder: &Path) -> Command {
        let mut command = match by {
            None => itself::run(open_program()),
            Some(mut by) => {
                let itself = itself::itself();
                by.arg(itself.get_program()).args(itself.get_args());
                by
            }
        };
        command.args(["--exact", "helper", "--nocapture"]).env(ROLE, role).env(FOLDER, folder);
        command
    }

    fn spawn(mut command: Command) -> Helper {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        let (output, heard) = (BufReader::new(child.stdout.take().unwrap()), said.clone());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some((_, said)) = line.split_once("@ ") {
                    heard.lock().unwrap().push(said.to_owned());
                }
            }
        });
        let (pid, stdin) = (child.id(), Mutex::new(child.stdin.take()));
        Helper { child: Mutex::new(child), pid, stdin, said }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn has_said(&self, beginning: &str) -> bool {
        self.said.lock().unwrap().iter().any(|said| said.starts_with(beginning))
    }

    /// The rest of a line that begins so.
    pub fn line(&self, beginning: &str) -> Option<String> {
        let said = self.said.lock().unwrap();
        said.iter().find_map(|line| line.strip_prefix(beginning)).map(str::to_owned)
    }

    pub fn expect(&self, beginning: &str) {
        until(&format!("{beginning:?}"), || {
            let ended = self.child.lock().unwrap().try_wait().unwrap();
            let has = self.has_said(beginning);
            let said = &self.said;
            assert!(
                has || ended.is_none_or(|status| status.success()),
                "{status:?} {said:?}",
                status = ended
            );
            has
        });
    }

    /// Makes it leave in good order.
    pub fn stop(&self) {
        self.stdin.lock().unwrap().take();
        let status = self.child.lock().unwrap().wait().unwrap();
        assert!(status.success(), "{status:?} {:?}", self.said);
    }

    /// Raises its limit on open files, which only this test has changed: it was `before`.
    pub fn allow_files(&self, before: u64) {
        let limit = Rlimit { current: Some(256), maximum: Some(256) };
        let was = prlimit(Pid::from_raw(self.pid as i32), Resource::Nofile, limit).unwrap();
        assert_eq!(was.current, Some(before));
    }

    pub fn kill(&mut self) {
        let child = self.child.get_mut().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// After SIGSTOP all its threads stand still when this returns; a thread that runs when the
    /// signal is sent goes on until it has seen it.
    pub fn signal(&self, signal: i32) {
        // SAFETY: no memory is concerned; the process is our child, not yet waited for.
        assert_eq!(unsafe { libc::kill(self.pid as i32, signal) }, 0);
        if signal == libc::SIGSTOP {
            let pid = Pid::from_raw(self.pid as i32).expect("it is a process");
            waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).unwrap();
        }
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        let child = self.child.get_mut().unwrap();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// A socket connected to a node.
pub fn seqpacket(path: &Path) -> File {
    use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let socket = net::socket_with(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    File::from(socket)
}

/// Reads until the other end has closed the socket.
pub fn read_to_end(socket: &mut File) {
    let mut bytes = [0; 2048];
    while socket.read(&mut bytes).is_ok_and(|bytes| bytes > 0) {}
}

/// This test program, not by its path: another user may not pass the folders on the way to it. The
/// kernel starts an emulator, which opens the program itself, so `/proc/self/exe` would not work.
fn open_program() -> String {
    static PROGRAM: OnceLock<File> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let program = File::open(std::env::current_exe().unwrap()).unwrap();
        rustix::io::fcntl_setfd(&program, FdFlags::empty()).unwrap(); // for the started process
        program
    });
    format!("/proc/self/fd/{}", program.as_raw_fd())
}

fn say(text: impl std::fmt::Display) {
    println!("@ {text}");
    std::io::stdout().flush().unwrap();
}

/// Plays a helper's role, until its input is closed.
pub fn play(role: &str, topic: Topic) {
    if let Some(whom) = role.strip_prefix("impostor ") {
        return impostor(whom);
    }
    let folder = std::env::var_os(FOLDER).map(PathBuf::from);
    let group = std::env::var(GROUP).ok().map(|group| group.parse().unwrap());
    let name = role.to_owned();
    let options = NodeOptions { group, name, runtime_dir: folder, ..NodeOptions::default() };
    let node = match Node::open(options) {
        Ok(node) => node,
        Err(error) => return say(format_args!("error {error}")),
    };
    match role {
        "subscriber" => subscribe(&mut make_subscriber(&node, topic)),
        "poor" => poor(&node, topic, 0),
        "poor_when_linked" => poor(&node, topic, 1),
        "short_for_a_while" => short_for_a_while(&node, topic),
        "echo" => echo(&node),
        "both" => both(&node, topic),
        "idle" => idle(&node, topic),
        "one_of_20" => one_of(20, &node, topic),
        "one_of_many" => one_of_many(&node),
        "forker" => fork(&node, topic),
        _ => panic!("no such role"),
    }
}

fn is_open() -> bool {
    static CLOSED: std::sync::OnceLock<Arc<std::sync::atomic::AtomicBool>> =
        std::sync::OnceLock::new();
    let closed = CLOSED.get_or_init(|| {
        let closed = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let to_set = closed.clone();
        std::thread::spawn(move || {
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            to_set.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        closed
    });
    std::thread::sleep(Duration::from_millis(1));
    !closed.load(std::sync::atomic::Ordering::Relaxed)
}

fn make_subscriber(node: &Node, topic: Topic) -> Subscriber {
    let qos = SubscriberQos { reliability: Reliability::Reliable, ..SubscriberQos::default() };
    node.subscriber(topic, qos).unwrap()
}

fn make_publisher(node: &Node, topic: Topic) -> Publisher {
    node.publisher(topic, PublisherQos::default()).unwrap()
}

fn subscribe(subscriber: &mut Subscriber) {
    say("open");
    let mut matched = false;
    while is_open() {
        if !matched && subscriber.matched() > 0 {
            matched = true;
            say("matched");
        }
        while let Some(taken) = subscriber.reader.take().unwrap() {
            say(format_args!("took {}", taken.bytes().len()));
            if taken.lost_before > 0 {
                say(format_args!("lost {}", taken.lost_before));
            }
        }
    }
}

/// Can open no further descriptor once it has so many peers.
fn poor(node: &Node, topic: Topic, peers: usize) {
    let mut subscriber = make_subscriber(node, topic);
    is_open(); // starts the thread that listens
    say("open");
    until("its peers", || node.peers().unwrap().len() == peers);
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(3), maximum }).unwrap();
    say("poor");
    subscribe(&mut subscriber);
}

/// Gets no further descriptor once it has a peer, until a match has failed for that reason.
fn short_for_a_while(node: &Node, topic: Topic) {
    let mut subscriber = make_subscriber(node, topic);
    is_open();
    say("open");
    until("a peer", || node.peers().unwrap().len() == 1);
    let limit = Some(64);
    setrlimit(Resource::Nofile, Rlimit { current: limit, maximum: limit }).unwrap();
    let taken: Vec<_> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    say("poor");
    until("a match that fails", || {
        let is_short = |event: &Event| matches!(event, Event::Refused { .. });
        subscriber.events().iter().any(is_short)
    });
    drop(taken);
    say("relieved");
    subscribe(&mut subscriber);
}

/// Greets a node with another's id: `socket id`.
fn impostor(whom: &str) {
    let (path, id) = whom.rsplit_once(' ').unwrap();
    let mut socket = seqpacket(Path::new(path));
    let words = [u64::from_le_bytes(*b"myelinH1"), VERSION, id.parse().unwrap()];
    let words = words.iter().flat_map(|word| word.to_le_bytes());
    let hello: Vec<u8> = [1].into_iter().chain(words).chain([4, b'e', b'v', b'i', b'l']).collect();
    socket.write_all(&hello).unwrap();
    read_to_end(&mut socket);
    say("ended");
}

/// How many topics are echoed; the last topic comes in addition.
pub const ECHOES: usize = 60;

/// Samples published to the first come back on the second.
pub fn echo_topics(number: usize) -> (Topic, Topic) {
    let topic = |name| Topic { name, type_name: "T".into(), type_hash: 1 };
    (topic(format!("request {number}")), topic(format!("answer {number}")))
}

fn echo(node: &Node) {
    let make = |number| {
        let (request, answer) = echo_topics(number);
        let requests = node.subscriber(request, SubscriberQos::default()).unwrap();
        (requests, make_publisher(node, answer))
    };
    let mut echoes: Vec<_> = (0..=ECHOES).map(make).collect();
    say("open");
    while is_open() {
        for (requests, answers) in &mut echoes {
            if let Some(taken) = requests.reader.take().unwrap() {
                answers.writer.publish_copy(taken.bytes()).unwrap();
            }
        }
    }
}

fn both(node: &Node, topic: Topic) {
    let mut subscriber = make_subscriber(node, topic.clone());
    let mut publisher = make_publisher(node, topic);
    say("open");
    while is_open() {
        publisher.writer.publish_copy(&[9; 1000]).unwrap();
        while subscriber.reader.take().unwrap().is_some() {}
    }
}

/// Never reads.
fn idle(node: &Node, topic: Topic) {
    let _subscriber = make_subscriber(node, topic);
    say("open");
    while is_open() {}
}

fn one_of(count: usize, node: &Node, topic: Topic) {
    let qos = SubscriberQos { publishers_max: 64, ..SubscriberQos::default() };
    let subscriber = node.subscriber(topic.clone(), qos).unwrap();
    let publisher = make_publisher(node, topic);
    assert!(publisher.wait_for_match(count, WATCHDOG));
    assert!(subscriber.wait_for_match(count, WATCHDOG));
    assert_eq!((publisher.events().len(), subscriber.events().len()), (count, count));
    until("all peers", || node.peers().unwrap().len() == count - 1);
    let mut nodes: Vec<_> = node.peers().unwrap().iter().map(|peer| peer.node).collect();
    nodes.sort_unstable();
    nodes.dedup();
    assert_eq!(nodes.len(), count - 1);
    say("complete");
    while is_open() {}
}

/// How many processes there are, and publishers of each.
pub const NODES: &str = "MYELIN_NODES";
pub const ENDPOINTS: &str = "MYELIN_ENDPOINTS";

pub fn number(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |number| number.parse().unwrap())
}

/// When a node has last learnt that an endpoint has come or gone, on the clock of the host.
#[derive(Clone, Default)]
pub struct LastChange(Arc<AtomicU64>);

impl LastChange {
    pub fn of(node: &Node) -> LastChange {
        let last = LastChange::default();
        let LastChange(to_set) = last.clone();
        node.on_graph_change(Box::new(move || to_set.store(now_ns(), Ordering::Relaxed))).unwrap();
        last
    }

    /// Waits until the node knows so many topics. Returns when it has learnt of the last one, and the
    /// largest memory until then. A list of all topics takes time and memory, so it asks for that
    /// only when nothing has come for some time.
    pub fn until_topics(&self, node: &Node, count: usize) -> (u64, u64) {
        loop {
            std::thread::sleep(PAUSE);
            let (last_ns, peak_kb) = (self.0.load(Ordering::Relaxed), peak_kb());
            let is_pause = now_ns() - last_ns > PAUSE.as_nanos() as u64;
            if is_pause && node.topics().unwrap().len() == count {
                return (last_ns, peak_kb);
            }
        }
    }
}

pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The largest memory that this process has had, in kB.
fn peak_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim_end_matches("kB").trim().parse().unwrap()
}

fn one_of_many(node: &Node) {
    let (count, endpoints) = (number(NODES, 50), number(ENDPOINTS, 1_000));
    let last = LastChange::of(node);
    while node.peers().unwrap().len() < count {
        std::thread::sleep(PAUSE);
    }
    let begin_ns = now_ns();
    let pid = std::process::id();
    let make = |number| {
        let name = format!("{pid}/{number}");
        make_publisher(node, Topic { name, type_name: "T".into(), type_hash: 1 })
    };
    let _publishers: Vec<_> = (0..endpoints).map(make).collect();
    let made_ns = now_ns() - begin_ns;
    let (last_ns, peak_kb) = last.until_topics(node, count * endpoints);
    let cpu = clock_gettime(ClockId::ProcessCPUTime);
    let cpu_ms = cpu.tv_sec * 1_000 + cpu.tv_nsec / 1_000_000;
    say(format_args!("complete {begin_ns} {made_ns} {last_ns} {peak_kb} {cpu_ms}"));
    while is_open() {}
}

const PAUSE: Duration = Duration::from_millis(200);

fn fork(node: &Node, topic: Topic) {
    let subscriber = make_subscriber(node, topic.clone());
    // SAFETY: the child calls what this test is about, and ends without running the parent's code.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = node.publisher(topic, PublisherQos::default());
        let forked = matches!(refused, Err(Error::Forked)) && subscriber.matched() == 0;
        drop(subscriber);
        say(if forked { "child forked" } else { "child speaks" });
        // It outlives its parent for some time, as a bystander.
        std::thread::sleep(WATCHDOG / 2);
        // SAFETY: ends the process.
        unsafe { libc::_exit(0) };
    }
    while is_open() {}
}
