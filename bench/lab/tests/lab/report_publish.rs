//! Publish runs in reports, in every format.

use myelin_bench_kit::protocol::Touch;
use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::{fan, fixture};
use summary::Analysis;

fn table(analysis: &Analysis) -> String {
    terminal(analysis, Format::Table, Screen { width: 120, colour: false })
}

#[test]
fn the_table_has_subscribers_by_system_in_nanoseconds() {
    let text = table(&fan::analysis());
    for wanted in [
        "publish · two processes · 20000 Hz\n",
        "publish call of 64 B, ns: p50, p99 and [interval of p50, of at least 93.75 %]",
        "p50 minus one clock read (18 ns), ns; time that each further subscriber adds",
        "0 subscribers ",
        "1 subscriber ",
        "136 408",
        "[122, 150]",
        "+2.00 each [1.50, 2.50]",
        "✗248¹",
        "invalid: cyclonedds.udp, 64 B, 64 subscribers, default: run 1: 3 of 64 subscribers took",
        "15 of 16 valid",
        "all delivered once",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert!(!text.contains("whole round trip") && !text.contains("lowest p50"), "{text}");
    // 136 ns minus 18.2 for reading the clock.
    let row =
        text.lines().filter(|line| line.trim_start().starts_with("8 subscribers")).nth(1).unwrap();
    assert!(row.contains(" 118"), "{text}");
}

#[test]
fn without_a_calibration_no_clock_cost_is_subtracted() {
    let mut analysis = fan::analysis();
    analysis.summary.host.clock_read_ns = 0.0;
    let text = table(&analysis);
    assert!(text.contains("p50 minus one clock read (not calibrated)"), "{text}");
    assert!(text.contains("+2.00 each"), "{text}");
}

#[test]
fn files_have_the_figures_and_their_parameters() {
    let directory = tempfile::tempdir().unwrap();
    write_all(&fan::analysis(), directory.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();

    let json: serde_json::Value = serde_json::from_str(&read("summary.json")).unwrap();
    let cell = &json["cells"][2];
    assert_eq!((&cell["workload"], &cell["params"]["subscribers"]), (&"publish".into(), &8.into()));
    assert_eq!(cell["write_us"]["p50"], 0.136);
    assert_eq!(cell["further_subscriber"]["ns"], 2.0);
    assert_eq!(cell["params"]["touch"], serde_json::Value::Null, "absent for the default");

    let csv = read("summary.csv");
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).expect(name);
    let row = rows.records().nth(2).unwrap().unwrap();
    assert_eq!((&row[at("workload")], &row[at("subscribers")]), ("publish", "8"));
    assert_eq!((&row[at("further_subscriber_ns")], &row[at("write_us_p50")]), ("2", "0.136"));

    let markdown = read("report.md");
    assert!(markdown.contains("| 8 subscribers | 136 · 408; [122, 150]"), "{markdown}");
    assert!(markdown.contains("~~248 · 744~~¹") && !markdown.contains("<img"), "{markdown}");
}

#[test]
fn round_trip_reports_have_no_publish_tables() {
    let directory = tempfile::tempdir().unwrap();
    write_all(&fixture::analysis(), directory.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
    for name in ["summary.json", "summary.csv"] {
        let text = read(name);
        for word in ["workload", "touch", "further_subscriber", "write_p50_interval"] {
            assert!(!text.contains(word), "{word} in {name}");
        }
    }
    assert!(!read("report.html").contains("By subscribers"));
}

#[test]
fn an_untouched_payload_is_noted_at_every_cell_name() {
    let mut analysis = fixture::analysis();
    for cell in &mut analysis.summary.cells {
        cell.params.touch = Touch::Header;
    }
    let words = "header only: payload neither written nor checked";
    let text = table(&analysis);
    assert!(text.contains(&format!("back to back · {words}\n")), "{text}");
    let text = terminal(&analysis, Format::Roundtrip, Screen::default());
    let first = text.lines().next().unwrap();
    assert!(first.ends_with(words), "{first}");
    let directory = tempfile::tempdir().unwrap();
    write_all(&analysis, directory.path()).unwrap();
    let csv = std::fs::read_to_string(directory.path().join("summary.csv")).unwrap();
    assert!(csv.lines().next().unwrap().contains(",touch,") && csv.contains(",header,"));
    let page = std::fs::read_to_string(directory.path().join("report.html")).unwrap();
    assert!(page.contains(words));
}
