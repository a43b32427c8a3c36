//! Real hosts by OpenSSH: two servers of our own, each in namespaces of its own. The lab runs on the
//! first host. Nothing of this machine's ssh is used or touched: keys, configuration and known hosts
//! are in a folder of the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::namespaces::{ADDRESSES, INTERFACE, Namespaces};
use crate::support::own_host;
use crate::support::{complaint, finish, has_system, runs, start, summary, wait_for};
use tempfile::TempDir;

/// Two hosts, `a` and `b`, that can be logged into from the first.
struct Servers {
    spaces: Namespaces,
    folder: TempDir,
    _servers: [Child; 2],
}

impl Servers {
    /// `None`, after saying so, where they cannot be had.
    fn new() -> Option<Self> {
        if !Path::new(SSHD).exists() {
            eprintln!("skipped: no {SSHD}: apt-get install openssh-server");
            return None;
        }
        let (spaces, folder) = (Namespaces::new(ADDRESSES)?, tempfile::tempdir().unwrap());
        let path = |name: &str| folder.path().join(name);
        for name in ["host", "user", "stranger"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(path(name));
            assert!(keygen.status().expect("openssh-client is installed").success());
        }
        let key = fs::read_to_string(path("host.pub")).unwrap();
        let known = (0..2).map(|host| format!("{} {key}", spaces.address(host)));
        fs::write(path("known"), known.collect::<String>()).unwrap();
        fs::write(path("nobody-known"), "").unwrap();
        for (name, known, user) in [
            ("config", "known", "user"),
            ("new", "nobody-known", "user"),
            ("thief", "known", "stranger"),
        ] {
            fs::write(path(name), client_config(&spaces, &path(known), &path(user))).unwrap();
        }
        let servers = [0, 1].map(|host| serve(&spaces, host, folder.path()));
        (0..2).for_each(|host| spaces.await_listener(host, 22));
        Some(Servers { spaces, folder, _servers: servers })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `myelin bench run` of a scenario with these runs, with ssh configured by the file `config`.
    fn bench(
        &self,
        config: &str,
        hosts: &str,
        systems: &[&str],
        seconds: f64,
        runs: u32,
    ) -> Command {
        let text = format!(
            "name = \"test\"\nabout = \"a test\"\n\n[workload]\nkind = \"stream\"\n\
             payload_bytes = [4096]\nrate_hz = [100]\nduration_s = {seconds}\n\
             warmup_messages = 10\n\n[plan]\nsystems = {systems:?}\ntunings = [\"default\"]\n\
             topology = \"two-hosts\"\nruns = {runs}\n"
        );
        fs::write(self.path("scenario.toml"), text).unwrap();
        let mut command = self.spaces.program(0, Path::new(env!("CARGO_BIN_EXE_myelin")));
        command.args(["bench", "run"]).arg(self.path("scenario.toml"));
        command.args(["--hosts", hosts, "--plain", "--out"]).arg(self.path("out"));
        command.env("TMPDIR", self.path(TEMPORARY[0]));
        command.env("MYELIN_SSH", format!("ssh -F {}", self.path(config).display()));
        command
    }

    /// A session that cannot begin: what it says.
    fn refused(&self, config: &str, hosts: &str) -> String {
        let output = finish(&mut self.bench(config, hosts, &["os.tcp"], 1.0, 1));
        assert_eq!(output.status.code(), Some(2), "{}", complaint(&output));
        assert!(!self.path("out").exists());
        self.assert_left_nothing();
        complaint(&output)
    }

    /// No file of ours, and no process but the two servers.
    fn assert_left_nothing(&self) {
        for (host, folder) in TEMPORARY.into_iter().enumerate() {
            let folder = self.path(folder);
            wait_for("nothing left behind", || {
                let is_empty = fs::read_dir(&folder).unwrap().next().is_none();
                (is_empty && self.spaces.processes(host).len() == 1).then_some(())
            });
        }
    }
}

/// Everything that ssh would otherwise have from the user's files.
fn client_config(spaces: &Namespaces, known: &Path, user: &Path) -> String {
    let [a, b] = [0, 1].map(|host| spaces.address(host));
    let (known, user) = (known.display(), user.display());
    format!(
        "Host a\nHostName {a}\nHost b\nHostName {b}\nHost *\nUser root\nIdentityFile {user}\n\
         IdentitiesOnly yes\nIdentityAgent none\nUserKnownHostsFile {known}\n\
         GlobalKnownHostsFile /dev/null\n"
    )
}

/// A server on `host`, with a folder of its own for temporary files.
fn serve(spaces: &Namespaces, host: usize, folder: &Path) -> Child {
    let temporary = folder.join(TEMPORARY[host]);
    fs::create_dir(&temporary).unwrap();
    let (config, at) = (folder.join(format!("sshd-{host}")), folder.display());
    let text = format!(
        "HostKey {at}/host\nAuthorizedKeysFile {at}/user.pub\nPidFile none\nStrictModes no\n\
         UsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nLogLevel ERROR\nSetEnv TMPDIR={}\n",
        temporary.display()
    );
    fs::write(&config, text).unwrap();
    // Where it gives up its rights it wants a folder, which is seen in here alone.
    spaces.run(host, &["sh", "-c", "mount -t tmpfs tmpfs /run && mkdir /run/sshd"]);
    let mut server = spaces.program(host, Path::new(SSHD));
    server.args(["-D", "-e", "-f"]).arg(config).stdin(Stdio::null());
    server.spawn().expect("util-linux is installed")
}

/// Ended well: what it has measured.
fn succeeded(servers: &Servers, output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", complaint(output));
    servers.assert_left_nothing();
    summary(&servers.path("out"))
}

#[test]
fn two_hosts_are_reached_by_ssh_and_left_as_they_were() {
    let _host = own_host::enter();
    let Some(servers) = Servers::new() else { return };
    let mut bench = servers.bench("config", "ssh:a,ssh:root@b:22", &["os.udp", "os.tcp"], 1.0, 1);
    let measured = succeeded(&servers, &finish(&mut bench));
    let cells = measured["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    for cell in cells {
        assert_eq!(cell["topology"], "two-hosts");
        assert_eq!((&cell["valid"], &cell["lost"]), (&true.into(), &0.into()), "{cell}");
        assert!(cell["one_way_us"]["p50"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

#[test]
fn one_host_may_be_the_local_one() {
    let _host = own_host::enter();
    let Some(servers) = Servers::new() else { return };
    let mut bench = servers.bench("config", "local,ssh:b", &["os.tcp"], 0.5, 1);
    let measured = succeeded(&servers, &finish(&mut bench));
    assert_eq!(measured["cells"][0]["valid"], true, "{measured}");
}

#[test]
fn a_host_that_cannot_be_logged_into_is_named_with_the_remedy() {
    let _host = own_host::enter();
    let Some(servers) = Servers::new() else { return };
    for (config, hosts, said, remedy) in [
        (
            "config",
            "ssh:a,ssh:nowhere",
            "nowhere: ssh: Could not resolve hostname",
            "`ssh nowhere`",
        ),
        ("config", "ssh:a,ssh:b:2222", "port 2222: Connection refused", "openssh-server"),
        ("new", "ssh:a,ssh:b", "host a: Host key verification failed", "log in once by hand"),
        ("thief", "ssh:a,ssh:b", "Permission denied (publickey)", "ssh-copy-id a"),
    ] {
        let complaint = servers.refused(config, hosts);
        assert!(complaint.contains(said) && complaint.contains(remedy), "{complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
    }
    let mut without = servers.bench("config", "ssh:a,ssh:b", &["os.tcp"], 1.0, 1);
    let output = finish(without.env("MYELIN_SSH", "/nowhere/ssh"));
    let said = complaint(&output);
    assert!(
        said.contains("/nowhere/ssh is not installed: apt-get install openssh-client"),
        "{said}"
    );
}

#[test]
fn a_host_with_another_key_than_known_is_refused() {
    let _host = own_host::enter();
    let Some(servers) = Servers::new() else { return };
    let stranger = fs::read_to_string(servers.path("stranger.pub")).unwrap();
    let known = (0..2).map(|host| format!("{} {stranger}", servers.spaces.address(host)));
    fs::write(servers.path("known"), known.collect::<String>()).unwrap();
    let complaint = servers.refused("config", "ssh:a,ssh:b");
    assert!(complaint.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"), "{complaint}");
    assert!(complaint.contains("ssh-keygen -R"), "{complaint}");
}

#[test]
fn systems_missing_on_a_host_are_left_out_and_reported() {
    let _host = own_host::enter();
    if !has_system("cyclonedds.udp") {
        return;
    }
    let Some(servers) = Servers::new() else { return };
    let library = "for it in /usr/lib/*/libddsc.so.0*; do mount --bind /dev/null $it; done";
    servers.spaces.run(1, &["sh", "-c", library]);
    let systems = ["os.tcp", "cyclonedds.udp"];
    let output = finish(&mut servers.bench("config", "ssh:a,ssh:b", &systems, 0.5, 1));
    let measured = succeeded(&servers, &output);
    assert_eq!(measured["cells"].as_array().unwrap().len(), 1, "{measured}");
    let said = complaint(&output);
    assert!(said.contains("cyclonedds.udp left out of `test`: host b: describe: "), "{said}");
    assert!(said.contains("libddsc.so"), "{said}");
}

/// Also that the host notices by itself: nothing tells it that the lab is out of reach.
#[test]
fn a_connection_that_breaks_ends_the_session_and_leaves_nothing() {
    let _host = own_host::enter();
    let Some(servers) = Servers::new() else { return };
    let lab = start(&mut servers.bench("config", "ssh:a,ssh:b", &["os.tcp"], 5.0, 3));
    let out = servers.path("out");
    wait_for("the first run", || (runs(&out).len() == 1).then_some(()));
    let before_the_second = received_bytes(&servers.spaces);
    wait_for("messages of the second", || {
        (received_bytes(&servers.spaces) > before_the_second + 400_000).then_some(())
    });
    servers.spaces.run(1, &["ip", "link", "set", INTERFACE, "down"]);
    let output = lab.wait_with_output().unwrap();
    let said = complaint(&output);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("the connection to host b is lost"), "{said}");
    assert!(
        said.contains(&format!(
            "continue with: {} bench run --resume ",
            env!("CARGO_BIN_EXE_myelin")
        )),
        "{said}"
    );
    let records = runs(&out);
    assert_eq!(records.len(), 2, "{said}");
    assert!(records[0]["failure"].is_null(), "{}", records[0]);
    assert!(
        records[1]["failure"].as_str().unwrap().contains("the connection to host b is lost"),
        "{}",
        records[1]
    );
    let begin = Instant::now();
    let agents = || {
        let lines = servers.spaces.processes(1).into_iter();
        let line = |pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        lines.filter(|pid| line(*pid).contains("agent") || line(*pid).contains("driver")).count()
    };
    let folder = servers.path(TEMPORARY[1]);
    while agents() > 0 || fs::read_dir(&folder).unwrap().next().is_some() {
        assert!(begin.elapsed() < Duration::from_secs(90), "the host keeps what was put there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// What has come to the second host through the veth pair.
fn received_bytes(spaces: &Namespaces) -> u64 {
    let text = spaces.run(1, &["cat", "/proc/net/dev"]);
    let line = text.lines().find_map(|line| line.trim().strip_prefix(INTERFACE));
    let bytes = line.and_then(|line| line.trim_start_matches(':').split_whitespace().next());
    bytes.and_then(|bytes| bytes.parse().ok()).expect("a count of bytes")
}

const SSHD: &str = "/usr/sbin/sshd";
const TEMPORARY: [&str; 2] = ["temporary-a", "temporary-b"];
