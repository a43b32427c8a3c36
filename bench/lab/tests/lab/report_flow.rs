//! Streams and images in reports, in every format.

use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::flow;
use summary::Analysis;

fn table(analysis: &Analysis) -> String {
    terminal(analysis, Format::Table, Screen { width: 200, colour: false })
}

fn row<'t>(text: &'t str, label: &str) -> &'t str {
    let found = text.lines().find(|line| line.trim_start().starts_with(label));
    found.unwrap_or_else(|| panic!("no row {label:?} in\n{text}"))
}

#[test]
fn frame_latency_excludes_the_copies() {
    let text = table(&flow::images());
    for wanted in [
        "image-30hz · one process and two processes · 30 Hz\n",
        "1440x1080 rgb8: from the stamp until the payload was taken, µs",
        "320x240 rgb8: from the stamp",
        "user's copies, p50",
        "CPU, % of a core",
        "invalid: myelin.shm-block, 320x240 rgb8, default: run 1: 3 payloads",
        "23 of 24 valid",
        "all delivered once",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    // p50 p99, p99.9, max, ratio to the floor os.futex, late p50 p99, loan, fill, publish, memcpy,
    // streaming, CPU of all processes and of the receiver, PSS, lost, per second.
    let block = row(&text, "myelin.shm-block tuned");
    let words: Vec<&str> = block.split_whitespace().skip(2).collect();
    let expected = [
        "52.0", "156", "–", "468", "1.11×", "60.0", "180", "0.20", "51.2", "0.30", "25.6", "20.5",
        "1.50", "0.60", "17.8", "0", "30.0",
    ];
    assert_eq!(words, expected, "{block}");
    let callback = row(&text, "myelin.local-callback tuned");
    assert!(callback.contains("1.25×"), "beside os.call: {callback}");
    assert!(!text.contains("whole round trip"), "{text}");
}

#[test]
fn the_floor_is_the_named_system_and_not_a_minimum() {
    let mut analysis = flow::images();
    let is_futex = |name: &str| name == "os.futex";
    let mut info = analysis.summary.systems.iter().find(|it| is_futex(&it.name)).unwrap().clone();
    info.name = "os.pipe".to_owned();
    analysis.summary.systems.push(info);
    for index in 0..analysis.summary.cells.len() {
        let mut cell = analysis.summary.cells[index].clone();
        if !is_futex(&cell.system) {
            continue;
        }
        cell.system = "os.pipe".to_owned();
        cell.one_way_us.as_mut().unwrap().p50 = Some(0.5);
        cell.one_way_p50_interval_us = Some([0.4, 0.6]);
        analysis.summary.cells.push(cell);
        analysis.details.push(analysis.details[index].clone());
    }
    let text = table(&analysis);
    assert!(text.contains("1.11× [1.09, 1.12] the floor (os.futex)"), "{text}");
    assert!(!text.contains("the floor (os.pipe)"), "{text}");
    assert!(text.contains("; floor: os.call, os.futex,"), "{text}");
}

#[test]
fn other_topologies_and_wait_modes_are_not_compared() {
    let text = table(&flow::images());
    let verdicts: Vec<&str> = text.lines().skip_while(|line| *line != "Verdicts").collect();
    let verdicts = verdicts.join(" ");
    assert!(
        verdicts.contains("myelin.shm-predictive (predicts), 1440x1080 rgb8, tuned: p50 0.80 µs"),
        "{verdicts}"
    );
    assert!(verdicts.contains("65.0× [64.1, 65.9] lower than myelin.shm-block"), "{verdicts}");
    assert!(verdicts.contains("1.11× [1.09, 1.12] the floor (os.futex)"), "{verdicts}");
    assert!(!verdicts.contains("0.02×"), "one that predicts spins: its floor is none that sleeps");
    for reference in ["than myelin.local-callback", "than myelin.shm-poll", "from myelin.shm-poll"]
    {
        assert!(!verdicts.contains(reference), "{verdicts}");
    }
}

#[test]
fn schedules_are_shown_beside_each_other() {
    let text = table(&flow::streams());
    for wanted in [
        "periodic · two processes · 100 Hz · jitter\n",
        "periodic: one way p50 and p99, µs; CPU of the receiving process, % of a core",
        "0.80 2.40",
        "1.10 %",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    for arrivals in flow::ARRIVALS {
        assert!(row(&text, &format!("100 Hz, {arrivals}")).contains("52.0 156"), "{text}");
    }
}

#[test]
fn files_have_the_figures_and_their_parameters() {
    let directory = tempfile::tempdir().unwrap();
    write_all(&flow::images(), directory.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();

    let json: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let cell = &json["cells"][9];
    assert_eq!(
        (&cell["workload"], &cell["params"]["frame"]),
        (&"image".into(), &"1440x1080".into())
    );
    assert_eq!(
        (&cell["topology"], &cell["system"]),
        (&"two-processes".into(), &"myelin.shm-block".into())
    );
    assert_eq!(
        (&cell["one_way_us"]["p50"], &cell["receiver_cpu_percent"]),
        (&52.0.into(), &0.6.into())
    );
    assert_eq!(cell["params"]["arrivals"], serde_json::Value::Null, "absent without a name");

    let csv = read("summary.csv");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).expect(name);
    let row = rows.records().nth(9).unwrap().unwrap();
    assert_eq!((&row[at("workload")], &row[at("frame")]), ("image", "1440x1080"));
    assert_eq!((&row[at("one_way_us_p50_low")], &row[at("memcpy_us_p50")]), ("51.48", "518.4"));

    let markdown = read("report.md");
    assert!(markdown.contains("| myelin.shm-block tuned | 52.0 · 156; "), "{markdown}");
    assert!(
        markdown.contains("| libxr | callback entry | 320x240 | myelin.local-callback default |")
    );
    assert!(markdown.contains("0.45 → 1.10 |"), "{markdown}");
    assert!(!markdown.contains("<img"), "{markdown}");
}

#[test]
fn formats_of_half_round_trips_omit_one_way_cells() {
    for format in [Format::Roundtrip, Format::Ddsperf] {
        assert_eq!(terminal(&flow::images(), format, Screen::default()), "");
    }
}
