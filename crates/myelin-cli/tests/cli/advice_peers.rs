//! Each file of the advice is used: by the peer that it is for, by the kernel's and systemd's own
//! tools, and by a compiler.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::own_host;
use crate::support::{bench, complaint, finish, has_system, signal, wait_for};
use myelin_bench_kit::protocol::{Reliability, Transport, Wait};
use myelin_bench_lab::advise::files::{Advised, files};
use myelin_bench_lab::machine::Machine;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::{Params, Pinned};

const PAYLOADS: [u64; 2] = [1024, 65536];

/// Measures these systems briefly, and returns the folder of advice.
fn advice(folder: &Path, systems: &[&str]) -> PathBuf {
    let (file, out) = (folder.join("it.toml"), folder.join("out"));
    let scenario = format!(
        "name = \"advice\"\nabout = \"briefly\"\n\n[workload]\nkind = \"roundtrip\"\n\
         payload_bytes = {PAYLOADS:?}\nmessages = 100\nduration_s = 5\n\n[plan]\n\
         systems = {systems:?}\ntunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 1\n"
    );
    fs::write(&file, scenario).unwrap();
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    out.join("advice")
}

/// The round trip of a driver's folder `check`, which knows neither the kit nor the bench.
fn plain_program(driver: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut make = Command::new("make");
    make.arg("-s").arg("-C").arg(root.join("bench/drivers").join(driver).join("check"));
    let output = finish(make.arg(format!("CARGO_TARGET_DIR={}", target.display())));
    assert!(output.status.success(), "{}", complaint(&output));
    target.join(format!("check-{driver}/roundtrip"))
}

/// The output of a plain program on both channels, and whether it ended well.
struct Said {
    text: String,
    is_good: bool,
}

/// 50 round trips of the largest payload by the plain program: the output of ping and pong.
fn round_trips(program: &Path, loans: bool, variable: &str, value: &str) -> [Said; 2] {
    let domain = (100 + std::process::id() % 100).to_string();
    let payload = PAYLOADS[1].to_string();
    let start = |role: &str, more: &[&str]| {
        let (output, input) = std::io::pipe().unwrap();
        let mut command = Command::new(program);
        command.args([role, &domain, "advice", &payload]).env(variable, value);
        command.args(loans.then_some("loan")).args(more).stdin(Stdio::piped());
        command.stdout(input.try_clone().unwrap()).stderr(input);
        (command.spawn().unwrap(), BufReader::new(output))
    };
    let mut both = [start("ping", &["50", "10"]), start("pong", &[])];
    // Messages sent before the other side exists get no answer.
    let mut texts = both.each_mut().map(|(_, output)| {
        let mut text = String::new();
        while !text.lines().any(|line| line == "ready") {
            if output.read_line(&mut text).unwrap() == 0 {
                break;
            }
        }
        text
    });
    // It may have ended already, with a complaint.
    let _ = both[0].0.stdin.take().unwrap().write_all(b"\n");
    for ((_, output), text) in both.iter_mut().zip(&mut texts) {
        output.read_to_string(text).unwrap();
    }
    let mut texts = texts.into_iter();
    both.map(|(mut child, _)| Said {
        text: texts.next().expect("one of each"),
        is_good: child.wait().unwrap().success(),
    })
}

fn assert_measured(said: &[Said; 2]) {
    let [ping, pong] = said;
    assert!(ping.is_good && ping.text.contains("p50 "), "{}", ping.text);
    assert!(pong.is_good, "{}", pong.text);
}

/// CycloneDDS with a file, and the settings that it reports: setting → value, for those set by the
/// file.
fn cyclonedds(file: &Path, folder: &Path, loans: bool) -> BTreeMap<String, String> {
    let trace = folder.join("trace-${CYCLONEDDS_PID}");
    let uri = format!(
        "file://{},<CycloneDDS><Domain Id=\"any\"><Tracing><Category>config</Category>\
         <OutputFile>{}</OutputFile></Tracing></Domain></CycloneDDS>",
        file.display(),
        trace.display()
    );
    assert_measured(&round_trips(&plain_program("cyclonedds"), loans, "CYCLONEDDS_URI", &uri));
    let is_trace = |path: &PathBuf| path.to_string_lossy().contains("/trace-");
    let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = fs::read_to_string(entries.find(is_trace).expect("a trace")).unwrap();
    // `…: config: Domain/General/FragmentSize/#text: 65000 B {1}`; 1 is the first of the two.
    let of_file = text.lines().filter_map(|line| line.strip_suffix(" {1}"));
    let settings =
        of_file.filter_map(|line| line.split_once("config: Domain/")?.1.split_once(": "));
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

#[test]
fn cyclonedds_takes_its_file() {
    let _host = own_host::enter();
    if !has_system("cyclonedds.udp-tuned") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = advice(folder.path(), &["cyclonedds.udp-tuned"]).join("cyclonedds.udp-tuned.xml");
    let settings = cyclonedds(&file, folder.path(), false);
    for (name, value) in [
        ("General/MaxMessageSize/#text", "65500 B"),
        ("General/FragmentSize/#text", "65000 B"),
        ("SharedMemory/Enable/#text", "false"),
    ] {
        assert_eq!(settings.get(name).map(String::as_str), Some(value), "{name} in {settings:?}");
    }
    for name in ["Internal/SocketReceiveBufferSize[@max]", "Internal/Watermarks/WhcHigh/#text"] {
        assert!(settings.contains_key(name), "{name} in {settings:?}");
    }
    let lingers = settings.keys().any(|name| name.contains("WriterLingerDuration"));
    assert!(!lingers, "a run's haste is no advice: {settings:?}");
}

#[test]
fn roudi_and_cyclonedds_take_their_files() {
    let _host = own_host::enter();
    if !has_system("cyclonedds.iceoryx") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let files = advice(folder.path(), &["cyclonedds.iceoryx"]);
    let pools = files.join("cyclonedds.iceoryx.roudi.toml");
    let (roudi, reserved) = RouDi::start(&pools);
    let wanted = pool_bytes(&pools);
    assert!((wanted..wanted + (1 << 20)).contains(&reserved), "{reserved} B for {wanted} B");
    let settings = cyclonedds(&files.join("cyclonedds.iceoryx.xml"), folder.path(), true);
    assert_eq!(settings.get("SharedMemory/Enable/#text").map(String::as_str), Some("true"));
    drop(roudi);
}

/// The size of the pools of a file.
fn pool_bytes(file: &Path) -> u64 {
    let text = fs::read_to_string(file).unwrap();
    let numbers = |key: &str| -> Vec<u64> {
        let values =
            text.lines().filter_map(|line| line.strip_prefix(key)?.trim().strip_prefix("= "));
        values.map(|value| value.parse().unwrap()).collect()
    };
    let (sizes, counts) = (numbers("size"), numbers("count"));
    assert_eq!((sizes.len(), counts.len()), (1, 1), "{text}");
    assert!(sizes[0] >= PAYLOADS[1] + 64, "payload and CycloneDDS's header: {text}");
    (sizes[0] + 40) * counts[0]
}

/// The daemon of iceoryx, by hand.
struct RouDi(Child);

impl RouDi {
    /// Returns when it is ready, with the bytes of the segment that has the pools.
    fn start(pools: &Path) -> (Self, u64) {
        wait_for("RouDi, of which a host has one", || {
            let (output, input) = std::io::pipe().unwrap();
            let mut command = Command::new("iox-roudi");
            command.arg("-c").arg(pools).args(["-k", "1"]).stdin(Stdio::null());
            command.stdout(input.try_clone().unwrap()).stderr(input);
            let roudi = RouDi(command.spawn().unwrap());
            // This closes our ends for writing: the pipe ends with RouDi.
            drop(command);
            let mut lines = BufReader::new(output).lines();
            let mut reserved = None;
            let is_ready = lines.by_ref().map_while(Result::ok).any(|line| {
                if let Some((bytes, _)) = line.split_once(" bytes in the shared memory [root]") {
                    reserved = bytes.rsplit(' ').next().and_then(|bytes| bytes.parse().ok());
                }
                line.contains("RouDi is ready for clients")
            });
            // Otherwise it would block at a pipe without a reader.
            std::thread::spawn(move || lines.for_each(drop));
            is_ready.then(|| (roudi, reserved.expect("it says what it reserves")))
        })
    }
}

impl Drop for RouDi {
    fn drop(&mut self) {
        if self.0.try_wait().is_ok_and(|ended| ended.is_none()) {
            signal(self.0.id(), libc::SIGTERM);
        }
        let _ = self.0.wait();
    }
}

#[test]
fn fastdds_takes_its_files() {
    let _host = own_host::enter();
    for system in ["fastdds.udp", "fastdds.shm", "fastdds.datasharing"] {
        if !has_system(system) {
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let file = advice(folder.path(), &[system]).join(format!("{system}.xml"));
        let program = plain_program("fastdds");
        let run = |file: &Path| {
            let loans = system == "fastdds.datasharing";
            let text = fs::read_to_string(file).unwrap();
            let usage = text.split_once("Use: ").expect("how to use it").1;
            let variable = usage.split_once('=').expect("a variable").0;
            round_trips(&program, loans, variable, file.to_str().unwrap())
        };
        let said = run(&file);
        assert_measured(&said);
        let complains = |said: &[Said; 2]| said.iter().any(|one| one.text.contains("Error"));
        assert!(!complains(&said), "{system}: {} {}", said[0].text, said[1].text);

        // RouDi reports unknown words as errors, so it would report a mistake of ours.
        let broken = folder.path().join("broken.xml");
        let text = fs::read_to_string(&file).unwrap().replace("transport_id", "transport_eye");
        fs::write(&broken, text).unwrap();
        assert!(complains(&run(&broken)), "{system}");
    }
}

/// All advice for Myelin, the kernel and systemd, in a folder.
fn made(folder: &Path) {
    let nothing = BTreeMap::new();
    let params = |wait, reliability| Params {
        payload_bytes: 64,
        rate_hz: Some(100.0),
        wait,
        reliability,
        depth: reliability.map(|_| 4),
        ..Params::default()
    };
    let waits = [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive, Wait::Callback];
    let kinds = [None, Some(Reliability::BestEffort), Some(Reliability::Reliable)];
    let all: Vec<Params> =
        waits.iter().flat_map(|wait| kinds.map(|kind| params(*wait, kind))).collect();
    let one = |params| Advised {
        system: "myelin.shm",
        tuning: Tuning::Awake,
        transport: Transport::Loopback,
        params,
        point: "64 B, 100 Hz".to_owned(),
        configuration: &nothing,
        pinned: Some(Pinned { cpus: [1, 0], priority: 80 }),
    };
    let advised: Vec<Advised> = all.iter().map(one).collect();
    let files = files(&advised, &Machine::read());
    assert_eq!(files.len(), 5, "{files:?}");
    for file in files {
        fs::write(folder.join(file.name), file.text).unwrap();
    }
}

/// Whether a program is there; says so if not.
fn is_installed(program: &str, package: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        println!("skipped: {program} is not installed: apt-get install {package}");
    }
    found
}

#[test]
fn sysctl_knows_the_keys() {
    if !is_installed("sysctl", "procps") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let file = folder.path().join("60-myelin-advice.conf");
    // In a network namespace these are read-only, and a test must not change the host's.
    let output = finish(Command::new("sysctl").args(["--dry-run", "-p"]).arg(&file));
    assert!(output.status.success() && output.stderr.is_empty(), "{}", complaint(&output));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut settings = text.lines().filter_map(|line| line.split_once(" = "));
    for key in ["net.core.rmem_max", "net.core.wmem_max"] {
        let (name, value) = settings.next().expect("two settings");
        let path = format!("/proc/sys/{}", key.replace('.', "/"));
        let here: u64 = fs::read_to_string(path).unwrap().trim().parse().unwrap();
        assert_eq!(name, key);
        let value = value.parse::<u64>().unwrap();
        let is_taken = (here..=i32::MAX as u64).contains(&value) || key.ends_with("wmem_max");
        assert!(is_taken, "{key}: {value}, where it is {here}: what is allowed stays allowed");
    }
    assert_eq!(settings.next(), None);
}

#[test]
fn systemd_takes_drop_ins_and_service() {
    if !is_installed("systemd-analyze", "systemd") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let unit = folder.path().join("robot.service");
    let drop_ins = folder.path().join("robot.service.d");
    fs::create_dir(&drop_ins).unwrap();
    fs::write(&unit, "[Service]\nExecStart=/bin/true\n").unwrap();
    let verify = |unit: &Path| {
        let mut command = Command::new("systemd-analyze");
        complaint(&finish(command.arg("verify").arg("--man=no").arg(unit)))
    };
    let about_us = |said: &str| said.contains(folder.path().to_str().unwrap());
    for role in ["publisher", "subscriber"] {
        let file = folder.path().join(format!("realtime-{role}.conf"));
        fs::copy(file, drop_ins.join("realtime.conf")).unwrap();
        let said = verify(&unit);
        assert!(!about_us(&said), "{said}");
    }
    let said = verify(&folder.path().join("cpu-awake.service"));
    assert!(!about_us(&said) && !said.contains("cpu-awake"), "{said}");
    // systemd reports unknown words, so it would report a mistake of ours.
    fs::write(drop_ins.join("wrong.conf"), "[Service]\nCPUSchedulingPolicy=first\n").unwrap();
    assert!(about_us(&verify(&unit)));
}

#[test]
fn the_service_keeps_cpus_awake() {
    let device = "/dev/cpu_dma_latency";
    if fs::File::options().write(true).open(device).is_err() {
        println!("skipped: {device} cannot be opened here");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let text = fs::read_to_string(folder.path().join("cpu-awake.service")).unwrap();
    let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=/bin/sh -c '"));
    // As systemd reads it.
    let script = start.unwrap().strip_suffix('\'').unwrap().replace("\\\\", "\\");
    let mut service = Command::new("/bin/sh").arg("-c").arg(script).spawn().unwrap();
    wait_for("a descriptor of the device with a request of 0", || {
        let link = fs::read_link(format!("/proc/{}/fd/3", service.id())).ok()?;
        let sleeps = fs::read_to_string(format!("/proc/{}/comm", service.id())).ok()?;
        (link == Path::new(device) && sleeps.trim() == "sleep").then_some(())
    });
    assert_eq!(fs::read(device).unwrap(), 0i32.to_ne_bytes(), "the lowest of all requests");
    service.kill().unwrap();
    service.wait().unwrap();
}

#[test]
fn myelins_lines_compile() {
    let folder = tempfile::tempdir().unwrap();
    made(folder.path());
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let package = format!(
        "[package]\nname = \"advised\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [lib]\npath = \"myelin.rs\"\n\n\
         [dependencies]\nmyelin = {{ path = {:?} }}\n\n[workspace]\n",
        root.join("crates/myelin").canonicalize().unwrap()
    );
    fs::write(folder.path().join("Cargo.toml"), package).unwrap();
    fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("advised");
    let output = finish(
        Command::new(cargo)
            .args(["check", "--offline", "--quiet"])
            .env("RUSTFLAGS", "-D warnings")
            .env("CARGO_TARGET_DIR", target)
            .current_dir(folder.path()),
    );
    assert!(output.status.success(), "{}", complaint(&output));
}
