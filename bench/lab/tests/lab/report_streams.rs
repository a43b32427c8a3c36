//! Streams at a robot's rates, floods and start-ups in reports, as text.

use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::{published, robot};
use summary::Analysis;

fn table(analysis: &Analysis, width: usize) -> String {
    terminal(analysis, Format::Table, Screen { width, colour: false })
}

fn file(analysis: &Analysis, name: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    write_all(analysis, directory.path()).unwrap();
    std::fs::read_to_string(directory.path().join(name)).unwrap()
}

/// The words after a label, in the first row that has it.
fn row<'t>(text: &'t str, label: &str) -> Vec<&'t str> {
    let found = text.lines().find_map(|line| line.trim_start().strip_prefix(label));
    found.unwrap_or_else(|| panic!("no row {label:?} in\n{text}")).split_whitespace().collect()
}

fn all() -> [Analysis; 6] {
    [
        robot::sizes(),
        robot::rates(),
        robot::fan_out(),
        robot::modules(),
        robot::extremes(),
        robot::beside(),
    ]
}

#[test]
fn tables_fit_the_terminal() {
    for analysis in all() {
        for width in [100, 150] {
            let text = table(&analysis, width);
            let tables = text.lines().take_while(|line| *line != "Verdicts" && *line != "Validity");
            let widest = tables.map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} > {width}\n{text}");
        }
    }
}

#[test]
fn streams_show_both_latencies_costs_and_qos() {
    let text = table(&robot::sizes(), 250);
    for wanted in [
        "sizes-100hz · two processes · 100 Hz\n",
        "16 B: from the time a message was due until its payload was taken, µs; naive: from its",
        "sizes-100hz: one way p50 and p99, µs; CPU of the receiving process, % of a core",
        "✗141¹",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    // p50 p99, p99.9, max, ratio to the floor, naive p99.9, late p50 p99, publish, CPU of all
    // processes and of the receiver, PSS, lost, per second, QoS.
    let words = row(&text, "myelin.shm-block tuned");
    let expected = [
        "52.0", "156", "260", "468", "1.06×", "130", "60.0", "180", "0.30", "1.50", "0.60", "9.0",
        "0", "100", "best", "effort,", "16",
    ];
    assert_eq!(words, expected, "{text}");
    assert_eq!(row(&text, "iceoryx2.event tuned").last_chunk(), Some(&["reliable,", "16"]));
    let large = text.split("10 MiB: from").nth(1).unwrap();
    assert!(row(large, "cyclonedds.udp default").contains(&"1.80"), "30 of 1670 lost: {large}");
}

#[test]
fn reliable_and_best_effort_are_not_compared() {
    let text = table(&robot::sizes(), 400);
    let verdicts = text.split("Verdicts\n").nth(1).unwrap();
    assert!(verdicts.contains("myelin.shm-block, 16 B, default: p50 104 µs [103, 105], 2.69×"));
    assert!(verdicts.contains("lower than cyclonedds.udp"), "{verdicts}");
    for line in verdicts.lines().filter(|line| line.contains("iceoryx2.event")) {
        assert!(line.contains("than default"), "only with itself: {line}");
    }
    let mut same = robot::sizes();
    for cell in &mut same.summary.cells {
        cell.params.reliability = None;
    }
    let text = table(&same, 400);
    assert!(text.contains("iceoryx2.event, 16 B, default: p50 122 µs [121, 123], 2.30×"), "{text}");
}

#[test]
fn a_missed_rate_is_shown() {
    let text = table(&robot::rates(), 250);
    for wanted in [
        "cyclonedds.udp, 64 KiB, tuned: reached 8200 of 100\u{a0}000 messages a second",
        "; the reached rate where it is below the requested one",
        "1.90 %, 8200/s",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
}

#[test]
fn a_system_below_its_rate_is_not_compared() {
    let markdown = file(&robot::rates(), "report.md");
    let lines: Vec<_> = markdown.lines().filter(|line| line.contains(", 100000 Hz: p50")).collect();
    let of = |system: &str| *lines.iter().find(|line| line.contains(system)).unwrap();
    let why = "not compared with cyclonedds.udp, which is short of its rate here";
    assert!(of("myelin.shm-block").contains(why), "{lines:?}");
    // They are compared at a rate that both reach, and the rate is named.
    assert!(markdown.contains("myelin.shm-block, 64 KiB, tuned, 1000 Hz: p50 52.0 µs"));
    let own = of("cyclonedds.udp, 64 KiB");
    assert!(own.ends_with("reached 8200 of 100\u{a0}000 messages a second"), "{own}");
}

#[test]
fn an_uneven_schedule_is_not_short_of_its_rate() {
    let mut analysis = robot::rates();
    for cell in &mut analysis.summary.cells {
        cell.params.arrivals = Some("missing".to_owned());
    }
    assert!(!table(&analysis, 250).contains("reached 8200"), "one in ten was not to be sent");
}

#[test]
fn floods_show_the_taken_messages() {
    let text = table(&robot::extremes(), 250);
    // Taken per second and in MB/s, published per second, lost, rate without loss, publish, CPU,
    // PSS, QoS.
    let words = row(&text, "myelin.shm-block default");
    let expected = [
        "300\u{a0}000",
        "19.2",
        "375\u{a0}000",
        "20.0",
        "200\u{a0}000",
        "0.30",
        "0.90",
        "26.5",
        "1.50",
        "0.60",
        "17.8",
        "best",
        "effort,",
        "16",
    ];
    let split: Vec<_> = expected.iter().flat_map(|word| word.split_whitespace()).collect();
    assert_eq!(words, split, "{text}");
    let large = text.split("64 KiB: back to back").nth(1).unwrap();
    assert!(large.contains("19\u{a0}661"), "300 000 x 65536 B: {large}");
    let lossy = row(&text, "cyclonedds.udp default");
    assert!(lossy.contains(&"–"), "no rate without loss was found: {lossy:?}");
    assert!(!text.contains("Verdicts"), "a queue's depth is no latency: {text}");
    assert!(!text.contains("Messages:"), "loss is what a flood is for: {text}");
}

#[test]
fn start_up_times_include_the_daemon() {
    let text = table(&robot::extremes(), 250);
    let startups = text.split("sanity-discovery · two processes\n").nth(1).unwrap();
    // The daemon; matched and first sample, each with min, mean, p50, max; total; runs.
    let words = row(startups, "iceoryx2.event default");
    let expected = ["12.5", "2.40", "3.30", "–", "27.0", "2.72", "3.74", "–", "30.6", "16.2", "5"];
    assert_eq!(words, expected, "{startups}");
    assert_eq!(row(startups, "cyclonedds.udp default").len(), 10, "without a daemon");
    assert!(!text.contains("sanity-discovery · two processes · back to back"), "{text}");
}

#[test]
fn modules_are_shown_beside_published_figures() {
    let analysis = robot::modules();
    let tables = published::tables(published::CYBERRT);
    let [here, across] = [0, 1].map(|place| published::rows(&tables[place]));
    let module = |row: &toml::Table| row["module"].as_str().unwrap().to_owned();
    for name in ["report.md", "report.html"] {
        let text = file(&analysis, name);
        for row in &across {
            let lines = text.lines().filter(|line| {
                line.contains("not measured: two hosts") && line.contains(&module(row))
            });
            let figures: Vec<_> = lines.collect();
            assert_eq!(figures.len(), 1, "{row}");
            assert!(figures[0].contains(&row["latency_us"].to_string()), "{figures:?}");
        }
    }
    let markdown = file(&analysis, "report.md");
    // CPU, latency (mean), p50, lost, memory, shared.
    let wanted = "| high-frequency functional (localization) | 64 KB | 100 Hz | myelin.shm-block \
        default | 9.71 → 1.50 | 69.54 → 114 | – → 104 | 0 → 0 | 250 → 14.4 | 1024 → 0.0 |";
    assert!(markdown.contains(wanted), "{markdown}");
    for row in &here {
        let start = format!("| {} | {} | ", module(row), row["payload"].as_str().unwrap());
        let here = markdown.lines().filter(|line| line.starts_with(&start));
        let measured = here.filter(|line| !line.contains("two hosts"));
        assert_eq!(measured.count(), 5, "every system at its first tuning: {row}");
    }
    let page = file(&analysis, "report.html");
    let report: toml::Table = published::CYBERRT.parse().unwrap();
    let doubts = published::texts(&report["doubts"]);
    assert_eq!(doubts.len(), 3);
    for doubt in doubts.into_iter().chain(report["notes"].as_str()) {
        let escaped = doubt.replace('\'', "&#x27;");
        assert!(page.contains(&escaped), "{doubt}");
    }
    let titles =
        ["modules · two processes · localisation · 100 Hz", "64 KiB, localisation, 100 Hz"];
    titles.into_iter().for_each(|title| assert!(page.contains(title), "{title}"));
    assert!(!page.contains("<section id=\"sweeps\">"), "payload and rate go together here");
}

#[test]
fn published_modules_without_our_figures_are_shown() {
    let mut analysis = robot::modules();
    let kept: Vec<bool> = (analysis.summary.cells.iter())
        .map(|cell| cell.params.module.as_deref() != Some("normal-sensor"))
        .collect();
    let keep = |place: usize| kept[place];
    let mut place = 0;
    analysis.summary.cells.retain(|_| (keep(place), place += 1).0);
    place = 0;
    analysis.details.retain(|_| (keep(place), place += 1).0);
    let markdown = file(&analysis, "report.md");
    let wanted = "| normal sensor | 1 MB | 10 Hz | not measured | 8.47 → – | 82.29 → – |";
    assert!(markdown.contains(wanted), "{markdown}");
}

#[test]
fn files_have_the_parameters_and_figures() {
    let csv = file(&robot::extremes(), "summary.csv");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).expect(name);
    let rows: Vec<_> = rows.records().map(Result::unwrap).collect();
    let of = |scenario: &str, system: &str| {
        let found = rows
            .iter()
            .find(|row| &row[at("scenario")] == scenario && &row[at("system")] == system);
        found.unwrap()
    };
    let flood = of("flood", "myelin.shm-block");
    assert_eq!((&flood[at("taken_per_s")], &flood[at("lossless_per_s")]), ("300000", "200000"));
    assert_eq!((&flood[at("reliability")], &flood[at("depth")]), ("best-effort", "16"));
    assert_eq!((&flood[at("publishers")], &flood[at("topics")]), ("1", "1"));
    assert_eq!(&of("flood", "cyclonedds.udp")[at("lossless_per_s")], "", "none was found");
    let startup = of("sanity-discovery", robot::RELIABLE);
    assert_eq!(
        (&startup[at("daemon_ms")], &startup[at("matched_us_mean")]),
        ("12.5", "3300.0000000000005")
    );
    assert_eq!((&startup[at("matched_us_p50")], &startup[at("workload")]), ("", "startup"));

    let csv = file(&robot::modules(), "summary.csv");
    let head = csv.lines().next().unwrap();
    assert!(head.contains(",module,") && head.contains(",service_us_p999"), "{head}");
    assert!(!head.contains("taken_per_s") && !head.contains("matched_us"), "{head}");
    assert!(csv.contains(",high-end-sensor,"));
}

#[test]
fn markdown_tables_are_rectangular() {
    for analysis in all() {
        let text = file(&analysis, "report.md");
        let mut width = None;
        for line in text.lines() {
            if !line.starts_with('|') {
                width = None;
                continue;
            }
            let bars = line.replace("\\|", "").matches('|').count();
            assert_eq!(*width.get_or_insert(bars), bars, "{line}");
        }
    }
}

#[test]
fn formats_of_half_round_trips_omit_one_way_cells() {
    for analysis in all() {
        for format in [Format::Roundtrip, Format::Ddsperf] {
            assert_eq!(terminal(&analysis, format, Screen::default()), "");
        }
    }
}

#[test]
fn messages_beside_a_load_stand_beside_the_same_alone() {
    let analysis = robot::beside();
    let text = table(&analysis, 250);
    let caption = "command-beside-images: 64 B, 1000 Hz, alone and beside images (10 MiB at 5 Hz): one-way latency, µs";
    let (_, beside) = text.split_once(caption).unwrap_or_else(|| panic!("{text}"));
    // p50, p99 and largest: alone, beside, ratio; the load: a second, lost, p50 and largest, CPU.
    let expected = [
        "52.0", "156", "3.00×", "156", "468", "3.00×", "468", "1404", "3.00×", "5.0", "0", "90000",
        "810000", "6400",
    ];
    assert_eq!(row(beside, "myelin.shm-block tuned"), expected, "{beside}");
    let lossy = row(beside, "cyclonedds.udp tuned");
    assert_eq!(lossy[9..11], ["4.0¹", "20.0"], "{beside}");
    let short = "cyclonedds.udp, 64 B, tuned: of the load 4.0 of 5.0 messages a second were taken";
    assert!(beside.contains(short), "{beside}");
    let invalid = row(beside, "iceoryx2.event tuned");
    let expected = ["61.0²", "✗183", "–", "183", "✗549", "–"];
    assert_eq!(invalid[..6], expected, "{beside}");
    assert!(beside.contains("the load: no message was taken"), "{beside}");
    // The interval of the ratio is that of the runs, which wander by a hundredth.
    let (_, below) = beside.split_once("cyclonedds.udp tuned").unwrap();
    let interval = below.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>();
    assert!(interval.iter().all(|it| it.contains("2.9") || it.contains("3.0")), "{interval:?}");

    let glance = terminal(&analysis, Format::Glance, Screen { width: 250, colour: false });
    assert!(glance.contains(caption), "{glance}");
    for name in ["report.md", "report.html"] {
        assert!(
            file(&analysis, name).contains("alone and beside images (10 MiB at 5 Hz)"),
            "{name}"
        );
    }
    let csv = file(&analysis, "summary.csv");
    let (head, rows) = csv.split_once('\n').unwrap();
    let at = |name: &str| head.split(',').position(|it| it == name).expect(name);
    let of = |row: &str, name| row.split(',').nth(at(name)).unwrap().to_owned();
    let (alone, loaded) = (rows.lines().nth(1).unwrap(), rows.lines().nth(6).unwrap());
    let names = ["load", "load_received_per_s", "load_lost", "load_one_way_us_p50"];
    assert_eq!(names.map(|name| of(loaded, name)), ["images", "4", "10", "90000"]);
    assert_eq!(names.map(|name| of(alone, name)), [""; 4]);
    let without = file(&robot::rates(), "summary.csv");
    assert!(!without.contains(",load"), "columns that no cell has");
}
