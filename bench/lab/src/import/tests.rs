use std::fs;

use super::*;

/// Imports texts as files `a.csv`, `b.csv` …
fn imported(texts: &[&str], name: Option<&str>) -> Result<Analysis> {
    let place = tempfile::tempdir().unwrap();
    let write = |(text, letter): (&&str, char)| {
        let path = place.path().join(format!("{letter}.csv"));
        fs::write(&path, text).unwrap();
        path
    };
    let files = texts.iter().zip('a'..).map(write).collect();
    let out = place.path().join("out");
    let options = ImportOptions {
        files,
        name: name.map(str::to_owned),
        out: Some(out.clone()),
        command: "import".into(),
    };
    let made = import(&options);
    assert!(made.is_ok() || !out.exists(), "nothing is left behind");
    let (folder, analysis) = made?;
    // What is read again is what was imported.
    let again = crate::session::read(&folder)?;
    let json = |it: &Analysis| serde_json::to_value(it).unwrap();
    assert_eq!(json(&again), json(&analysis));
    Ok(analysis)
}

/// `count` messages, each sent 1 ms after the one before, with these latencies in µs.
fn trace(count: u64, latency_us: impl Fn(u64) -> u64) -> String {
    let line = |at: u64| format!("{},{}\n", at * 1000, at * 1000 + latency_us(at));
    "sent_us,received_us\n".to_owned() + &(1..=count).map(line).collect::<String>()
}

#[test]
fn latencies_rate_and_jitter_are_those_of_the_trace() {
    // 50, 51 … 54, 50 …: a step of 1 four times, then one of 4.
    let analysis = imported(&[&trace(1001, |at| 50 + at % 5)], None).unwrap();
    let (cell, detail) = (&analysis.summary.cells[0], &analysis.details[0]);
    assert_eq!((&*cell.system, cell.runs, cell.samples, cell.valid), ("a", 1, 1001, true));
    let one_way = cell.one_way_us.unwrap();
    assert_eq!((one_way.min, one_way.p50, one_way.max), (50.0, Some(52.0), 54.0));
    assert_eq!(one_way.p90, Some(54.0));
    assert!((cell.throughput_per_s.unwrap() - 1000.0).abs() < 1e-6, "{:?}", cell.throughput_per_s);
    assert!((cell.jitter_us.unwrap() - 1.6).abs() < 0.01, "{:?}", cell.jitter_us);
    let timeline = detail.timeline.as_ref().unwrap();
    assert!((timeline.duration_s - 1.0).abs() < 1e-9);
    assert!(detail.stages.is_none() && detail.slowest[0].cpus.is_empty());
    assert_eq!(detail.slowest[0].us, 54.0);
    // The clock may also begin with the first message.
    let zero = imported(&["sent_ns,received_ns\n0,0\n1000,1500\n"], None).unwrap();
    assert_eq!(zero.summary.cells[0].samples, 2);
}

#[test]
fn what_was_not_measured_is_absent_and_never_zero() {
    let analysis = imported(&[&trace(100, |_| 7)], None).unwrap();
    let cell = serde_json::to_value(&analysis.summary.cells[0]).unwrap();
    for name in [
        "cpu_us_per_message",
        "cpu_percent",
        "rss_bytes",
        "pss_bytes",
        "shared_bytes",
        "voluntary_switches_per_s",
        "involuntary_switches_per_s",
        "page_faults",
        "startup_ms",
        "lost",
        "duplicates",
        "corrupt",
        "loss_percent",
        "loopback_bytes_per_byte",
        "write_us",
        "wake_us",
        "service_us",
        "lateness_us",
    ] {
        assert!(cell.get(name).is_none(), "{name}: {}", cell[name]);
    }
    assert!(cell["params"].get("payload_bytes").is_none() && cell["params"]["imported"] == true);
    let run = &analysis.details[0].runs[0];
    let known: Vec<&str> = run.all().map(|(name, _)| name).collect();
    let expected = ["jitter_us", "out_of_order", "p50_us", "received", "sent", "throughput_per_s"];
    assert_eq!(known, [&expected[..], &["unsettled_runs"]].concat());
}

#[test]
fn lost_messages_are_those_without_a_receive_time_and_missing_numbers() {
    let empty = imported(&["sent_ns,received_ns\n100,150\n200,\n300,360\n"], None).unwrap();
    let cell = &empty.summary.cells[0];
    assert_eq!((cell.sent, cell.received, cell.lost), (3, 2, Some(1)));
    assert_eq!(cell.duplicates, None, "without numbers one message is as another");

    // 7 is missing, 9 came twice, 10 came after 11; the lines are in the order of receiving.
    let lines = [(5, 10, 20), (6, 20, 31), (8, 40, 51), (9, 50, 52), (9, 50, 53), (11, 70, 90)];
    let lines = lines.iter().chain(&[(10, 60, 95)]);
    let lines = lines.map(|(number, sent, received)| format!("{sent},{received},{number}\r\n"));
    let text = "\u{feff}Sent_ns, Received_ns ,sequence\r\n".to_owned() + &lines.collect::<String>();
    let numbered = imported(&[&text], None).unwrap();
    let (cell, detail) = (&numbered.summary.cells[0], &numbered.details[0]);
    assert_eq!((cell.sent, cell.received, cell.lost), (7, 6, Some(1)));
    assert_eq!((cell.duplicates, cell.out_of_order), (Some(1), 1));
    assert_eq!((detail.slowest[0].id, detail.slowest[0].us), (10, 0.035), "its number");
}

#[test]
fn each_topic_is_a_cell_and_each_file_a_run() {
    let text = "topic;subscriber;sent_ms;received_ms;bytes\n\
                /image;one;1;2;900\n/image;two;1;3;900\n/image;one;11;12;900\n\
                \"/imu;raw\";one;4;4.5;48\n\"/imu;raw\";one;6;6.5;50\n";
    let analysis = imported(&[text, text], Some("robot.nav")).unwrap();
    let cells = &analysis.summary.cells;
    let found = |cell: &crate::summary::Cell| {
        let (params, topic) = (&cell.params, cell.params.module.clone().unwrap());
        (topic, params.subscribers, params.size(), cell.runs, cell.sent, cell.lost)
    };
    let image = ("/image".to_owned(), 2, Some(900), 2, 4, Some(2));
    assert_eq!(found(&cells[0]), image, "`two` took one of two messages in each run");
    assert_eq!(found(&cells[1]), ("/imu;raw".to_owned(), 1, None, 2, 4, None));
    assert!(cells[1].notes.iter().any(|note| note.ends_with("48 to 50 B")), "{:?}", cells[1].notes);
    assert!(cells.iter().all(|cell| cell.system == "robot.nav"));
    assert_eq!(analysis.summary.systems[0].about, "messages of a.csv, b.csv");
    let apart = imported(&[text, &trace(10, |_| 5)], None).unwrap();
    let systems: Vec<&str> = apart.summary.cells.iter().map(|cell| &*cell.system).collect();
    assert_eq!(systems, ["a", "a", "b"]);
}

#[test]
fn mistakes_are_named_with_line_column_and_remedy() {
    let head = "sent_ns,received_ns";
    let of = |lines: &str| format!("{head}\n{lines}");
    for (text, expected) in [
        (String::new(), "a.csv:1: the file is empty; the first line must name the columns"),
        (of(""), "a.csv:1: there are no messages below the header"),
        ("1,2\n3,4\n".into(), "a.csv:1: no column `sent_ns`; the first line must name"),
        ("send_ns,received_ns\n1,2\n".into(), "no column `sent_ns`; did you mean `send_ns`?"),
        ("sent_ns,x\n1,2\n".into(), "no column `received_ns`"),
        (
            "sent_ns,sent_us,received_ns\n1,1,2\n".into(),
            "columns `sent_ns` and `sent_us`; keep one",
        ),
        (
            of("1,2\n5,\n7,x\n"),
            "a.csv:4: received_ns: \"x\" is not a time; write a time from 0 on in ns",
        ),
        (of("-1,2\n"), "a.csv:2: sent_ns: \"-1\" is not a time"),
        (of("1e9,2\n"), "sent_ns: \"1e9\" is not a time"),
        (of("99999999999999999999,2\n"), "is not a time"),
        (of(",2\n"), "a.csv:2: sent_ns: it is empty; a message needs its time"),
        (
            of("5000,1000\n"),
            "received_ns: 4 µs before it was sent; both times must be of one clock",
        ),
        (
            of("5,1700000000000000000\n"),
            "1\u{a0}699\u{a0}999\u{a0}999 s after it was sent; both times",
        ),
        (of("1,2,3\n"), "a.csv:2: 3 fields, but the header has 2 columns; quote"),
        (of("1,\n2,\n"), "no message has a receive time"),
        (format!("{head},sequence\n1,2,1.5\n"), "a.csv:2: sequence: \"1.5\" is not a whole number"),
        (format!("{head},bytes\n1,2,\n"), "a.csv:2: bytes: \"\" is not a whole number"),
        (
            format!("{head},sequence\n1,2,7\n5,6,3\n"),
            "a.csv:3: sequence: 3 was sent after 7, which is on line 2",
        ),
        (
            format!("{head},sequence\n1,2,7\n5,6,7\n"),
            "a.csv:3: sequence: 7 was sent at another time on line 2",
        ),
        (
            format!("{head},sequence\n1,2,7\n5,6,9000000\n"),
            "8\u{a0}999\u{a0}992 numbers are missing before 9000000",
        ),
        (format!("{head},topic\n1,2,\n"), "a.csv:2: topic: \"\" is not a name"),
        (format!("{head},topic\n1,2,\"a\nb\"\n"), "topic: \"a\\nb\" is not a name"),
        (format!("{head},subscriber\n1,2,\n"), "subscriber: \"\" is not a name"),
        (
            format!("{head},topic\n1,2,/a/b\n1,2,a.b\n"),
            "topic: `/a/b` and `a.b` have the same name in files",
        ),
    ] {
        let error = imported(&[&text], None).expect_err(&text).to_string();
        assert!(error.contains(expected) && error.contains("; "), "{text:?}: {error}");
    }
    let name = imported(&[&trace(9, |_| 5)], Some("../x")).unwrap_err().to_string();
    assert!(name.contains("--name \"../x\"; use up to 64 letters"), "{name}");
    let place = tempfile::tempdir().unwrap();
    let of = |path: PathBuf| trace::read(&path).unwrap_err().to_string();
    for (bytes, expected) in [
        (&b"\xff\xfes\0e\0"[..], "x.csv:1: the header is not UTF-8; save the file as UTF-8"),
        (&b"sent_ns,received_ns,topic\n1,2,\xfc\n"[..], "x.csv:2: topic: it is not UTF-8"),
    ] {
        let path = place.path().join("x.csv");
        fs::write(&path, bytes).unwrap();
        let error = of(path);
        assert!(error.contains(expected), "{error}");
    }
    let missing = of(place.path().join("no.csv"));
    assert!(missing.contains("no.csv: ") && missing.ends_with("name a CSV file that can be read"));
    assert!(of(place.path().to_owned()).contains("; name a CSV file"), "a folder");
}

#[test]
fn the_session_began_when_the_first_message_was_sent_if_the_clock_says_so() {
    assert_eq!(begun(1_700_000_000_000_000_000).timestamp(), 1_700_000_000);
    let now = Utc::now();
    assert!(begun(5_000_000_000) >= now && begun(u64::MAX) >= now, "uptime, and no time at all");
    let far = now.timestamp_nanos_opt().unwrap() as u64 + 86_400_000_000_000;
    assert!(begun(far).timestamp() - now.timestamp() < 3600, "not in the future");
}

#[test]
fn applications_are_named_after_their_files() {
    let name = |path: &str| system_of(Path::new(path), None).unwrap();
    assert_eq!(name("runs/front camera (2).csv"), "front-camera--2-");
    assert_eq!(name("nav.v2.csv"), "nav.v2");
    assert_eq!([name("..."), name("é.csv")], ["application"; 2]);
}
