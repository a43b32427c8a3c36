//! Wrong input of a user: one line with file, line and remedy, exit status 2, nothing made.

use std::path::Path;

use crate::support;
use crate::support::{bench, complaint, finish};

const GOOD: &str = "name = \"mine\"\n\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [64]\n\
    rate_hz = [\"max\"]\nmessages = 100\n\n[plan]\nsystems = [\"os.futex\"]\n\
    tunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 1\n";

fn refuse(folder: &Path, text: &str, expected: &[&str]) {
    let file = folder.join("mine.toml");
    std::fs::write(&file, text).unwrap();
    let out = folder.join("out");
    let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&arguments));
    let complaint = complaint(&output);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert_eq!(complaint.lines().count(), 1, "{complaint}");
    for part in expected {
        assert!(complaint.contains(part), "{part:?} is not in {complaint:?}");
    }
    assert!(!out.exists(), "a results folder was made");
}

/// As after `2>&1 | head`.
#[test]
fn without_a_reader_of_messages_the_command_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("mine.toml"), folder.path().join("out"));
    std::fs::write(&file, GOOD).unwrap();
    let run = |file: &Path| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let arguments = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
        finish(bench(&arguments).stderr(writer)).status.code()
    };
    assert_eq!(run(&file), Some(0));
    assert!(out.join("report.html").exists());
    assert_eq!(run(&file), Some(2), "the folder is there already");
}

#[test]
fn mistakes_in_a_scenario_name_file_line_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let refuse = |good: &str, bad: &str, expected: &[&str]| {
        assert!(GOOD.contains(good), "{good}");
        refuse(folder.path(), &GOOD.replace(good, bad), expected);
    };
    refuse("messages", "mesages", &["mine.toml:7:", "unknown field", "did you mean `messages`"]);
    refuse("[\"max\"]", "[-5]", &["mine.toml:6:", "rate_hz: -5", "above 0"]);
    refuse("os.futex", "os.futx", &["mine.toml:10:", "no system `os.futx`", "`os.futex`"]);
    refuse("os.futex", "nothing.*", &["mine.toml:10:", "nothing.*", "list systems"]);
    refuse("runs = 1", "runs = 0", &["mine.toml:13:", "runs: 0", "use 1 to"]);
    refuse("\"roundtrip\"", "\"ping\"", &["mine.toml:4:", "unknown variant `ping`"]);
    refuse("[64]", "[99999999999]", &["mine.toml:5:", "payload_bytes: 99999999999"]);
    refuse(
        "runs = 1",
        "runs = 1\n[tuning]\nping_cpu = 1\npong_cpu = 1",
        &["mine.toml:16:", "pong_cpu"],
    );
    refuse("runs = 1", "runs = 1\n[options.so]\nx = 1", &["mine.toml:14:", "`so`", "driver"]);
}

#[test]
fn mistakes_in_frames_schedules_and_topologies_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let image = GOOD
        .replace("\"roundtrip\"", "\"image\"")
        .replace("payload_bytes = [64]", "frames = [\"320x240\"]")
        .replace("[\"max\"]", "[30]");
    let stream = GOOD
        .replace("\"roundtrip\"", "\"stream\"")
        .replace("[\"max\"]", "[30]\narrivals = [{ name = \"even\" }]");
    let refuse = |text: &str, good: &str, bad: &str, expected: &[&str]| {
        assert!(text.contains(good), "{good}");
        refuse(folder.path(), &text.replace(good, bad), expected);
    };
    refuse(&image, "320x240", "320*240", &["mine.toml:5:", "frames", "width x height"]);
    refuse(&image, "frames", "payload_bytes = [9]\nframes", &["mine.toml:5:", "payload_bytes"]);
    refuse(&image, "image", "stream", &["mine.toml:5:", "frames: not a key of kind \"stream\""]);
    refuse(&image, "two-processes", "two", &["mine.toml:12:", "topology", "\"one-process\""]);
    refuse(&stream, "name = \"even\"", "nam = \"even\"", &["mine.toml:7:", "did you mean `name`"]);
    refuse(
        &stream,
        "name = \"even\"",
        "name = \"late\", jitter_percent = 90.0",
        &["mine.toml:7:", "jitter_percent: 90", "use 0 to 50"],
    );
    refuse(&stream, "messages", "reply_timeout_ms = 5\nmessages", &["mine.toml:8:", "not a key"]);
    refuse(GOOD, "rate_hz", "arrivals = []\nrate_hz", &["mine.toml:6:"]);
}

#[test]
fn a_topology_that_no_system_has_is_nothing_to_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.toml");
    std::fs::write(&file, GOOD.replace("two-processes", "one-process")).unwrap();
    let output = finish(&mut bench(&["run", file.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(1));
    let said = complaint(&output);
    assert!(
        said.contains("os.futex left out of `mine`: the scenario's topology is one-process"),
        "{said}"
    );
}

#[test]
fn a_wrong_key_for_a_driver_is_found_before_anything_runs() {
    let folder = tempfile::tempdir().unwrap();
    let text = GOOD.replace("os.futex", "synthetic") + "\n[options.synthetic]\ndelay = 3\n";
    refuse(folder.path(), &text, &["mine.toml:", "delay"]);
}

#[test]
fn a_payload_larger_than_the_pools_is_refused() {
    if !support::has_system("cyclonedds.iceoryx") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let text = GOOD.replace("os.futex", "cyclonedds.iceoryx").replace("[64]", "[64, 65536]")
        + "\n[options.cyclonedds]\npools = [{ bytes = 1024, count = 100 }]\n";
    refuse(folder.path(), &text, &["mine.toml:16:", "pool", "65536"]);
}

#[test]
fn unknown_scenarios_systems_and_folders_are_refused() {
    let cases: [(&[&str], &str); 5] = [
        (&["run", "quik"], "did you mean `quick`"),
        (&["run", "quick", "--system", "os.ppie"], "did you mean `os.pipe`"),
        (&["run", "no/such.toml"], "no/such.toml"),
        (&["report", "/no/such/folder"], "/no/such/folder"),
        (&["run", "--resume", "/no/such/folder"], "/no/such/folder"),
    ];
    for (arguments, expected) in cases {
        let output = finish(&mut bench(arguments));
        let complaint = complaint(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complaint}");
        assert!(complaint.contains(expected), "{expected:?} is not in {complaint:?}");
    }
}

#[test]
fn a_folder_in_use_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    let out = folder.path().to_str().unwrap();
    let output = finish(&mut bench(&["run", "quick", "--out", out]));
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("not empty"));
    assert_eq!(std::fs::read_to_string(precious).unwrap(), "mine");
}

#[test]
fn invalid_weights_and_budgets_are_refused_before_any_run() {
    let folder = tempfile::tempdir().unwrap();
    let weights = folder.path().join("weights.toml");
    let out = folder.path().join("out");
    let refuse = |arguments: &[&str], expected: &[&str]| {
        let out = out.to_str().unwrap();
        for verb in [vec!["run", "self-test", "--out", out], vec!["report", "nowhere"]] {
            let output = finish(&mut bench(&[&verb[..], arguments].concat()));
            let complaint = complaint(&output);
            assert_eq!(output.status.code(), Some(2), "{complaint}");
            for part in expected {
                assert!(complaint.contains(part), "{part:?} is not in {complaint:?}");
            }
        }
    };
    let given = ["--weights", weights.to_str().unwrap()];
    refuse(&given, &["weights.toml", "No such file", "memory = 30"]);
    for (text, expected) in [
        ("memory = 1\ncpus = 2\n", ["weights.toml:2:", "did you mean `cpu`?"]),
        ("memory = 1\ncpu = -2\n", ["weights.toml:2:", "cpu: -2 is not a weight"]),
        ("start_up = nan\n", ["weights.toml:1:", "start_up: NaN is not a weight"]),
        ("memory = 0\n", ["weights.toml:1:", "start_up is 0"]),
    ] {
        std::fs::write(&weights, text).unwrap();
        refuse(&given, &expected);
    }
    for budget in ["--cpu-budget", "--memory-budget"] {
        for nonsense in ["0", "nan", "inf", "much"] {
            refuse(&[budget, nonsense], &[budget, "use a number above 0"]);
        }
        refuse(&[&format!("{budget}=-1")], &[budget, "use a number above 0"]);
    }
    assert!(!out.exists(), "a results folder was made");
}
