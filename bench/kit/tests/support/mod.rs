//! A small lab for tests: starts a driver's executable and speaks the line protocol with it.
//!
//! The tests of the kit and of the drivers share it (`#[path]`); not every test uses all of it.
//! Every wait is limited: it fails the test after [`WATCHDOG`].

#![allow(dead_code)]

pub mod hosts;
pub mod many_to_many;
pub mod namespaces;
pub mod run_folder;
pub mod streams;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command as Program, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{
    Arrivals, Command, DEPTH_DEFAULT, Description, Done, Event, PROTOCOL, Prepare, Reliability,
    Role, Touch, Workload,
};
use myelin_bench_kit::samples::{Record, SampleFile};
use myelin_bench_kit::{Reason, clock};

/// Limit of every wait.
pub const WATCHDOG: Duration = Duration::from_secs(60);
/// The lab's limit for the end of the stream in a reliable stream.
const END_OF_STREAM: Duration = Duration::from_secs(10);

/// A run's `prepare` with values that suit most tests.
pub fn prepare(system: &str, role: Role) -> Prepare {
    Prepare {
        protocol: PROTOCOL,
        system: system.into(),
        role,
        run: "test".into(),
        domain: 0,
        payload_bytes: 64,
        messages: 100,
        duration_ns: 0,
        warmup_messages: 10,
        warmup_ns: 0,
        rate_hz: None,
        reply_timeout_ns: 10_000_000_000,
        match_timeout_ns: 10_000_000_000,
        record_every: 1,
        parts_every: 1,
        ring: false,
        samples: None,
        directory: ".".into(),
        lock_memory: false,
        seed: 1,
        workload: Workload::Roundtrip,
        touch: Touch::Stamps,
        arrivals: Arrivals::default(),
        frame: None,
        pong_samples: None,
        pong_cpu: None,
        pong_fifo: None,
        subscribers: 1,
        publishers: 1,
        index: 0,
        topics: 1,
        reliability: Default::default(),
        depth: DEPTH_DEFAULT,
        recording: None,
        taken_counter: None,
        network: None,
        identity: None,
        enclave: None,
        options: serde_json::Map::new(),
    }
}

/// A name that no other current test on this host uses.
pub fn unique_run() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("test-{}-{number}", std::process::id())
}

/// Whether the driver's system can run; if not, says what is missing.
pub fn is_here(executable: &Path, system: &str) -> bool {
    let systems = describe(executable).systems;
    let found = systems.into_iter().find(|it| it.name == system).expect("it is listed");
    found.missing.inspect(|missing| eprintln!("skipped: {system}: {missing}")).is_none()
}

/// The systems that an executable describes.
pub fn describe(executable: &Path) -> Description {
    let output = Program::new(executable).arg("describe").output().expect("the driver starts");
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).expect("a description")
}

/// Whether the first system of a driver has its middleware; prints a message if not.
pub fn is_built_in(executable: &Path) -> bool {
    let missing = describe(executable).systems.swap_remove(0).missing;
    if let Some(missing) = &missing {
        println!("skipped: {missing}");
    }
    missing.is_none()
}

/// Makes a driver remove what killed processes have left behind.
pub fn clean(executable: &Path) {
    let status = Program::new(executable).arg("clean").status().expect("the driver starts");
    assert!(status.success());
}

/// A sample file without a name, like the lab's.
pub struct Samples {
    file: File,
    map: SampleFile,
}

impl Samples {
    pub fn new(capacity: u64) -> Self {
        let file = tempfile::tempfile().expect("a temporary file");
        let map = SampleFile::create(&file, capacity).expect("a sample file");
        Samples { file, map }
    }

    /// Its path for another process, while this one lives.
    pub fn path(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd()).into()
    }

    pub fn records(&self) -> Vec<Record> {
        self.map.records()
    }

    /// Number of complete records.
    pub fn written(&self) -> u64 {
        self.map.written() as u64
    }

    /// Waits until there is at least one record: messages are exchanged.
    pub fn await_first(&self) {
        let give_up = Instant::now() + WATCHDOG;
        while self.map.written() == 0 {
            assert!(Instant::now() < give_up, "no message was answered");
            std::thread::yield_now();
        }
    }
}

/// A driver's process in one role. Killed when dropped.
pub struct Process {
    child: Child,
    commands: Option<ChildStdin>,
    events: Receiver<Event>,
}

impl Process {
    /// Starts the executable and tells it to prepare.
    pub fn start(executable: &Path, prepare: &Prepare) -> Self {
        Process::start_by(Program::new(executable), prepare)
    }

    /// Starts one role without another side. The samples must exist until it has ended.
    pub fn alone(executable: &Path, prepare: &Prepare) -> (Self, Samples) {
        let samples = Samples::new(1);
        let prepare = Prepare {
            run: unique_run(),
            samples: Some(samples.path()),
            match_timeout_ns: 50_000_000,
            ..prepare.clone()
        };
        (Process::start(executable, &prepare), samples)
    }

    /// The error of a run that is refused, or whose other side does not come: message, remedy and key.
    pub fn refusal(executable: &Path, prepare: &Prepare) -> [String; 3] {
        let (mut process, _samples) = Process::alone(executable, prepare);
        let error = process.expect_error();
        assert!(!process.expect_end().success());
        error
    }

    /// Like `start`, with a program that executes the executable.
    pub fn start_by(mut program: Program, prepare: &Prepare) -> Self {
        let mut child = program
            .arg("run")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the driver starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).unwrap_or_else(|error| {
                    panic!("not an event: {error}: {line}");
                });
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let commands = child.stdin.take();
        let mut this = Process { child, commands, events };
        this.say(&Command::Prepare(Box::new(prepare.clone())));
        this
    }

    pub fn say(&mut self, command: &Command) {
        let line = serde_json::to_string(command).expect("commands serialise");
        let commands = self.commands.as_mut().expect("not hung up");
        // The last event of a driver that has ended says why.
        let _ = writeln!(commands, "{line}").and_then(|()| commands.flush());
    }

    /// The next event; `None` if the driver has ended.
    pub fn event(&self) -> Option<Event> {
        match self.events.recv_timeout(WATCHDOG) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("the driver says nothing"),
        }
    }

    pub fn expect_ready(&self) {
        match self.event() {
            Some(Event::Ready(_)) => {}
            other => panic!("expected ready, got {other:?}"),
        }
    }

    pub fn expect_done(&self) -> Done {
        match self.event() {
            Some(Event::Done(done)) => done,
            other => panic!("expected done, got {other:?}"),
        }
    }

    /// Message, remedy and key of the next event, which must be an error.
    pub fn expect_error(&self) -> [String; 3] {
        match self.event() {
            Some(Event::Error(Reason { message, remedy, key })) => [message, remedy, key],
            other => panic!("expected an error, got {other:?}"),
        }
    }

    pub fn go(&mut self) {
        self.say(&Command::Start { at_ns: clock::monotonic_ns() });
    }

    /// Closes the driver's standard input, as the end of the lab does.
    pub fn hang_up(&mut self) {
        self.commands = None;
    }

    /// The names of the process's threads.
    pub fn threads(&self) -> Vec<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).expect("it runs");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        let names = tasks.map_while(Result::ok).map(name).map_while(Result::ok);
        names.map(|name| name.trim().to_owned()).collect()
    }

    /// SIGSTOP: the process stands still until it is resumed.
    pub fn pause(&self) {
        self.signal("STOP");
    }

    /// SIGCONT.
    pub fn resume(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.child.id());
        let status = Program::new("sh").args(["-c", &kill]).status().expect("there is a shell");
        assert!(status.success());
    }

    /// Tells it to stop and waits for its end.
    pub fn stop_and_expect_end(&mut self) {
        self.say(&Command::Stop);
        assert!(self.expect_end().success());
    }

    /// Ends a pong of a stream while the publishers still exist: if one ended, messages that a busy
    /// pong has not read would be lost. Waits until all publishers have sent their last message, which
    /// may be lost, then stops pong.
    pub fn stop_at_goodbye(&mut self) -> Done {
        let done = match self.events.recv_timeout(END_OF_STREAM) {
            Ok(Event::Done(done)) => Some(done),
            Err(RecvTimeoutError::Timeout) => None,
            other => panic!("expected done, got {other:?}"),
        };
        self.say(&Command::Stop);
        let done = done.unwrap_or_else(|| self.expect_done());
        assert!(self.expect_end().success());
        done
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.child.kill().expect("the driver can be killed");
        self.child.wait().expect("the driver can be waited for");
    }

    /// Waits for the end of the process.
    pub fn expect_end(&mut self) -> ExitStatus {
        let give_up = Instant::now() + WATCHDOG;
        loop {
            if let Some(status) = self.child.try_wait().expect("the driver can be waited for") {
                return status;
            }
            assert!(Instant::now() < give_up, "the driver does not end");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ping and pong of one run, both ready.
pub struct Pair {
    pub ping: Process,
    pub pong: Process,
    pub ping_samples: Samples,
    pub pong_samples: Samples,
}

impl Pair {
    /// Starts both roles of `prepare` with room for `capacity` records each.
    pub fn open(executable: &Path, prepare: &Prepare, capacity: u64) -> Self {
        let pair = Pair::start(prepare, capacity, |prepare| Process::start(executable, prepare));
        pair.ping.expect_ready();
        pair.pong.expect_ready();
        pair
    }

    /// Starts both roles of `prepare` without waiting for their first event.
    pub fn start(prepare: &Prepare, capacity: u64, start: impl Fn(&Prepare) -> Process) -> Self {
        let (ping_samples, pong_samples) = (Samples::new(capacity), Samples::new(capacity));
        let run = unique_run();
        let start = |role, samples: &Samples| {
            let (run, samples) = (run.clone(), Some(samples.path()));
            start(&Prepare { role, run, samples, ..prepare.clone() })
        };
        let ping = start(Role::Ping, &ping_samples);
        let pong = start(Role::Pong, &pong_samples);
        Pair { ping, pong, ping_samples, pong_samples }
    }

    /// Runs the round trips of `prepare`, and checks that each message is answered once and
    /// undamaged.
    pub fn exchange(executable: &Path, prepare: &Prepare) -> Self {
        let messages = prepare.messages;
        let what = format!("{} with {} B", prepare.system, prepare.payload_bytes);
        let mut pair = Pair::open(executable, prepare, messages);
        let (ping, pong) = pair.finish();
        assert_eq!(ping.sent, messages, "{what}");
        for done in [&ping, &pong] {
            let bad = [done.lost, done.duplicates, done.out_of_order, done.corrupt];
            assert_eq!((done.received, bad), (messages, [0; 4]), "{what}");
        }
        pair
    }

    /// Both roles of `prepare`, exchanging messages until the test ends them.
    pub fn endless(executable: &Path, prepare: &Prepare) -> Self {
        let prepare = Prepare {
            messages: 0,
            record_every: u64::MAX,
            reply_timeout_ns: 1_000_000_000,
            ..prepare.clone()
        };
        let mut pair = Pair::open(executable, &prepare, 2);
        pair.go();
        pair.ping_samples.await_first();
        pair
    }

    /// Ends both roles in the way their lab's end does, as at Ctrl-C.
    pub fn hang_up(&mut self) {
        for role in [&mut self.ping, &mut self.pong] {
            role.hang_up();
            role.expect_end();
        }
    }

    /// Starts both.
    pub fn go(&mut self) {
        self.pong.go();
        self.ping.go();
    }

    /// Runs to the end and stops both in the lab's order, since messages that pong has not read may
    /// vanish with ping.
    pub fn finish(&mut self) -> (Done, Done) {
        self.go();
        self.end(Reliability::BestEffort)
    }

    /// Waits for the end and stops both. In a reliable stream pong has received the end of the stream before
    /// it is stopped, so that no message is on its way any more.
    pub fn end(&mut self, reliability: Reliability) -> (Done, Done) {
        let ping_done = self.ping.expect_done();
        let heard = (reliability == Reliability::Reliable).then(|| self.pong.expect_done());
        self.pong.say(&Command::Stop);
        let pong_done = heard.unwrap_or_else(|| self.pong.expect_done());
        assert!(self.pong.expect_end().success());
        self.ping.say(&Command::Stop);
        assert!(self.ping.expect_end().success());
        (ping_done, pong_done)
    }
}

/// The one process of a run in one process, ready.
pub struct Solo {
    pub ping: Process,
    pub ping_samples: Samples,
    pub pong_samples: Samples,
}

impl Solo {
    /// Starts `prepare` with room for `capacity` records at each end.
    pub fn open(executable: &Path, prepare: &Prepare, capacity: u64) -> Self {
        let solo = Solo::start(executable, prepare, capacity);
        solo.ping.expect_ready();
        solo
    }

    /// Like `open`, without waiting for the first event.
    pub fn start(executable: &Path, prepare: &Prepare, capacity: u64) -> Self {
        let (ping_samples, pong_samples) = (Samples::new(capacity), Samples::new(capacity));
        let prepare = Prepare {
            run: unique_run(),
            samples: Some(ping_samples.path()),
            pong_samples: Some(pong_samples.path()),
            ..prepare.clone()
        };
        let ping = Process::start(executable, &prepare);
        Solo { ping, ping_samples, pong_samples }
    }

    /// Runs to the end; returns the counts of both ends.
    pub fn finish(&mut self) -> (Done, Done) {
        self.ping.go();
        let mut done = self.ping.expect_done();
        let threads = self.ping.threads();
        assert!(!threads.iter().any(|name| name == "pong"), "{threads:?}");
        self.ping.say(&Command::Stop);
        assert!(self.ping.expect_end().success());
        let pong = done.pong.take().expect("both ends are in one process");
        (done, *pong)
    }
}
