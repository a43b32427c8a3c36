//! `myelin why` on a robot of six processes, in which one thing at a time is wrong.

mod part;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::itself;

/// The six: a camera, a lidar, an IMU, a detector, a planner, and motors.
const ROBOT: [&str; 6] = [
    "camera pub:image:scan:50:-",
    LIDAR,
    "imu pub:imu:f64:200:-",
    "detector sub:image:scan:- pub:objects:f64:20:-",
    PLANNER,
    MOTORS,
];
const LIDAR: &str = "lidar pub:scan:scan:100:-";
const PLANNER: &str = "planner sub:scan:scan:- sub:objects:f64:- sub:imu:f64:- pub:plan:f64:50:-";
const MOTORS: &str = "motors sub:plan:f64:-";

/// The words of a process of the robot.
const PART: &str = "MYELIN_WHY_TEST_PART";
/// Set in the namespaces of the test.
const INSIDE: &str = "MYELIN_WHY_TEST_INSIDE";

/// Not a test: a process of the robot.
#[test]
fn robot_part() {
    if let Ok(words) = std::env::var(PART) {
        part::run(&words);
    }
}

#[test]
fn the_first_line_names_the_fault_in_a_robot() {
    in_namespaces("the_first_line_names_the_fault_in_a_robot", |robot| {
        for topic in ["image", "scan", "imu", "objects", "plan"] {
            robot.works(topic);
        }
        presence(robot);
        other_places(robot);
        matching(robot);
        publishers(robot);
        subscribers(robot);
        lateness(robot);
    });
}

#[test]
fn the_first_line_names_a_limit_and_what_the_network_lacks() {
    in_namespaces("the_first_line_names_a_limit_and_what_the_network_lacks", |robot| {
        if std::env::var_os(INSIDE).is_some() {
            limits(robot);
            other_hosts(robot);
        } else {
            println!("left out: namespaces are for root");
        }
    });
}

/// `why` looks at all processes that it can see: in namespaces, if they can be made, only the
/// robot's.
fn in_namespaces(test: &str, check: fn(&mut Robot)) {
    if std::env::var_os(INSIDE).is_some() || !may_unshare() {
        return check(&mut Robot::start());
    }
    let mut inside = Command::new("unshare");
    inside.args(["--mount", "--net", "--pid", "--fork", "--mount-proc", "--kill-child"]);
    let program = itself::itself();
    inside.arg(program.get_program()).args(program.get_args());
    inside.args(["--exact", &format!("why::{test}"), "--nocapture"]);
    let output = inside.env(INSIDE, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// One side is not there.
fn presence(robot: &mut Robot) {
    robot.stop("lidar");
    robot.expect("scan", "no_publisher", &["planner (process"]);
    robot.begin("lidar pub:/scan:scan:100:-");
    robot.expect("scan", "other_name", &["lidar publishes \"/scan\"", "another topic"]);
    robot.begin(LIDAR);
    robot.stop("planner");
    robot.expect("scan", "no_subscriber", &["lidar (process", "publishes it"]);
    robot.begin(PLANNER);
    robot.works("scan");

    robot.expect("plam", "other_name", &["planner publishes \"plan\""]);
    let output = robot.why("odometry", &[]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("no topic \"odometry\"") && error.contains("topic list"), "{error}");
    let output = robot.why("", &["--within", "long"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// The other side is in another domain, folder, container, or belongs to another user.
fn other_places(robot: &mut Robot) {
    robot.begin_with(LIDAR, |command| command.env("MYELIN_DOMAIN", "7"));
    let fix = ["lidar (process", "publishes it in domain 7", "start lidar with MYELIN_DOMAIN=0"];
    robot.expect("scan", "other_domain", &fix);

    let folder = tempfile::tempdir().unwrap();
    robot.begin_with(LIDAR, |command| command.env("MYELIN_RUNTIME_DIR", folder.path()));
    robot.expect("scan", "other_folder", &["lidar (process", folder.path().to_str().unwrap()]);

    if std::env::var_os(INSIDE).is_some() {
        let script = "mount -t tmpfs none \"$MYELIN_RUNTIME_DIR\" && exec \"$@\"";
        robot.begin_in(LIDAR, &["unshare", "-m", "sh", "-c", script, "sh"]);
        robot.expect(
            "scan",
            "other_container",
            &["lidar publishes it in the container of process"],
        );

        let user = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"];
        robot.begin_in(LIDAR, &user);
        robot.expect("scan", "other_user", &["user 1000 has nodes"]);
    }
    robot.begin(LIDAR);
    robot.works("scan");
}

/// Both sides are there, and do not match.
fn matching(robot: &mut Robot) {
    robot.stop("lidar");
    // Whoever opens a topic second gets an error, unless it cannot know of the first.
    robot.signal("planner", libc::SIGSTOP);
    robot.begin("lidar pub:scan:old-scan:100:-");
    robot.signal("planner", libc::SIGCONT);
    let fields = ["`stamp_ns` is u32 in lidar and u64 in planner", "`ring: u32` is only in lidar"];
    robot.expect("scan", "type_differs", &fields);
    robot.begin(LIDAR);
    robot.works("scan");

    robot.begin("motors sub:plan:f64:rxo,reliable");
    let words = ["reliability", "in planner: topic.reliable(", "in motors: topic.best_effort()"];
    robot.expect("plan", "qos_refused", &words);
    robot.begin(MOTORS);
    robot.works("plan");
}

/// A publisher that does not publish.
fn publishers(robot: &mut Robot) {
    let pid = robot.pid("lidar");
    robot.signal("lidar", libc::SIGSTOP);
    robot.expect("scan", "publisher_stopped", &[&format!("kill -CONT {pid}")]);
    // A program that starts now learns nothing of it.
    robot.begin(PLANNER);
    robot.expect("scan", "node_stopped", &[&format!("kill -CONT {pid}")]);
    robot.signal("lidar", libc::SIGCONT);
    robot.works("scan");

    let traced = Traced::begin(pid);
    robot.expect("scan", "publisher_traced", &[&format!("(process {})", std::process::id())]);
    drop(traced);
    robot.works("scan");

    limit(pid, libc::RLIMIT_NOFILE, 5);
    robot.expect("scan", "files_short", &["RLIMIT_NOFILE", &format!("--pid {pid}")]);

    robot.begin("lidar pub:scan:scan:100:count0");
    robot.expect("scan", "publisher_idle", &["nothing so far", "its threads sleep"]);
    robot.begin("lidar pub:scan:scan:100:count5");
    robot.expect("scan", "publisher_idle", &["5 samples before"]);
    robot.begin(PLANNER);
    robot.expect("scan", "published_before_match", &["its 5 samples", "transient_local(1)"]);
    robot.begin(LIDAR);
    robot.works("scan");
}

/// A subscriber that does not take, or too slowly.
fn subscribers(robot: &mut Robot) {
    let pid = robot.pid("planner");
    robot.signal("planner", libc::SIGSTOP);
    robot.expect("scan", "subscriber_stopped", &[&format!("kill -CONT {pid}")]);
    robot.signal("planner", libc::SIGCONT);
    robot.works("scan");
    robot.begin("planner sub:scan:scan:hold pub:plan:f64:50:-");
    robot.expect("scan", "subscriber_holds_all", &["keeps", "held_max"]);
    robot.begin("planner sub:scan:scan:sleep50 pub:plan:f64:50:-");
    robot.expect("scan", "subscriber_late", &["of 100 samples a second", "why --late scan"]);
}

/// The causes of lateness; each as text and as JSON.
fn lateness(robot: &mut Robot) {
    let late = |robot: &Robot| -> Value {
        let output = robot.why("scan", &["--late", "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error} {output:?}"))
    };
    let cause = |report: &Value| report["findings"][0]["finding"].clone();
    // On a busy machine it also waits for a CPU, and then that is the cause.
    let is = |report: &Value, what: &str| {
        [what, "cpu_starved"].map(Value::from).contains(&cause(report))
    };
    robot.until("it waits", || is(&late(robot), "subscriber_waits"));
    robot.begin("planner sub:scan:scan:spin50 pub:plan:f64:50:-");
    robot.until("it is slow", || is(&late(robot), "subscriber_slow"));
    let report = late(robot);
    assert_eq!((&report["topic"], &report["wrong"]), (&"scan".into(), &true.into()), "{report}");
    let ends = report["ends"].as_array().unwrap();
    let lidar = ends.iter().find(|end| end["node"] == "lidar").unwrap();
    assert!(lidar["has_timestamps"] == true && lidar["period_p50_us"].is_number(), "{report}");
    let planner = ends.iter().find(|end| end["node"] == "planner").unwrap();
    assert!(planner["cpu_percent"].is_number() && planner["lost_hz"].is_number(), "{report}");
    let output = robot.why("scan", &["--late"]);
    assert!(text(&output).contains("subscriber planner"), "{output:?}");
    // Losses of a subscriber that wants only the newest sample are no fault.
    robot.begin("planner sub:scan:scan:spin50,depth1 pub:plan:f64:50:-");
    robot.works("scan");
}

/// Limits of a process and of its control group.
fn limits(robot: &mut Robot) {
    // Root may lock what it wants, unless it gives this right up.
    robot.stop("lidar");
    robot.begin_in("planner lock: sub:scan:scan:-", &["setpriv", "--bounding-set", "-ipc_lock"]);
    // Room for what it allocates, and not for the ring of its publisher.
    limit(robot.pid("planner"), libc::RLIMIT_MEMLOCK, 256 << 10);
    robot.begin("lidar pub:scan:scan:100:depth8192");
    robot.expect("scan", "memlock_short", &["lidar (process", "RLIMIT_MEMLOCK", "ulimit -l"]);
    robot.begin(LIDAR);

    robot.begin("planner sub:scan:scan:spin9 pub:plan:f64:50:-");
    let Some(group) = Throttled::begin(robot) else {
        println!("left out: throttling: no control group with a CPU limit can be made");
        robot.begin(PLANNER);
        return;
    };
    let words = [group.0.to_str().unwrap(), "made it stand still"];
    robot.expect_with(&["--late"], "scan", "cpu_throttled", &words);
    robot.begin(PLANNER);
    drop(group);
    robot.works("scan");
}

/// The publisher would have to come from another host: there is no network, no host on it, and one,
/// but the program here has no network.
fn other_hosts(robot: &mut Robot) {
    robot.stop("lidar");
    let network = ["--network"];
    robot.expect_with(&network, "scan", "network_down", &["there is no network interface"]);
    let ip = |arguments: &str| {
        let done = Command::new("ip").args(arguments.split(' ')).status().unwrap();
        assert!(done.success(), "ip {arguments}");
    };
    // Its loopback carries what programs of this host publish for each other.
    ip("link set lo up");
    ip("link add robot0 type veth peer name base0");
    ip("addr add 10.77.0.1/24 dev robot0");
    ip("link set robot0 up");
    let fix = ["no other host is found in domain 0", "MYELIN_NETWORK=1 MYELIN_DOMAIN=0"];
    robot.expect_with(&network, "scan", "no_other_host", &fix);

    let script = "mount -t tmpfs none /dev/shm && hostname base && ip link set lo up
        while ! ip link set base0 up 2>/dev/null; do sleep 0.01; done
        ip addr add 10.77.0.2/24 dev base0 && exec \"$@\"";
    let base = ["env", "-u", "MYELIN_RUNTIME_DIR", "MYELIN_NETWORK=1", "unshare", "-n", "-m", "-u"];
    let base = [&base[..], &["sh", "-c", script, "sh"]].concat();
    robot.begin_then(LIDAR, &base, |pid| {
        let network = |of: &str| std::fs::read_link(format!("/proc/{of}/ns/net")).unwrap();
        while network(&pid.to_string()) == network("self") {
            std::thread::yield_now();
        }
        ip(&format!("link set base0 netns {pid}"));
    });
    let words = ["planner (process", "lidar (host base)", "start planner with MYELIN_NETWORK=1"];
    robot.expect_with(&network, "scan", "network_off", &words);
}

/// Six processes in a folder of their own.
struct Robot {
    folder: tempfile::TempDir,
    parts: BTreeMap<String, Child>,
}

impl Robot {
    fn start() -> Robot {
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let mut robot = Robot { folder, parts: BTreeMap::new() };
        for words in ROBOT {
            robot.begin(words);
        }
        robot
    }

    /// Starts a process, in place of the one of its name.
    fn begin(&mut self, words: &str) {
        self.begin_with(words, |command| command);
    }

    /// The same, with another environment.
    fn begin_with(&mut self, words: &str, set: impl Fn(&mut Command) -> &mut Command) {
        let mut command = itself::itself();
        let command = set(command.env("MYELIN_RUNTIME_DIR", self.folder.path()));
        self.spawn(words, command, |_| ());
    }

    /// The same, by another command.
    fn begin_in(&mut self, words: &str, outer: &[&str]) {
        self.begin_then(words, outer, |_| ());
    }

    /// The same; `then` is done before the process has said that it is ready.
    fn begin_then(&mut self, words: &str, outer: &[&str], then: impl FnOnce(u32)) {
        let program = itself::itself();
        let mut command = Command::new(outer[0]);
        command.args(&outer[1..]).arg(program.get_program()).args(program.get_args());
        self.spawn(words, command.env("MYELIN_RUNTIME_DIR", self.folder.path()), then);
    }

    fn spawn(&mut self, words: &str, command: &mut Command, then: impl FnOnce(u32)) {
        let name = words.split_whitespace().next().unwrap();
        self.stop(name);
        command.args(["--exact", "why::robot_part", "--nocapture"]).env(PART, words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        then(child.id());
        let output = BufReader::new(child.stdout.take().unwrap());
        let is_ready = output.lines().map_while(Result::ok).any(|line| line.ends_with("ready"));
        assert!(is_ready, "{words}");
        self.parts.insert(name.to_owned(), child);
    }

    fn stop(&mut self, name: &str) {
        if let Some(mut part) = self.parts.remove(name) {
            part.kill().unwrap();
            part.wait().unwrap();
        }
    }

    fn pid(&self, name: &str) -> i32 {
        self.parts[name].id() as i32
    }

    fn signal(&self, name: &str, signal: i32) {
        // SAFETY: it is a process of this test, which has not been waited for.
        assert_eq!(unsafe { libc::kill(self.pid(name), signal) }, 0);
    }

    fn why(&self, topic: &str, more: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
        command.args(["why", topic, "--runtime-dir"]).arg(self.folder.path());
        if !more.contains(&"--within") {
            command.args(["--within", "0.5"]);
        }
        command.args(more).output().unwrap()
    }

    /// Nothing is wrong with a topic.
    fn works(&self, topic: &str) {
        let works = format!("samples of {topic:?} arrive: ");
        self.until(&works, || {
            let output = self.why(topic, &[]);
            output.status.code() == Some(0) && text(&output).starts_with(&works)
        });
    }

    /// The first line, broken at 80 columns, names the fault and has these words; so has its remedy.
    fn expect(&self, topic: &str, fault: &str, words: &[&str]) {
        self.expect_with(&[], topic, fault, words);
    }

    fn expect_with(&self, options: &[&str], topic: &str, fault: &str, words: &[&str]) {
        let begun = Instant::now();
        loop {
            let asked = Instant::now();
            let output = self.why(topic, options);
            let took = asked.elapsed();
            let last = text(&output);
            let first = last.split_once(']').map_or("", |(first, _)| first).replace('\n', " ");
            let all = last.replace("\n    ", " ").replace('\n', " ");
            if output.status.code() == Some(1)
                && first.ends_with(&format!("[{fault}"))
                && words.iter().all(|word| all.contains(word))
            {
                println!("{took:?}: {last}");
                return;
            }
            assert!(begun.elapsed() < WATCHDOG, "{fault} {words:?}: {last}{output:?}");
        }
    }

    fn until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_so() {
            assert!(begun.elapsed() < WATCHDOG, "waited in vain: {what}");
        }
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        let names: Vec<_> = self.parts.keys().cloned().collect();
        names.iter().for_each(|name| self.stop(name));
    }
}

/// Whether this process may make namespaces.
fn may_unshare() -> bool {
    let tried = ["--mount", "--net", "--pid", "--fork", "--mount-proc", "true"];
    Command::new("unshare").args(tried).output().is_ok_and(|output| output.status.success())
}

/// A process that this thread traces, all its threads, as a debugger does.
struct Traced(i32);

impl Traced {
    fn begin(pid: i32) -> Traced {
        let traced = Traced(pid);
        for thread in traced.threads() {
            // SAFETY: the request reads and writes no memory; no status is asked for.
            let stopped = unsafe {
                assert_eq!(libc::ptrace(libc::PTRACE_ATTACH, thread, 0, 0), 0);
                libc::waitpid(thread, std::ptr::null_mut(), libc::__WALL)
            };
            assert_eq!(stopped, thread);
        }
        traced
    }

    fn threads(&self) -> Vec<i32> {
        let threads = std::fs::read_dir(format!("/proc/{}/task", self.0)).unwrap().flatten();
        threads.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        for thread in self.threads() {
            // SAFETY: the request reads and writes no memory.
            unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, 0, 0) };
        }
    }
}

/// A process may have no more of a resource.
fn limit(pid: i32, resource: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: the old limit is not asked for.
    let done = unsafe { libc::prlimit(pid, resource, &limit, std::ptr::null_mut()) };
    assert_eq!(done, 0);
}

/// A control group with the planner, which may compute a tenth of the time.
struct Throttled(PathBuf);

impl Throttled {
    /// `None`: this machine allows none.
    fn begin(robot: &Robot) -> Option<Throttled> {
        let [v1, v2] = ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup"].map(Path::new);
        let (root, file, limit) = match v1.is_dir() {
            true => (v1, "cpu.cfs_quota_us", "10000"),
            false => (v2, "cpu.max", "10000 100000"),
        };
        let name = robot.folder.path().file_name().unwrap().to_str().unwrap();
        let group = Throttled(root.join(format!("myelin-why-{}", name.trim_start_matches('.'))));
        std::fs::create_dir(&group.0).ok()?;
        std::fs::write(group.0.join(file), limit).ok()?;
        std::fs::write(group.0.join("cgroup.procs"), robot.pid("planner").to_string()).ok()?;
        Some(group)
    }
}

impl Drop for Throttled {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

const WATCHDOG: Duration = Duration::from_secs(30);
