//! The tables of the published reports: every published row appears on the page and in `report.md`.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the reports of the fixture in that folder for inspection.

use std::path::Path;
use std::sync::LazyLock;

use myelin_bench_lab::report::published::PublishedReport;
use myelin_bench_lab::report::write_all;
use myelin_bench_lab::summary;
use toml::{Table, Value};

use crate::page::{fixture, flow, published, robot, tables};
use published::{CYBERRT, number, texts};
use summary::{Analysis, Cell};
use tables::{markdown_rows, page_rows};

const ORIN: &str = include_str!("../../../published/cyclonedds-orin.toml");
const IMAGES: &str = include_str!("../../../published/image-ros2-libxr.toml");

/// Every scenario with published counterparts.
fn all() -> Analysis {
    let mut all = fixture::analysis();
    again(&mut all, "roundtrip-sizes", |cell| {
        cell.scenario = "roundtrip-60s".to_owned();
        cell.params.payload_bytes == 0
    });
    let mut rates = robot::sizes();
    for rate in [20.0, 50.0, 100.0] {
        again(&mut rates, "sizes-100hz", |cell| {
            cell.scenario = "rates-1mb".to_owned();
            cell.params.rate_hz = Some(rate);
            cell.params.payload_bytes == 1 << 20
        });
    }
    again(&mut rates, "rates-1mb", |cell| {
        let is_first = cell.params.rate_hz.replace(10.0) == Some(20.0);
        cell.one_way_us.as_mut().unwrap().mean = 77.0;
        is_first
    });
    for more in [rates, robot::modules(), flow::images()] {
        all.details.extend(more.details);
        all.summary.cells.extend(more.summary.cells);
        for system in more.summary.systems {
            if !all.summary.systems.iter().any(|known| known.name == system.name) {
                all.summary.systems.push(system);
            }
        }
    }
    all
}

/// Adds copies of a scenario's cells, changed by `change`; a copy is dropped if it returns false.
fn again(analysis: &mut Analysis, scenario: &str, change: impl Fn(&mut Cell) -> bool) {
    for index in 0..analysis.summary.cells.len() {
        let mut cell = analysis.summary.cells[index].clone();
        if cell.scenario == scenario && change(&mut cell) {
            analysis.summary.cells.push(cell);
            analysis.details.push(analysis.details[index].clone());
        }
    }
}

/// `report.md` and `report.html` of [`all`], made once.
fn reports() -> &'static [String; 2] {
    static REPORTS: LazyLock<[String; 2]> = LazyLock::new(|| {
        let directory = tempfile::tempdir().unwrap();
        write_all(&all(), directory.path()).unwrap();
        if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
            let folder = Path::new(&folder).join("published");
            std::fs::create_dir_all(&folder).unwrap();
            write_all(&all(), &folder).unwrap();
        }
        ["report.md", "report.html"]
            .map(|name| std::fs::read_to_string(directory.path().join(name)).unwrap())
    });
    &REPORTS
}

fn file(analysis: &Analysis, name: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    write_all(analysis, directory.path()).unwrap();
    std::fs::read_to_string(directory.path().join(name)).unwrap()
}

/// The text that identifies a row in the report.
fn key(column: &str, value: &Value) -> String {
    match (column, value) {
        ("payload_B", Value::Integer(bytes)) if *bytes >= 1024 => format!("{} KiB", bytes / 1024),
        ("payload_B", Value::Integer(bytes)) => format!("{bytes} B"),
        ("rate_Hz", Value::Integer(rate)) => format!("{rate} Hz"),
        ("weight", value) => format!("{:.2}", number(value).unwrap()),
        ("metric", Value::String(name)) => name.replace("half_rtt", "round_trip"),
        (_, Value::String(text)) => text.clone(),
        (column, value) => panic!("{column}: {value}"),
    }
}

/// Whether a figure of the report is the published one, rounded as reports do, with half round
/// trips doubled.
fn is_shown(shown: &str, is_half: bool, value: &Value) -> bool {
    let Some(expected) = number(value) else { return value.as_str() == Some(shown) };
    let expected = expected * if is_half { 2.0 } else { 1.0 };
    let shown: String = shown.chars().filter(|it| *it != '\u{a0}').collect();
    shown.parse::<f64>().is_ok_and(|it| (it - expected).abs() <= 0.01 * expected.abs())
}

#[test]
fn every_published_row_is_shown() {
    let tables: Vec<Table> =
        [ORIN, CYBERRT, IMAGES].into_iter().flat_map(published::tables).collect();
    let rows = |table: &Table| table["rows"].as_array().unwrap().len();
    assert_eq!(tables.iter().map(rows).collect::<Vec<_>>(), [28, 2, 9, 6, 4, 4, 8, 4]);
    for table in &tables {
        let caption = table["caption"].as_str().unwrap().split(" ({").next().unwrap();
        let [markdown, page] = reports();
        for shown in [markdown_rows(markdown, caption), page_rows(page, caption)] {
            assert_rows(table, &shown);
        }
    }
}

/// Asserts that all published rows of a table are among the shown ones, with all their figures.
fn assert_rows(table: &Table, shown: &[Vec<String>]) {
    let columns = texts(&table["columns"]);
    let labels = texts(&table["labels"]).iter().filter(|label| **label != "here").count();
    let pairs = texts(&table["pairs"]).len();
    for row in table["rows"].as_array().unwrap() {
        let row = row.as_array().unwrap();
        assert_eq!(row.len(), columns.len(), "{row:?}");
        let named: Vec<String> =
            columns.iter().zip(row).take(labels).map(|(name, it)| key(name, it)).collect();
        let found: Vec<_> = shown.iter().filter(|cells| cells.starts_with(&named)).collect();
        assert!(!found.is_empty(), "no row {named:?} in {shown:?}");
        for cells in found {
            let theirs = cells.iter().filter_map(|it| Some(it.split_once(" → ")?.0));
            let theirs: Vec<&str> = theirs.collect();
            assert_eq!(theirs.len(), pairs, "{cells:?}");
            // Figures come last, in the order of the columns.
            let figures = columns.iter().zip(row).skip(columns.len() - pairs);
            for ((column, value), theirs) in figures.zip(theirs) {
                let is_half = column.starts_with("half_") || named[0].starts_with("round_trip");
                assert!(is_shown(theirs, is_half, value), "{named:?}: {column} is {theirs}");
            }
        }
    }
}

#[test]
fn every_metric_stands_beside_ours() {
    let mut all = all();
    for cell in &mut all.summary.cells {
        cell.daemon_ms = Some(12.5);
        cell.shared_bytes = Some(1 << 20);
    }
    let text = file(&all, "report.md");
    for table in [ORIN, CYBERRT, IMAGES].into_iter().flat_map(published::tables) {
        let caption = table["caption"].as_str().unwrap().split(" ({").next().unwrap();
        let is_across = table.get("across_hosts").is_some_and(|it| it.as_bool() == Some(true));
        for (place, pair) in texts(&table["pairs"]).iter().enumerate().filter(|_| !is_across) {
            let rows = markdown_rows(&text, caption);
            let labels = rows[0].len() - texts(&table["pairs"]).len();
            let is_there = |row: &&Vec<String>| !row[labels + place].ends_with(" → –");
            let measured = rows.iter().filter(is_there).count();
            let is_of_metrics = texts(&table["columns"])[0] == "metric";
            assert!(measured > 0, "{caption}: {pair}");
            assert!(measured == rows.len() || !is_of_metrics, "{caption}: {pair}: {rows:?}");
        }
    }
}

#[test]
fn published_data_with_unknown_tables_or_rows_is_refused() {
    for text in [ORIN, CYBERRT, IMAGES] {
        let error =
            |text: &str| toml::from_str::<PublishedReport>(text).map(drop).unwrap_err().to_string();
        toml::from_str::<PublishedReport>(text).map(drop).unwrap();
        let more = format!("{text}\n[latency_by_moon]\ncolumns = [\"x\"]\nrows = [[1]]\n");
        assert!(error(&more).contains("latency_by_moon"), "{}", error(&more));
        let wrong = text.replacen("rows = [", "rows = [[true],", 1);
        assert!(error(&wrong).contains("[true]"), "a row of another kind: {}", error(&wrong));
    }
}

#[test]
fn an_invalid_cell_is_struck_out() {
    let rows = markdown_rows(&reports()[0], "Round trips by size, write and read access");
    let is_it =
        |row: &&Vec<String>| row[..3] == ["cyclonedds.udp", "default", "64 KiB"].map(str::to_owned);
    let invalid = rows.iter().find(is_it).unwrap();
    assert!(invalid[4].starts_with("– → ✗ "), "{invalid:?}");
}

#[test]
fn a_sweep_that_has_the_size_and_rate_of_a_module_stands_beside_it() {
    let text = file(&robot::sizes(), "report.md");
    let rows = markdown_rows(&text, "Modules across processes");
    let (measured, missing): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| !row[3].starts_with("not measured"));
    let missing: Vec<&str> = missing.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(missing.len(), 3, "only one module sends at 100 Hz: {missing:?}");
    assert!(measured.iter().all(|row| row[0].starts_with("high-frequency")), "{measured:?}");
    let floor = measured.iter().position(|row| row[3].starts_with("os.unix"));
    assert_eq!(floor, Some(measured.len() - 1), "{measured:?}");
    assert!(measured.len() > 2 && measured[0][5].starts_with("69.54 → "), "{measured:?}");
}

#[test]
fn unmeasured_rows_name_the_command_to_measure_them() {
    let gaps = |text: &str| {
        let (_, section) = text.split_once("## Published figures beside these").unwrap();
        let section = section.split_once("## How to repeat").unwrap().0.to_owned();
        let lines = section.lines().filter(|line| line.contains(": `myelin bench run "));
        (lines.map(str::to_owned).collect::<Vec<_>>(), section)
    };
    let (found, section) = gaps(&file(&robot::fan_out(), "report.md"));
    for scenario in ["roundtrip-sizes", "roundtrip-60s", "sanity", "modules", "image-30hz"] {
        let command = format!("`myelin bench run {scenario}`");
        let lines = found.iter().filter(|line| line.contains(&command));
        assert_eq!(lines.count(), 1, "{scenario}: {found:?}");
    }
    assert!(!section.contains('|'), "no table of published figures alone:\n{section}");

    let (found, _) = gaps(&reports()[0]);
    let images = [
        "ros2.rcl-fastrtps",
        "ros2.rclcpp",
        "ros2.rcl-myelin",
        "ros2.rclcpp-intra",
        "myelin.local-wait",
        "libxr.callback",
        "libxr.sync",
    ];
    let images = images.map(|system| {
        format!("- {system} of image-30hz: `myelin bench run image-30hz --system {system}`")
    });
    let peers = [("HORUS", "shm-roundtrip"), ("eCAL", "quick")].map(|(peer, scenario)| {
        format!("- {peer}'s message from process to process: `myelin bench run {scenario}`")
    });
    assert_eq!(found, [&images[..], &peers].concat(), "all else is there");

    // Two sizes, and a system that did not run.
    let mut quick = fixture::analysis();
    let mut keep = Vec::new();
    for cell in &mut quick.summary.cells {
        keep.push(
            cell.scenario == "roundtrip-sizes"
                && cell.system != "cyclonedds.iceoryx"
                && [64, 65536].contains(&cell.params.payload_bytes),
        );
        cell.scenario = "quick".to_owned();
    }
    let mut kept = keep.iter();
    quick.summary.cells.retain(|_| *kept.next().unwrap());
    let mut kept = keep.iter();
    quick.details.retain(|_| *kept.next().unwrap());
    let systems = &mut quick.summary.systems;
    let iceoryx = systems.iter_mut().find(|system| system.name == "cyclonedds.iceoryx").unwrap();
    iceoryx.missing = Some("no RouDi".to_owned());
    let (found, section) = gaps(&file(&quick, "report.md"));
    for wanted in [
        "- cyclonedds.iceoryx, tuned of quick, which did not run: no RouDi: `myelin bench run quick \
         --system cyclonedds.iceoryx --tuning tuned`",
        "- round trips of 0 B, 256 B, 1 KiB, 4 KiB, 16 KiB: `myelin bench run roundtrip-sizes`",
    ] {
        assert!(found.iter().any(|line| line == wanted), "{wanted}: {found:?}");
    }
    let rows = markdown_rows(&section, "Round trips by size");
    assert_eq!(rows.len(), 8, "two systems, two tunings, two sizes: {rows:?}");
}
