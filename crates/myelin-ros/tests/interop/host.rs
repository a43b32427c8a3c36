//! Hosts: each test has one of its own, and may make a second one beside it. A host is a network, a
//! `/dev/shm` and a name, in anonymous namespaces, which vanish with their last process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs `body` of the test called `test` on a host of its own: in a process of its own, with all of
/// its children gone afterwards. Skipped, with a printed reason, where namespaces cannot be made.
pub fn on_own_host(test: &str, body: impl FnOnce()) {
    on_own_host_for(Duration::ZERO, test, body);
}

/// The same, for a test that needs so much time.
pub fn on_own_host_for(duration: Duration, test: &str, body: impl FnOnce()) {
    if is_inside() {
        return body();
    }
    let fresh = ["--net", "--mount", "--ipc", "--uts", "--pid", "--fork", "--mount-proc"];
    let possible = Command::new("unshare").args(fresh).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("skipped: {test} needs the right to make namespaces; run it as root");
        return;
    }
    let mut command = Command::new("unshare");
    command.args(fresh).args(["--kill-child", "sh", "-ec", HOST, "sh"]);
    command.arg(std::env::current_exe().unwrap()).args([test, "--exact", "--nocapture"]);
    let mut child = command.env(INSIDE, "1").stdin(Stdio::null()).spawn().unwrap();
    let limit = duration + WATCHDOG;
    let until = Instant::now() + limit;
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if Instant::now() < until => std::thread::sleep(Duration::from_millis(20)),
            None => {
                let _ = child.kill();
                panic!("{test} has not ended after {limit:?}");
            }
        }
    };
    assert!(status.success(), "{test}: {status}; its words are above");
}

/// Whether this is the process of a test on a host of its own.
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Checks that a process has threads of this name, and that they take no signals: the program may
/// wait for signals in a thread of its own (`sigwait`), as ddsperf does.
#[allow(dead_code)]
pub fn takes_no_signals(process: u32, name: &str) {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let of_it =
        tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("status")).unwrap());
    let named = |status: &String| status.lines().next() == Some(&format!("Name:\t{name}"));
    let blocked = |status: String| {
        let bits = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap().trim();
        u64::from_str_radix(bits, 16).unwrap()
    };
    let threads: Vec<u64> = of_it.filter(named).map(blocked).collect();
    assert!(!threads.is_empty(), "no thread {name}");
    for (number, signal) in [(2, "SIGINT"), (15, "SIGTERM")] {
        assert!(threads.iter().all(|it| it >> (number - 1) & 1 == 1), "{signal}: {threads:x?}");
    }
}

/// Before a command: it runs with a `/dev/shm` of its own.
#[allow(dead_code)] // The interoperation tests do not ask for it.
pub const OWN_SHARED_MEMORY: [&str; 6] =
    ["unshare", "--mount", "sh", "-ec", r#"mount -t tmpfs tmpfs /dev/shm; exec "$@""#, "sh"];
/// Before a command: it runs as another user, who can still read root's folders, because the
/// programs are there.
#[allow(dead_code)]
pub const ANOTHER_USER: [&str; 6] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
    "--inh-caps=-all,+dac_read_search",
    "--ambient-caps=-all,+dac_read_search",
];

/// Where a peer runs.
pub enum Host {
    /// With the test.
    Same,
    /// At the other end of a veth pair; as long as this process lives.
    Other(Child),
}

impl Host {
    /// A second host. This one's end of the pair is [`INTERFACE`].
    pub fn other() -> Host {
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--ipc", "--uts", "sh", "-ec", HOST, "sh"]);
        command.args(["sh", "-ec", "echo up; read gone"]);
        let mut holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let _ = BufReader::new(holder.stdout.take().unwrap()).read_line(&mut line);
        assert_eq!(line, "up\n", "the second host does not come up");
        let host = Host::Other(holder);
        let Host::Other(holder) = &host else { unreachable!("just made") };
        let pid = holder.id();
        let here = |words: String| ip(Command::new("ip"), &words);
        let there = |words: String| ip(host.command(Path::new("ip")), &words);
        here(format!("link add {INTERFACE} type veth peer name {INTERFACE} netns {pid}"));
        here(format!("addr add {HERE}/24 dev {INTERFACE}"));
        there(format!("addr add {THERE}/24 dev {INTERFACE}"));
        here(format!("link set {INTERFACE} up"));
        there(format!("link set {INTERFACE} up"));
        // Fast DDS uses no interface that is not running.
        let show = format!("link show {INTERFACE}");
        while [here(show.clone()), there(show.clone())]
            .iter()
            .any(|link| !link.contains("state UP"))
        {
            std::thread::sleep(Duration::from_millis(5));
        }
        host
    }

    /// Runs a program there.
    pub fn command(&self, program: &Path) -> Command {
        let Host::Other(holder) = self else { return Command::new(program) };
        let mut command = Command::new("nsenter");
        command.args(["--target", &holder.id().to_string(), "--net", "--mount", "--ipc", "--uts"]);
        command.arg(program);
        command
    }

    /// The interface that leads from one to the other, on both.
    pub fn interface(&self) -> &'static str {
        match self {
            Host::Same => "lo",
            Host::Other(_) => INTERFACE,
        }
    }

    /// The peer's address.
    pub fn address(&self) -> &'static str {
        match self {
            Host::Same => "127.0.0.1",
            Host::Other(_) => THERE,
        }
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Host::Other(holder) = self {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// What `ip` says.
fn ip(mut command: Command, words: &str) -> String {
    let output = command.args(words.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {words}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The commands that make fresh namespaces a host, for the following program.
const HOST: &str = r#"mount -t tmpfs tmpfs /dev/shm; ip link set lo up; exec "$@""#;
const INSIDE: &str = "MYELIN_ROS_ON_OWN_HOST";
const INTERFACE: &str = "veth";
const HERE: &str = "10.77.0.1";
const THERE: &str = "10.77.0.2";
/// For a whole test beyond its own duration, on a machine that is busy with other things.
const WATCHDOG: Duration = Duration::from_secs(600);
