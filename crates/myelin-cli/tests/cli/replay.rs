//! `myelin bench run --from`: a recording as the workload.

use std::path::{Path, PathBuf};

use crate::support::own_host;
use crate::support::{Traces, bench, complaint, finish, summary};
use myelin_bag::{Channel, MessageHead, Options, Writer};
use serde_json::Value;

const SECOND_NS: u64 = 1_000_000_000;
const PERIOD_NS: u64 = SECOND_NS / 100;
const TOPICS: [&str; 3] = ["/camera/image", "/imu", "/scan"];

/// A recording of `periods` × 10 ms. In each, every topic has a message, 3 ms apart, in the order of
/// [`TOPICS`]; those of the first have 60,000 B and more, and those of the others differ in size.
fn recording(folder: &Path, periods: u64) -> PathBuf {
    let path = folder.join("drive.mcap");
    let mut writer = Writer::create(&path, Options::default()).unwrap();
    let channels = TOPICS.map(|topic| {
        let topic = topic.to_owned();
        writer.add_channel(&Channel { topic, ..Channel::default() }).unwrap()
    });
    for period in 0..periods {
        for (place, channel) in channels.into_iter().enumerate() {
            let at_ns = 1_700_000_000 * SECOND_NS + period * PERIOD_NS + 3_000_000 * place as u64;
            let (log_ns, publish_ns) = (at_ns, at_ns);
            let head = MessageHead { channel, log_ns, publish_ns, ..MessageHead::default() };
            let bytes = [60_000, 64, 2_000][place] + (period % 7) as usize;
            writer.write(&head, &[&vec![1; bytes]]).unwrap();
        }
    }
    writer.finish().unwrap();
    path
}

fn topic<'c>(cell: &'c Value, name: &str) -> &'c Value {
    let topics = cell["by_topic"].as_array().expect("topics");
    topics.iter().find(|topic| topic["topic"] == name).expect(name)
}

#[test]
fn injected_delays_and_losses_of_each_topic_are_recovered() {
    let _alone = own_host::alone();
    let folder = tempfile::tempdir().unwrap();
    let (periods, runs, lose_every) = (400, 2, 7);
    recording(folder.path(), periods);
    let scenario = folder.path().join("scenario.toml");
    let text = format!(
        "name = \"replayed\"\n[workload]\nkind = \"replay\"\nwarmup_s = 0.05\n\
         recording = {{ file = \"drive.mcap\" }}\n\
         [plan]\nsystems = [\"synthetic\"]\ntunings = [\"default\"]\nruns = {runs}\n\
         [options.synthetic]\ndelay_us = [[0, 100], [1, 100]]\ntopic_us = [0, 500, 2000]\n\
         lose_every = {lose_every}\n"
    );
    std::fs::write(&scenario, text).unwrap();
    let out = folder.path().join("out");
    let arguments = ["run", scenario.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = finish(&mut bench(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let cell = &summary(&out)["cells"][0];
    assert_eq!((&cell["valid"], &cell["workload"]), (&true.into(), &"replay".into()), "{cell}");
    assert_eq!(cell["sent"], runs * periods * 3);
    // Message n is of topic n mod 3, and every seventh one is lost.
    let lost_of = |place: u64| {
        (0..periods * 3).filter(|id| (id + 1) % lose_every == 0 && id % 3 == place).count() as u64
    };
    for (place, (name, delay_us)) in TOPICS.into_iter().zip([100.0, 600.0, 2100.0]).enumerate() {
        let found = topic(cell, name);
        let lost = runs * lost_of(place as u64);
        assert_eq!(found["sent"], runs * periods, "{found}");
        assert_eq!(found["lost"], lost, "{found}");
        assert_eq!(found["received"], runs * periods - lost, "{found}");
        let rate_hz = found["rate_hz"].as_f64().unwrap();
        assert!((rate_hz - 100.0).abs() < 1.0, "{found}");
        for figure in ["min", "p50", "max"] {
            let us = found["one_way_us"][figure].as_f64().unwrap();
            assert!((us - delay_us).abs() < 1.0, "{figure}: {found}");
        }
        assert!(found["one_way_us"]["p99"].is_null(), "a lost message is above all: {found}");
    }
    assert_eq!(topic(cell, "/imu")["payload_bytes"], 66);
    assert_eq!(topic(cell, "/imu")["payload_bytes_max"], 70);
    let lost: u64 = (0..3).map(lost_of).sum();
    assert_eq!(cell["lost"], runs * lost);
    let csv = std::fs::read_to_string(out.join("topics.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + TOPICS.len(), "{csv}");
    // The recording itself is not needed any more.
    std::fs::remove_file(folder.path().join("drive.mcap")).unwrap();
    let again = finish(&mut bench(&["report", out.to_str().unwrap(), "--format", "table"]));
    assert_eq!(again.status.code(), Some(0), "{}", complaint(&again));
    assert!(String::from_utf8_lossy(&again.stdout).contains("/camera/image"));
}

#[test]
fn a_recording_is_replayed_over_real_systems() {
    let (_alone, before) = (own_host::enter(), Traces::look());
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), 80);
    let out = folder.path().join("out");
    let systems = ["myelin.shm-block", "os.futex", "os.pipe"];
    let mut arguments = vec!["run", "--from", file.to_str().unwrap(), "--duration", "500ms"];
    arguments.extend(["--runs", "1", "--verbose", "--out", out.to_str().unwrap()]);
    arguments.extend(systems.iter().flat_map(|system| ["--system", system]));
    let output = finish(&mut bench(&arguments));
    assert_eq!(output.status.code(), Some(0), "{}", complaint(&output));
    let summary = summary(&out);
    let notes = summary["notes"].to_string();
    assert!(notes.contains("its first 0.5 s are replayed"), "{notes}");
    assert!(notes.contains("udp") || !notes.contains("os.pipe left out"), "{notes}");
    let cells = summary["cells"].as_array().unwrap();
    assert_eq!(cells.len(), systems.len(), "{notes}");
    for cell in cells {
        assert_eq!(cell["valid"], true, "{cell}");
        assert_eq!((&cell["sent"], &cell["corrupt"]), (&150.into(), &0.into()), "{cell}");
        assert_eq!(cell["params"]["recording"], "drive.mcap");
        assert_eq!(cell["params"]["topics"], 3);
        assert!(cell["cpu_percent"].as_f64().unwrap() > 0.0, "{cell}");
        let mut taken = 0;
        for name in TOPICS {
            let topic = topic(cell, name);
            assert_eq!(topic["sent"], 50, "{topic}");
            taken += topic["received"].as_u64().unwrap();
            assert!(topic["one_way_us"]["min"].as_f64().unwrap() > 0.0, "{topic}");
        }
        assert_eq!(cell["received"], taken, "{cell}");
    }
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    let markdown = std::fs::read_to_string(out.join("report.md")).unwrap();
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for text in [&shown, &markdown, &page] {
        // Pages escape a slash.
        assert!(["by topic", "imu", "scan"].iter().all(|it| text.contains(it)), "{text}");
    }
    before.assert_unchanged();
}

#[test]
fn mistakes_in_a_replay_are_told_in_one_line() {
    let _alone = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let file = recording(folder.path(), 3);
    let file = file.to_str().unwrap();
    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "no recording").unwrap();
    let refused = |arguments: &[&str]| {
        let output = finish(&mut bench(&[&["run"], arguments].concat()));
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", complaint(&output));
        complaint(&output)
    };
    let one_line = |arguments: &[&str], expected: &str| {
        let said = refused(arguments);
        let last = said.lines().last().unwrap_or_default();
        assert!(last.contains(expected), "{arguments:?}: {said}");
    };
    one_line(&["--from", "/nowhere/x.mcap"], "/nowhere/x.mcap: No such file");
    one_line(&["--from", text.to_str().unwrap()], "not an MCAP file");
    one_line(&["--from", file, "--topic", "/scam"], "no topic `/scam`; did you mean `/scan`?");
    one_line(&["--from", file, "--start", "1h"], "no messages of these topics");
    one_line(&["--from", file, "--speed", "0"], "speed: 0.0 is out of range");
    one_line(&["--from", file, "--system", "os.futx"], "did you mean `os.futex`?");
    assert!(refused(&["--topic", "/scan"]).contains("--from"));
    assert!(refused(&["quick", "--from", file]).contains("--from"));
    let none = finish(&mut bench(&["run", "--from", file, "--system", "os.udp"]));
    assert!(complaint(&none).contains("os.udp left out"), "{}", complaint(&none));
    assert_ne!(none.status.code(), Some(0));
}
