//! `myelin bench ping`, `pub` and `sub`: what is measured from the line, without a file.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output};

use serde_json::Value;

use crate::support::own_host;
use crate::support::pty::Session;
use crate::support::{
    bench, complaint, finish, process_of, runs, scenario, signal, start, summary, wait_for,
};

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// `myelin bench …` whose temporary files and meetings are in `folder`.
fn in_folder(folder: &Path, line: &str) -> Command {
    let mut command = bench(&words(line));
    command.current_dir(folder).env("TMPDIR", folder).env("XDG_RUNTIME_DIR", folder);
    command
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_ping_says_what_it_found_and_leaves_nothing() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let line = "ping os.pipe --size 64,1K --duration 50ms";
    let output = finish(&mut in_folder(folder.path(), line));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    for size in ["64 B", "1024 B"] {
        let line = format!("os.pipe default, {size}, round trip in µs: min ");
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("nothing was kept: --out DIR"), "{text}");
    assert!(is_empty(folder.path()), "{:?}", fs::read_dir(folder.path()).unwrap().next());
}

#[test]
fn the_printed_file_makes_the_same_plan() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let line =
        "ping os.pipe os.f* --wait block --size 0,1K..4K --rate 1k,max --duration 50ms --runs 2";
    let output = finish(&mut in_folder(folder.path(), &format!("{line} --print")));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    fs::write(folder.path().join("mine.toml"), &output.stdout).unwrap();
    for line in [format!("{line} --out a"), "run mine.toml --out b".to_owned()] {
        let output = finish(&mut in_folder(folder.path(), &line));
        // On a busy machine a run misses its rate.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", complaint(&output));
    }
    let plan = |of: &str| -> Value {
        let text = fs::read_to_string(folder.path().join(of).join("plan.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    let (a, b) = (plan("a"), plan("b"));
    assert_eq!(a["scenarios"], b["scenarios"]);
    assert_eq!(a["cells"], b["cells"]);
    assert_eq!(a["cells"].as_array().unwrap().len(), 2 * 3 * 2, "two systems, sizes and rates");
    let is_rated =
        |run: &Value| !a["cells"][run["cell"].as_u64().unwrap() as usize]["rate_hz"].is_null();
    for of in ["a", "b"] {
        let runs = runs(&folder.path().join(of));
        assert_eq!(runs.len(), 2 * 2 * 3 * 2, "each cell twice");
        let sent = runs.iter().filter(|run| is_rated(run)).map(|run| &run["ping"]["sent"]);
        assert!(sent.clone().all(|sent| *sent == 50), "{:?}", sent.collect::<Vec<_>>());
    }
    let command = summary(&folder.path().join("a"))["command"].as_str().unwrap().to_owned();
    assert!(command.starts_with("myelin bench ping os.pipe 'os.f*' --wait block"), "{command}");
}

#[test]
fn ctrl_c_ends_a_ping_with_the_figures_so_far() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let mut command = in_folder(folder.path(), "ping os.pipe --rate 100 --duration 1h");
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let mut session = Session::start(&mut command, 40, 100);
    wait_for("the line of a second", || {
        let text = session.text();
        let table = text.split("messages/s").nth(1)?;
        // Of the heading's line the rest, then the first second.
        let second = table.lines().nth(1)?.split_whitespace().collect::<Vec<_>>();
        (second.len() == 8 && second[0].parse::<u32>().is_ok()).then_some(())
    });
    let lab = session.process.id();
    let drivers =
        ["ping", "pong"].map(|role| process_of(lab, &["myelin-driver-os", role]).unwrap());
    session.press("\x03");
    let status = session.finish_with("nothing was kept");
    let text = session.text();
    assert_eq!(status.code(), Some(0), "{text}");
    assert!(text.contains("100 Hz, round trip in µs: min "), "{text}");
    for driver in drivers {
        assert!(!Path::new(&format!("/proc/{driver}")).exists(), "{driver} has stayed");
    }
    assert!(is_empty(folder.path()));
}

#[test]
fn a_limit_ends_a_run_of_a_scenario_and_keeps_the_run_that_exceeds_it() {
    let _host = own_host::enter();
    let place = tempfile::tempdir().unwrap();
    let file = scenario(place.path(), &["os.pipe"], 64, 3600.0, 2);
    let out = place.path().join("out");
    let words = ["run", &file, "--out", out.to_str().unwrap(), "--trace-on", "latency > 1us"];
    let output = finish(&mut bench(&words));
    let (text, said) = (printed(&output), complaint(&output));
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(
        text.lines().any(|it| it.starts_with("message ") && it.contains("more than 1.00")),
        "{text}"
    );
    assert!(said.contains("continue with: ") && said.contains("--resume"), "{said}");
    assert_eq!(summary(&out)["cells"][0]["runs"], 1, "{said}");
}

#[test]
fn a_limit_ends_the_ping_at_the_message_that_exceeds_it() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let line = ["ping", "os.pipe", "--duration", "1h", "--rate", "1k", "--trace-on", "latency>1us"];
    // Tracing needs root and a kernel that has it; without them the message is named all the same.
    let mut command = Command::new("unshare");
    let script = "mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; exec \"$0\" \"$@\"";
    command.args(["-m", "sh", "-c", script, env!("CARGO_BIN_EXE_myelin"), "bench"]).args(line);
    command.current_dir(folder.path()).env("TMPDIR", folder.path());
    let output = finish(&mut command);
    let (text, said) = (printed(&output), complaint(&output));
    if said.contains("unshare") {
        println!("skipped: {said}");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{said}");
    let hit = text.lines().find(|line| line.starts_with("message ")).expect("the message");
    for part in [" µs, more than 1.00: sent at ", "on CPU ", "involuntary switches", "pong "] {
        assert!(hit.contains(part), "{part:?}: {hit}");
    }
    let files: Vec<_> =
        fs::read_dir(folder.path()).unwrap().flatten().map(|it| it.path()).collect();
    match &files[..] {
        [] => {
            assert!(said.contains("note: the kernel traces nothing: /sys/kernel/tracing"), "{said}")
        }
        [trace] => {
            let trace = fs::read_to_string(trace).unwrap();
            assert!(trace.contains("sched_switch") && trace.contains("myelin-driver"), "{hit}");
        }
        other => panic!("{other:?}"),
    }
}

/// A side, and where it waits for the other.
fn side(folder: &Path, line: &str) -> Child {
    start(&mut in_folder(folder, line))
}

fn wait_for_meeting(folder: &Path, name: &str) {
    wait_for(name, || {
        let topics = fs::read_dir(folder.join("myelin-bench")).ok()?.flatten();
        topics
            .map(|topic| topic.path().join(name))
            .find(|it| fs::read(it).is_ok_and(|it| !it.is_empty()))
    });
}

fn ended(side: Child) -> (Option<i32>, String, String) {
    let output = side.wait_with_output().unwrap();
    (output.status.code(), printed(&output), complaint(&output))
}

#[test]
fn two_sides_meet_whichever_comes_first() {
    let _host = own_host::enter();
    for [first, second] in [["pub", "sub"], ["sub", "pub"]] {
        let folder = tempfile::tempdir().unwrap();
        let line = |side: &str| match side {
            "pub" => "pub os.pipe --size 1K --rate 500 --duration 1500ms".to_owned(),
            _ => "sub os.pipe".to_owned(),
        };
        let sized = |side: &str| match (side, first) {
            // The first one has no other to take the size from.
            ("sub", "sub") => line(side) + " --size 1K",
            _ => line(side),
        };
        let one = side(folder.path(), &sized(first));
        wait_for_meeting(folder.path(), &format!("{first}-0.json"));
        let two = side(folder.path(), &sized(second));
        let mut found = [ended(one), ended(two)];
        found.sort_by_key(|(_, text, _)| text.contains("one way"));
        let [(status, text, said), (sub_status, sub_text, sub_said)] = found;
        assert_eq!((status, sub_status), (Some(0), Some(0)), "{said} {sub_said}");
        let number = |text: &str| -> u32 {
            let head = "os.pipe, topic hand, 1024 B, reliable, depth 16: ";
            let (number, _) = text.split_once(head).unwrap().1.split_once(" messages in ").unwrap();
            number.parse().unwrap()
        };
        assert!(number(&text) > 100, "{text}");
        assert_eq!(number(&text), number(&sub_text), "{text}{sub_text}");
        assert!(text.contains("publish call in µs: min "), "{text}");
        assert!(
            sub_text.contains("\nlost 0, duplicates 0, out of order 0, damaged 0\n"),
            "{sub_text}"
        );
        assert!(
            sub_text.contains("\none way in µs: min ") && sub_text.contains("\nCPU "),
            "{sub_text}"
        );
        assert!(sub_text.starts_with("     s   messages/s"), "a table first: {sub_text}");
        assert!(is_empty(&folder.path().join("myelin-bench")), "the meeting is over");
    }
}

#[test]
fn a_side_that_contradicts_the_other_is_refused_and_nothing_stays() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let waiting = side(folder.path(), "sub os.pipe --size 64");
    wait_for_meeting(folder.path(), "sub-0.json");
    for (line, expected) in [
        ("pub os.pipe --size 1K", "--size 1024: the `sub` of topic hand has 64"),
        ("pub os.pipe --depth 3", "--depth 3: the `sub` of topic hand has 16"),
        ("sub os.pipe", "sub: 1 of topic hand run already; choose another --topic"),
    ] {
        let output = finish(&mut in_folder(folder.path(), line));
        assert_eq!(output.status.code(), Some(2), "{line}: {}", complaint(&output));
        assert!(complaint(&output).contains(expected), "{line}: {}", complaint(&output));
    }
    let driver = wait_for("the driver", || process_of(waiting.id(), &["myelin-driver-os"]));
    signal(waiting.id(), libc::SIGINT);
    let (status, _, said) = ended(waiting);
    assert_eq!(status, Some(130), "{said}");
    assert!(said.contains("waiting for `myelin bench pub os.pipe --topic hand`"), "{said}");
    assert!(said.contains("nobody came, so nothing was measured"), "{said}");
    assert!(!Path::new(&format!("/proc/{driver}")).exists(), "the driver has stayed");
    assert!(is_empty(&folder.path().join("myelin-bench")));
}

/// Datagrams do not end with their sender.
#[test]
fn a_subscriber_ends_although_its_publisher_was_killed() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let mut subscriber = side(folder.path(), "sub os.udp");
    let publisher = side(folder.path(), "pub os.udp --rate 200");
    let mut lines = std::io::BufReader::new(subscriber.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..3 {
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    }
    signal(publisher.id(), libc::SIGKILL);
    ended(publisher);
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    let (status, _, said) = ended(subscriber);
    assert_eq!(status, Some(0), "{said}");
    assert!(rest.contains("\none way in µs: min "), "{rest}{said}");
}

#[test]
fn a_publisher_ends_with_its_figures_on_ctrl_c_and_takes_its_subscriber_along() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let publisher = side(folder.path(), "pub os.pipe --rate 200");
    wait_for_meeting(folder.path(), "pub-0.json");
    let mut subscriber = side(folder.path(), "sub os.pipe");
    let mut lines = std::io::BufReader::new(subscriber.stdout.take().unwrap());
    let mut line = String::new();
    for _ in 0..3 {
        // The heading and two seconds.
        std::io::BufRead::read_line(&mut lines, &mut line).unwrap();
    }
    signal(publisher.id(), libc::SIGINT);
    let (status, text, said) = ended(publisher);
    assert_eq!(status, Some(0), "{said}");
    assert!(text.contains("publish call in µs: min "), "{text}");
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut lines, &mut rest).unwrap();
    assert!(rest.contains("one way in µs: min "), "{line}{rest}");
    assert_eq!(ended(subscriber).0, Some(0));
}

#[test]
fn a_limit_ends_a_subscriber() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let publisher = side(folder.path(), "pub os.pipe --rate 200");
    wait_for_meeting(folder.path(), "pub-0.json");
    let mut command = in_folder(folder.path(), "sub os.pipe");
    let output = finish(command.args(["--trace-on", "latency > 1us"]));
    let text = printed(&output);
    assert_eq!(output.status.code(), Some(4), "{}", complaint(&output));
    assert!(text.contains(" µs, more than 1.00") && text.contains("pong "), "{text}");
    // Its subscriber has gone.
    let _ = ended(publisher);
}

#[test]
fn bad_values_name_the_option_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    for (line, expected) in [
        ("ping os.pipe --size 1Q", ["--size", "write 64, 1K"]),
        ("ping os.pipe --size 4K..1K", ["--size", "1K..1M"]),
        ("ping os.pipe --rate quick", ["--rate", "max is back to back"]),
        ("ping os.pipe --duration 0", ["--duration", "use a time from"]),
        ("ping os.pipe --wait doze", ["--wait", "possible values: poll, block"]),
        ("ping os.pipe --wait callback", ["--wait", "list systems"]),
        ("ping os.pipe --subscribers 0", ["--subscribers", "use 1 to 256"]),
        ("ping os.pipe --runs 0", ["--runs", "1..=1000"]),
        ("ping os.pipe --tuning fast", ["--tuning", "possible values: default, tuned"]),
        ("ping os.pipe --trace-on 1ms", ["--trace-on", "latency > 1 ms"]),
        ("ping os.pip", ["no system `os.pip`", "did you mean `os.pipe`"]),
        ("ping os.pipe --print --out x", ["--print", "cannot be used with"]),
        ("pub os.pipe --rate max", ["--rate", "such as 1k"]),
        ("pub os.pipe --topic a/b", ["--topic", "letters, digits"]),
        ("pub os.pipe --cpu 0", ["--cpu", "add --tuning tuned"]),
        ("pub os.pipe --subscribers 2", ["--subscribers", "1 at most"]),
        ("pub os.* --rate 1k", ["os.*", "name one"]),
        ("pub os.call", ["os.call", "ping --one-way"]),
        ("pub os.futex --peer 127.0.0.1", ["--peer", "on one host"]),
        ("pub os.pipe --reliability best-effort", ["--reliability", "it is reliable"]),
        ("sub os.pipe --index 3 --subscribers 2", ["--index", "numbered from 0"]),
        ("sub os.pipe --size 64 --peer nowhere", ["--peer", "invalid"]),
    ] {
        let output = finish(&mut in_folder(folder.path(), line));
        let said = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{line}: {said}");
        for part in expected {
            assert!(said.contains(part), "{line}: no {part:?} in {said}");
        }
    }
}
