//! Two hosts for a test: network namespaces with a veth pair between them, each with a `/dev/shm` of
//! its own. They have no names and vanish with their last process. Needs root.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

use super::WATCHDOG;

/// Both, linked.
pub struct Hosts {
    pub one: Host,
    pub other: Host,
}

/// A host: a process that keeps its namespaces.
pub struct Host(Process);

/// A process on a host: this test's executable in a role. Killed when it is dropped.
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    role: String,
}

impl Hosts {
    /// `None`, with a printed reason, without the right to make them.
    pub fn new() -> Option<Hosts> {
        let hosts = Hosts::apart()?;
        hosts.connect();
        Some(hosts)
    }

    /// Both, without a link.
    pub fn apart() -> Option<Hosts> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: network namespaces are for root");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let node = myelin::Node::builder("asks").runtime_dir(folder.path()).network(true).open();
        if let Err(missing) = node {
            println!("skipped: {missing}");
            return None;
        }
        Some(Hosts { one: Host::new(), other: Host::new() })
    }

    /// Both, in two subnets, and the router between them, which forwards no multicast.
    pub fn routed() -> Option<(Hosts, Host)> {
        let hosts = Hosts::apart()?;
        let router = Host::new();
        let pid = router.0.child.id().to_string();
        for (host, address, gateway, name) in [
            (&hosts.one, ONE, "10.77.0.254", "to-one"),
            (&hosts.other, ROUTED_OTHER, "10.78.0.254", "to-other"),
        ] {
            let peer = ["type", "veth", "peer", "name", name, "netns", &pid];
            host.ip(&[&["link", "add", LINK][..], &peer].concat());
            router.ip(&["addr", "add", &format!("{gateway}/24"), "dev", name]);
            router.ip(&["link", "set", name, "up"]);
            host.ip(&["link", "set", LINK, "up"]);
            host.address("add", address);
            host.ip(&["route", "add", "default", "via", gateway]);
        }
        let mut forward = router.command("sh");
        forward.args(["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
        assert!(forward.status().unwrap().success());
        Some((hosts, router))
    }

    /// Makes the link.
    pub fn connect(&self) {
        let Hosts { one, other } = self;
        let peer = other.0.child.id().to_string();
        let netns = ["type", "veth", "peer", "name", LINK, "netns", &peer];
        one.ip(&[&["link", "add", LINK][..], &netns].concat());
        for (host, address) in [(one, ONE), (other, OTHER)] {
            host.ip(&["link", "set", LINK, "up"]);
            host.address("add", address);
        }
    }

    /// Takes the link away, with the interfaces at its ends.
    pub fn disconnect(&self) {
        self.one.ip(&["link", "del", LINK]);
    }

    /// Limits the rate of the link, from `one`, in Mbit/s.
    pub fn limit(&self, mbit: u64) {
        let mut tc = self.one.command("tc");
        tc.args(["qdisc", "add", "dev", LINK, "root", "tbf", "rate", &format!("{mbit}mbit")]);
        tc.args(["burst", "16kb", "limit", "1500kb"]);
        assert!(tc.status().unwrap().success());
    }

    /// Cuts the link, or mends it.
    pub fn link(&self, up: bool) {
        self.one.ip(&["link", "set", LINK, if up { "up" } else { "down" }]);
    }
}

impl Host {
    fn new() -> Host {
        let mut command = executable();
        // SAFETY: a system call between fork and exec.
        unsafe {
            command.pre_exec(|| {
                let namespaces = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWIPC;
                match libc::unshare(namespaces | libc::CLONE_NEWUTS) {
                    0 => Ok(()),
                    _ => Err(std::io::Error::last_os_error()),
                }
            });
        }
        let mut host = Host(Process::start(command, "be_a_host"));
        host.0.hears("up");
        host
    }

    /// Starts a role on it.
    pub fn run(&self, role: &str) -> Process {
        self.run_with(role, "")
    }

    /// As [`run`](Self::run), with a configuration of CycloneDDS.
    pub fn run_with(&self, role: &str, configuration: &str) -> Process {
        let mut command = self.command(std::env::current_exe().unwrap());
        command.env("CYCLONEDDS_URI", configuration);
        Process::start(command, role)
    }

    /// As [`run`](Self::run), with these variables and standard error.
    pub fn run_as(
        &self,
        role: &str,
        variables: &[(&str, &OsStr)],
        stderr: impl Into<Stdio>,
    ) -> Process {
        let mut command = self.command(std::env::current_exe().unwrap());
        command.envs(variables.iter().copied()).stderr(stderr);
        Process::start(command, role)
    }

    /// Starts a role on it that looks for these hosts.
    pub fn run_with_peers(&self, role: &str, peers: &str) -> Process {
        let mut command = self.command(std::env::current_exe().unwrap());
        command.env("MYELIN_PEERS", peers);
        Process::start(command, role)
    }

    /// A program on it, to be completed with arguments and started. Its working directory is the
    /// root.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.0.child.id().to_string(), "-n", "-m", "-i", "-u", "--"]);
        command.arg(program);
        command
    }

    /// What is in its `/dev/shm`.
    pub fn leftovers(&self) -> Vec<String> {
        let root = format!("/proc/{}/root/dev/shm", self.0.child.id());
        let entries = std::fs::read_dir(root).unwrap();
        entries.map(|entry| entry.unwrap().path().display().to_string()).collect()
    }

    /// Gives its end of the link an address (`add`) or takes it away (`del`).
    pub fn address(&self, verb: &str, address: &str) {
        self.ip(&["addr", verb, &format!("{address}/24"), "dev", LINK]);
    }

    /// Has datagrams of any size go in one packet.
    pub fn send_whole_datagrams(&self) {
        self.ip(&["link", "set", LINK, "mtu", "65535"]);
    }

    /// Runs `ip` on it.
    pub fn ip(&self, arguments: &[&str]) {
        let mut command = Command::new("nsenter");
        command.args(["-t", &self.0.child.id().to_string(), "-n", "--", "ip"]);
        assert!(command.args(arguments).status().unwrap().success(), "ip {arguments:?}");
    }
}

impl Process {
    fn start(mut command: Command, role: &str) -> Process {
        command.args(["--exact", "the_other_side", "--nocapture"]).env(ROLE, role);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (to, lines) = channel();
        std::thread::spawn(move || {
            let all = BufReader::new(stdout).lines().map_while(Result::ok);
            all.take_while(|line| to.send(line.clone()).is_ok()).for_each(drop);
        });
        Process { child, stdin, lines, role: role.to_string() }
    }

    /// Waits until it has printed this line; other lines are skipped.
    pub fn hears(&mut self, line: &str) {
        loop {
            match self.lines.recv_timeout(WATCHDOG) {
                Ok(said) if said == line => return,
                Ok(_) => {}
                Err(error) => panic!("{}: waited in vain for {line:?}: {error}", self.role),
            }
        }
    }

    /// Sends it a line, for its [`heard`].
    pub fn say(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Waits until it has ended well.
    pub fn ends(mut self) {
        drop(self.stdin.take());
        while self.lines.recv_timeout(WATCHDOG).is_ok() {}
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{} has failed: {status}", self.role);
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: it is a child that has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as libc::pid_t, signal) }, 0);
    }

    /// Stops it, until it gets `SIGCONT`.
    pub fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let (pid, mut status) = (self.child.id() as libc::pid_t, 0);
        // SAFETY: it is a child that has not been waited for; the status is ours.
        assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, libc::WUNTRACED) }, pid);
        assert!(libc::WIFSTOPPED(status), "{} has ended", self.role);
    }

    /// Kills it.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn executable() -> Command {
    Command::new(std::env::current_exe().unwrap())
}

/// The role this process has been started in.
pub fn role() -> Option<String> {
    std::env::var(ROLE).ok()
}

/// Sends the test a line.
pub fn say(line: &str) {
    // The harness may have begun a line; and a test's output must not be captured.
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n{line}").and_then(|()| stdout.flush()).unwrap();
}

/// Waits until the test has sent this line.
pub fn heard(line: &str) {
    let mut said = String::new();
    while std::io::stdin().read_line(&mut said).unwrap() > 0 {
        if said.trim() == line {
            return;
        }
        said.clear();
    }
    panic!("the test has ended without {line:?}");
}

/// The role of a host itself.
pub fn be_a_host() {
    let run = |program: &str, arguments: &[&str]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{arguments:?}");
    };
    run("mount", &["--make-rprivate", "/"]);
    run("mount", &["-t", "tmpfs", "tmpfs", "/dev/shm"]);
    run("ip", &["link", "set", "lo", "up"]);
    say("up");
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

const ROLE: &str = "MYELIN_TEST_ROLE";
pub const LINK: &str = "veth0";
pub const ONE: &str = "10.77.0.1";
const OTHER: &str = "10.77.0.2";
/// The other host's address behind a router.
pub const ROUTED_OTHER: &str = "10.78.0.2";
