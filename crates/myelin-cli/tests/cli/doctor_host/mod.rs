//! `myelin doctor` on folders that represent good and bad machines, and on the real machine as root
//! and as an ordinary user. Nothing here depends on the speed of this machine.

mod machine;
mod schema;

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use self::machine::{CPU, Machine};
use self::schema::check_schema;

const NOBODY: u32 = 65534;

fn doctor(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    command.arg("doctor").args(arguments).output().unwrap()
}

fn examine(machine: &Machine) -> (Option<i32>, Value) {
    let root = machine.0.path().to_str().unwrap();
    let output = doctor(&["--only", "host", "--json", "--root", root]);
    (output.status.code(), json(&output))
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn finding<'a>(report: &'a Value, cause: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["cause"] == cause).unwrap()
}

/// One change to a good machine: the expected cause, its state, and words of the finding.
fn change(cause: &str, state: &str, words: &[&str], change: impl Fn(&Machine)) {
    let machine = Machine::good();
    change(&machine);
    let (status, report) = examine(&machine);
    let found = finding(&report, cause);
    assert_eq!(found["state"], state, "{found:#}");
    for word in words {
        assert!(found.to_string().contains(word), "{word:?} is not in {found:#}");
    }
    assert_eq!(status, Some(i32::from(state == "costs")), "{report:#}");
    assert_eq!(report["wrong"], state == "costs");
    check_schema(&report);
}

#[test]
fn a_good_machine_has_nothing_wrong() {
    let (status, report) = examine(&Machine::good());
    for found in report["findings"].as_array().unwrap() {
        let is_measured = ["steal", "cyclonedds"].map(Value::from).contains(&found["cause"]);
        assert_eq!(found["state"], if is_measured { "unknown" } else { "ok" }, "{found:#}");
    }
    assert_eq!((status, &report["wrong"]), (Some(0), &Value::Bool(false)));
    assert!(report.get("measured").is_none() && report.get("leftovers").is_none());
    check_schema(&report);
}

#[test]
fn an_old_cyclonedds() {
    let measured = |library: &'static str| {
        move |machine: &Machine| {
            let late = r#"{"samples": 100, "p50_us": 1.0, "p90_us": 1.0, "max_us": 1.0}"#;
            let timer = format!(r#"{{"slack_ns": 1, "sleep_us": 1000, "late": {late}}}"#);
            let gap = r#"{"spun_s": 0.5, "longest_us": 1.0, "longer_than_10_us": 0}"#;
            let measured = format!(
                r#"{{"took_s": 1.0, "timer": {timer}, "timer_exact": {timer}, "gap": {gap},
                "clock_read_ns": 20.0, "first_touch_us": 1.0, "first_touch_huge_us": 1.0,
                {library}}}"#
            );
            machine.write("measured.json", &measured);
        }
    };
    let words = ["0.10.2, /usr/lib/libddsc.so.0.10.2", "1d8aef61", "/opt/ros"];
    let old = measured(r#""cyclonedds": "/usr/lib/libddsc.so.0.10.2""#);
    change("cyclonedds", "note", &words, old);
    let sound = measured(r#""cyclonedds": "/opt/ros/jazzy/lib/libddsc.so.0.10.5""#);
    change("cyclonedds", "ok", &["\"version\":\"0.10.5\""], sound);
    let words = ["install libddsc0debian"];
    let missing = measured(r#""cyclonedds_missing": "install libddsc0debian""#);
    change("cyclonedds", "unknown", &words, missing);
    let unnamed = measured(r#""cyclonedds": "/home/me/libddsc.so""#);
    change("cyclonedds", "unknown", &["no version in its name"], unnamed);
}

#[test]
fn cpu_time() {
    let words = ["20000 µs of each 100000 µs", "CPUQuota"];
    change("cpu_quota", "costs", &words, |machine| {
        machine.write("proc/self/cgroup", "0::/robot");
        machine.write("sys/fs/cgroup/robot/cpu.max", "20000 100000");
    });
    change("cpu_quota", "ok", &[], |machine| {
        machine.write("proc/self/cgroup", "0::/robot");
        machine.write("sys/fs/cgroup/robot/cpu.max", "max 100000");
    });
}

#[test]
fn frequency_and_cores() {
    let governor = format!("{CPU}/cpu1/cpufreq/scaling_governor");
    let words = ["`powersave` on 1 of 2", "4.0 times slower", "tee /sys/devices/system/cpu/cpu*"];
    change("governor", "costs", &words, |machine| machine.write(&governor, "powersave"));
    change("governor", "ok", &["performance"], |machine| {
        machine.write(&governor, "powersave");
        let preference = format!("{CPU}/cpu1/cpufreq/energy_performance_preference");
        machine.write(&preference, "performance");
    });
    change("governor", "note", &["hypervisor"], Machine::guest);
    change("governor", "unknown", &["no cpufreq driver"], |machine| {
        machine.remove(&format!("{CPU}/cpu0/cpufreq"));
        machine.remove(&format!("{CPU}/cpu1/cpufreq"));
    });
    change("smt", "note", &["0-1", "nosmt"], |machine| {
        machine.write(&format!("{CPU}/smt/active"), "1");
    });
    change("clocksource", "costs", &["echo tsc | sudo tee", "hpet"], |machine| {
        let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        machine.write(source, "hpet");
    });
}

#[test]
fn without_a_measurement_idle_states_are_judged_by_their_description() {
    let words = ["C6, 133 µs", "\"exit_latency_max_us\":133", "state[2-9]/disable", "expected"];
    change("idle_states", "costs", &words, |machine| {
        machine.write(&format!("{CPU}/cpu1/cpuidle/state2/disable"), "0");
    });
    let haltpoll = |machine: &Machine| {
        machine.guest();
        machine.write(&format!("{CPU}/cpuidle/current_driver"), "haltpoll");
        machine.write("/sys/module/haltpoll/parameters/guest_halt_poll_ns", "0");
    };
    let words = ["halts at once", "\"guest_halt_poll_ns\":0", "idle=poll", "/dev/cpu_dma_latency"];
    change("idle_states", "costs", &words, haltpoll);
    change("idle_states", "note", &["virtual CPU halts"], Machine::guest);
    change("idle_states", "unknown", &["no cpuidle driver"], |machine| {
        machine.guest();
        machine.write("/proc/cpuinfo", "flags\t\t: fpu sse");
    });
}

#[test]
fn the_kernel_and_its_settings() {
    let rt = "/proc/sys/kernel/sched_rt_runtime_us";
    let words = ["stopped for 50000 µs", "sysctl -w kernel.sched_rt_runtime_us=-1", "\\\\n"];
    change("rt_throttling", "costs", &words, |machine| machine.write(rt, "950000"));
    change("rt_throttling", "note", &["fair server"], |machine| {
        machine.write(rt, "950000");
        machine.write("/proc/sys/kernel/osrelease", "6.12.3");
        machine.config("# CONFIG_RT_GROUP_SCHED is not set\n");
    });
    change("rt_throttling", "costs", &["50000 µs"], |machine| {
        machine.write(rt, "950000");
        machine.write("/proc/sys/kernel/osrelease", "6.18.44");
        machine.config("CONFIG_RT_GROUP_SCHED=y\n");
    });
    let receive = "/proc/sys/net/core/rmem_max";
    let words = ["208 KiB", "\"rmem_max_bytes\":212992", "net.core.rmem_max=2147483647"];
    change("socket_buffers", "costs", &words, |machine| machine.write(receive, "212992"));
    change("socket_buffers", "note", &["4 MiB"], |machine| machine.write(receive, "4194304"));
    let always = "[always] madvise never";
    change("huge_pages", "costs", &["2 MiB", "echo madvise"], |machine| {
        machine.write("/sys/kernel/mm/transparent_hugepage/enabled", always);
    });
    let words = ["there is no /dev/shm", "mount -t tmpfs"];
    change("shared_memory", "costs", &words, |machine| machine.remove("/dev/shm"));
}

#[test]
fn the_preemption_model_is_read_from_every_source() {
    let dynamic = "CONFIG_PREEMPT_DYNAMIC=y\n";
    let none = format!("CONFIG_PREEMPT_NONE=y\n{dynamic}");
    let words = ["\"model\":\"none\"", "echo full", "preempt=full"];
    change("preemption", "costs", &words, |machine| machine.dynamic_kernel(&none));
    change("preemption", "ok", &["\"model\":\"full\"", "cmdline"], |machine| {
        machine.dynamic_kernel(&none);
        machine.write("/proc/cmdline", "preempt=none quiet preempt=full");
    });
    change("preemption", "costs", &["\"model\":\"voluntary\"", "debug/sched/preempt"], |machine| {
        machine.dynamic_kernel(&none);
        machine.write("/sys/kernel/debug/sched/preempt", "none (voluntary) full");
    });
    change("preemption", "ok", &["\"model\":\"full\"", "default"], |machine| {
        machine.dynamic_kernel(dynamic);
        machine.remove("/proc/config.gz");
        machine.write("/boot/config-6.8.0-rt", "CONFIG_PREEMPT=y");
    });
    change("preemption", "unknown", &["/boot/config-6.8.0-rt"], |machine| {
        machine.dynamic_kernel(&none);
        machine.remove("/proc/config.gz");
    });
    change("preemption", "unknown", &["/proc/config.gz"], |machine| {
        machine.dynamic_kernel(&none);
        fs::write(machine.path("/proc/config.gz"), "not packed").unwrap();
    });
    change("preemption", "note", &["\"model\":\"voluntary\"", "needs a kernel"], |machine| {
        machine.dynamic_kernel("CONFIG_PREEMPT_VOLUNTARY=y\n");
        machine.write("/proc/version", "Linux version 5.10.0 (gcc) #1 SMP Thu");
    });
}

#[test]
fn rights_by_limit_and_by_capability() {
    let words = ["\"memlock_bytes\":8388608", "prlimit --memlock=unlimited", "limits.d"];
    change("memlock", "costs", &words, |machine| machine.limits("8388608", "99"));
    change("rtprio", "costs", &["\"rtprio_max\":0", "prlimit --rtprio=99"], |machine| {
        machine.limits("unlimited", "0");
    });
    let capable = |machine: &Machine| {
        machine.limits("8388608", "0");
        machine.write("/proc/self/status", "CapEff:\t000001fffeffffff");
    };
    change("memlock", "ok", &["CAP_IPC_LOCK"], capable);
    change("rtprio", "ok", &["CAP_SYS_NICE"], capable);
    let docker = |machine: &Machine| {
        machine.limits("8388608", "0");
        machine.write("/proc/self/status", "CapEff:\t00000000a80425fb");
    };
    change("memlock", "costs", &["\"may_lock_memory\":false"], docker);
    change("rtprio", "costs", &["\"may_use_fifo\":false"], docker);
    let latency = "/dev/cpu_dma_latency";
    let words = ["\"writable\":false", "chmod 666", "udev/rules.d"];
    change("cpu_dma_latency", "costs", &words, |machine| machine.make_unusable(latency));
    change("cpu_dma_latency", "note", &["--device"], |machine| machine.remove(latency));
}

#[test]
fn unreadable_sources_are_unknown_and_not_a_fault() {
    for (cause, path) in [
        ("governor", format!("{CPU}/cpu0/cpufreq/scaling_governor")),
        ("smt", format!("{CPU}/smt/active")),
        ("rt_throttling", "/proc/sys/kernel/sched_rt_runtime_us".into()),
        ("socket_buffers", "/proc/sys/net/core/wmem_max".into()),
        ("memlock", "/proc/self/limits".into()),
        ("huge_pages", "/sys/kernel/mm/transparent_hugepage/enabled".into()),
        ("clocksource", "/sys/devices/system/clocksource/clocksource0/current_clocksource".into()),
    ] {
        change(cause, "unknown", &[&path], |machine| machine.make_unusable(&path));
        change(cause, "unknown", &[&path], |machine| {
            machine.remove(&path);
            fs::write(machine.path(&path), [0xff, 0xfe]).unwrap();
        });
    }
    let empty = Machine(tempfile::tempdir().unwrap());
    let (_, report) = examine(&empty);
    check_schema(&report);
    let wrong: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["state"] == "costs")
        .map(|finding| finding["cause"].as_str().unwrap())
        .collect();
    assert_eq!(wrong, ["shared_memory"], "an empty folder has no /dev/shm, and that is known");
}

#[test]
fn this_machine_is_examined_as_its_user_and_as_an_ordinary_one() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let arguments = ["doctor", "--json", "--runtime-dir", folder.path().to_str().unwrap()];
    let mut command = Command::new(env!("CARGO_BIN_EXE_myelin"));
    check_real(&command.args(arguments).output().unwrap());
    let Some(output) = as_nobody(&arguments) else { return };
    let report = check_real(&output);
    let limits = fs::read_to_string("/proc/self/limits").unwrap();
    let locked = limits.lines().find(|line| line.starts_with("Max locked memory")).unwrap();
    let unlimited = locked.split_whitespace().nth(3) == Some("unlimited");
    let found = &finding(&report, "memlock")["values"]["may_lock_memory"];
    assert_eq!(found.as_bool(), Some(unlimited), "nobody has no capabilities");
}

#[test]
fn an_ordinary_user_may_not_hold_the_latency_limit() {
    let machine = Machine::good();
    let latency = machine.path("/dev/cpu_dma_latency");
    fs::set_permissions(&latency, fs::Permissions::from_mode(0o600)).unwrap();
    let memory = machine.path("/proc/sys/net/core/rmem_max");
    fs::set_permissions(&memory, fs::Permissions::from_mode(0o000)).unwrap();
    let root = machine.0.path().to_str().unwrap();
    let Some(output) = as_nobody(&["doctor", "--only", "host", "--json", "--root", root]) else {
        return;
    };
    let report = json(&output);
    let found = finding(&report, "cpu_dma_latency");
    assert_eq!(found["state"], "costs", "{found:#}");
    assert!(found["found"].as_str().unwrap().contains("Permission denied"), "{found:#}");
    let found = finding(&report, "socket_buffers");
    assert_eq!(found["state"], "unknown", "{found:#}");
    assert!(found["because"].as_str().unwrap().contains("rmem_max: Permission denied"));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn the_text_fits_and_commands_have_their_own_lines() {
    let machine = Machine::good();
    machine.write("/proc/sys/net/core/rmem_max", "212992");
    machine.write(&format!("{CPU}/cpu0/cpufreq/scaling_governor"), "powersave");
    machine.limits("8388608", "0");
    let root = machine.0.path().to_str().unwrap();
    let output = doctor(&["--only", "host", "--root", root]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    for line in text.lines() {
        let is_command = line.starts_with("    ") && !line.starts_with("     ");
        assert!(is_command || line.chars().count() <= 80, "{line:?}");
    }
    let (_, report) = examine(&machine);
    for found in report["findings"].as_array().unwrap() {
        for command in ["now", "permanent"].map(|when| &found["mend"][when]) {
            let Some(command) = command.as_str() else { continue };
            assert!(text.contains(&format!("\n    {command}\n")), "{command}");
        }
    }
    let states: Vec<&str> = text.lines().filter_map(|line| line.split(' ').next()).collect();
    let place = |word| states.iter().position(|state| *state == word).unwrap();
    assert!(place("costs") < place("unknown") && place("unknown") < place("ok"), "{text}");
    assert!(text.contains("4 causes of latency"), "{text}");
}

#[test]
fn invalid_options_are_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing");
    for arguments in [
        &["--nonsense"][..],
        &["--only", "nothing"],
        &["--only", "host", "--fix"],
        &["--only", "host", "--runtime-dir", "/dev/shm"],
        &["--root", missing.to_str().unwrap()],
    ] {
        let output = doctor(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
    }
}

/// The JSON of this machine, with measurements and leftovers; the exit status fits.
fn check_real(output: &Output) -> Value {
    let report = json(output);
    check_schema(&report);
    let wrong = report["wrong"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(i32::from(wrong)), "{output:?}");
    let measured = &report["measured"];
    for name in ["took_s", "clock_read_ns", "first_touch_us", "first_touch_huge_us"] {
        assert!(measured[name].as_f64().is_some_and(|value| value > 0.0), "{name}: {measured:#}");
    }
    for timer in ["timer", "timer_exact"].map(|name| &measured[name]) {
        assert!(timer["late"]["p50_us"].as_f64() <= timer["late"]["max_us"].as_f64());
        assert!(timer["slack_ns"].is_u64() && timer["sleep_us"].is_u64());
    }
    assert!(measured["gap"]["longest_us"].is_f64());
    let held = |wake_up: &Value| {
        assert!(wake_up["as_found"]["samples"].as_u64().unwrap() >= 100);
        wake_up["held_awake"].is_object() != wake_up["held_awake_missing"].is_string()
    };
    match measured.get("wake_up") {
        Some(wake_up) => assert!(held(wake_up), "{wake_up:#}"),
        None => assert!(measured["wake_up_missing"].is_string(), "{measured:#}"),
    }
    assert!(report["leftovers"]["live"].is_array() && report["leftovers"]["dead"].is_array());
    report
}

/// Runs the command as a user without rights; `None`, with a reason, where that is impossible. The
/// program is opened here, so that the user need not be able to reach it by its path.
fn as_nobody(arguments: &[&str]) -> Option<Output> {
    // SAFETY: geteuid has no preconditions.
    if unsafe { libc::geteuid() } != 0 {
        println!("left out: only root can become another user");
        return None;
    }
    let program = fs::File::open(Path::new(env!("CARGO_BIN_EXE_myelin"))).unwrap();
    let mut command = Command::new(format!("/proc/self/fd/{}", program.as_raw_fd()));
    command.args(arguments).uid(NOBODY).gid(NOBODY).current_dir("/").arg0("myelin");
    match command.output() {
        Ok(output) => Some(output),
        Err(error) => {
            println!("left out: an ordinary user cannot run the program: {error}");
            None
        }
    }
}
