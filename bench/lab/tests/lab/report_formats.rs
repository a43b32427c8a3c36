//! The texts of a report: files, terminal tables, the formats of other tools.

use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::fixture;
use summary::{Analysis, Cell, Distribution, Second, Summary};

fn table(screen: Screen) -> String {
    terminal(&fixture::analysis(), Format::Table, screen)
}

/// One cell with round figures and two seconds.
fn one_cell() -> Analysis {
    let mut analysis = fixture::analysis();
    let wanted =
        |cell: &summary::Cell| cell.system == "cyclonedds.udp" && cell.scenario == "sanity";
    let index = analysis.summary.cells.iter().position(wanted).unwrap();
    let mut cell = analysis.summary.cells.swap_remove(index);
    let mut detail = analysis.details.swap_remove(index);
    let distribution = |min: f64, p50: f64, p99: Option<f64>, max: f64| Distribution {
        min,
        mean: p50 + 1.0,
        p50: Some(p50),
        p90: Some(p50 + 10.0),
        p99,
        p999: None,
        max,
    };
    // One message in four was recorded.
    cell.samples = 11_728;
    cell.received = 46_911;
    cell.round_trip_us = Some(distribution(45.9, 149.7, Some(273.2), 1267.0));
    cell.write_us = Some(distribution(20.0, 28.9, None, 90.0));
    cell.read_us = None;
    let second = |second, count, p99| Second {
        second,
        count,
        round_trip_us: distribution(47.2, 148.0, p99, 700.1),
        write_us: distribution(21.0, 28.2, None, 80.0),
        read_us: Some(distribution(1.0, 2.4, None, 9.0)),
    };
    detail.seconds = vec![second(1, 23_455, Some(266.0)), second(2, 12, None)];
    let summary = Summary { cells: vec![cell], ..analysis.summary };
    Analysis { summary, details: vec![detail] }
}

#[test]
fn roundtrip_format_is_that_of_roundtrip_ping() {
    let text = terminal(&one_cell(), Format::Roundtrip, Screen::default());
    let golden = "\
# cyclonedds.udp default 12 B, sanity, 1 Hz
# These are half round trips, as RoundtripPing prints them; everything else in Myelin prints whole ones.
# Seconds: the first valid run. Overall: all valid runs. -: too few samples, or not measured.
# payloadSize: 12 | numSamples: 0 | timeOut: 60

# Latency measurements (in us)
#             Latency [us]                                   Write-access time [us]       Read-access time [us]
# Seconds     Count   median      min      99%      max      Count   median      min      Count   median      min
        1     23455       74       23      133      350      23455       28       21      23455        2        1
        2        12       74       23        -      350         12       28       21         12        2        1

# Overall     46911       74       22      136      633      46911       28       20          -        -        -
";
    assert_eq!(text, golden);
}

#[test]
fn ddsperf_format_is_that_of_ddsperf_ping() {
    let text = terminal(&one_cell(), Format::Ddsperf, Screen::default());
    let golden = "\
# cyclonedds.udp default 12 B, sanity, 1 Hz
# These are half round trips, as ddsperf prints them; everything else in Myelin prints whole ones.
# Process numbers are unknown here and printed as 0; a thread's CPU is not divided.
[0] 1.000  pong:0 size 12 mean 74.500us min 23.600us 50% 74.000us 90% 79.000us 99% 133.000us max 350.050us cnt 23455
[0] 2.000  pong:0 size 12 mean 74.500us min 23.600us 50% 74.000us 90% 79.000us 99% - max 350.050us cnt 12
# all valid runs
[0] 2.000  pong:0 size 12 mean 75.350us min 22.950us 50% 74.850us 90% 79.850us 99% 136.600us max 633.500us cnt 46911
[0] 2.000  rss:10.0MB vcsw:2 ivcsw:11 ping:11%+25% recvUC:25% main:10%
[0] 2.000  rss:9.0MB vcsw:2 ivcsw:11 pong:11%+25% recvUC:25% main:10%
";
    assert_eq!(text, golden);
}

#[test]
fn every_cell_has_its_block() {
    let analysis = fixture::analysis();
    let text = terminal(&analysis, Format::Roundtrip, Screen::default());
    let blocks = text.lines().filter(|line| line.starts_with("# payloadSize:")).count();
    assert_eq!(blocks, analysis.summary.cells.len());
    assert_eq!(text.lines().filter(|line| line.starts_with("# INVALID: run 2:")).count(), 1);
}

#[test]
fn tables_fit_the_terminal() {
    for width in [80, 100, 160] {
        let text = table(Screen { width, colour: false });
        let widest = text.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= width, "{} > {width}: {widest}", widest.chars().count());
        assert!(!text.contains('\x1b'));
    }
}

#[test]
fn the_table_shows_all_kinds_of_figures() {
    let text = table(Screen::default());
    for wanted in [
        "whole round trip, µs",
        "over cyclonedds.udp",
        "tuned over default",
        "floor that blocks",
        "os.futex, cross",
        "bimodal: cyclonedds.iceoryx, 64 B, default: 2.51 same core 62 % | 78.5 cross 38 %",
        "✗229²",
        "tied with cyclonedds.iceoryx tuned",
        "iceoryx2.poll: not installed; cargo install iceoryx2-driver",
    ] {
        assert!(text.contains(wanted), "{wanted:?} is not in\n{text}");
    }
    assert!(!text.contains("os.cacheline"), "the polling floor has no peer to be compared with");
}

#[test]
fn invalid_figures_are_struck_through_in_colour() {
    let text = table(Screen { width: 100, colour: true });
    assert!(text.contains("\x1b[9;31m✗229² 502\x1b[0m"), "{text}");
}

#[test]
fn verdicts_never_rest_on_invalid_or_mixed_cells() {
    let text = table(Screen { width: 400, colour: false });
    let line = |start: &str| text.lines().find(|line| line.contains(start)).unwrap().to_owned();
    assert!(line("cyclonedds.iceoryx, 64 KiB, default").contains("which is invalid here"));
    assert!(line("cyclonedds.iceoryx, 12 B, default").starts_with("? "), "one run, no interval");
    assert!(!text.contains("875"), "a mixture's median was compared");
}

#[test]
fn polling_systems_are_compared_only_with_polling_ones() {
    let mut analysis = fixture::analysis();
    for system in &mut analysis.summary.systems {
        if system.name == "cyclonedds.iceoryx-loan" {
            system.wait = myelin_bench_kit::protocol::Wait::Poll;
        }
    }
    let whole = terminal(&analysis, Format::Table, Screen { width: 400, colour: false });
    // The advice may name a system that waits in any way, as its cost shows in the CPU.
    let text = whole.split("\nScorecard\n").next().unwrap();
    assert!(text.contains("cyclonedds.iceoryx-loan (polls)"), "{text}");
    assert!(text.contains("floor that polls") && text.contains("os.cacheline"), "{text}");
    assert!(text.contains("iceoryx tuned") && !text.contains("iceoryx-loan tuned  "), "{text}");
    let line = whole.lines().find(|line| line.contains("cyclonedds.iceoryx-loan (polls), 0 B"));
    assert!(!line.unwrap().contains("cyclonedds.udp"), "{line:?}");
}

#[test]
fn all_files_are_written_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let analysis = fixture::analysis();
    write_all(&analysis, directory.path()).unwrap();
    write_all(&analysis, directory.path()).unwrap();
    let mut names: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "advice",
            "details.json.zst",
            "figures.parquet",
            "hgrm",
            "report.html",
            "report.md",
            "summary.csv",
            "summary.json"
        ]
    );

    let json = std::fs::read_to_string(directory.path().join("summary.json")).unwrap();
    let summary: Summary = serde_json::from_str(&json).unwrap();
    assert_eq!(summary.cells.len(), analysis.summary.cells.len());
    let observed = |cells: &[Cell]| cells.iter().map(|it| it.pss_peak_bytes).collect::<Vec<_>>();
    assert_eq!(observed(&summary.cells), observed(&analysis.summary.cells));
    assert!(json.contains("\n      \"pss_peak_bytes\": 18874368"), "beside the other figures");

    let mut rows = csv::Reader::from_path(directory.path().join("summary.csv")).unwrap();
    let heads = rows.headers().unwrap().clone();
    let at = |name: &str| heads.iter().position(|head| head == name).unwrap();
    let (reasons, p99) = (at("invalid_reasons"), at("round_trip_us_p99"));
    let records: Vec<_> = rows.records().map(Result::unwrap).collect();
    assert_eq!(records.len(), analysis.summary.cells.len());
    assert!(records.iter().any(|record| record[reasons].contains(fixture::HOSTILE)));
    assert!(records.iter().any(|record| record[p99].is_empty()), "withheld is empty");
    let wait = at("runqueue_wait_percent");
    assert!(records.iter().any(|record| &record[wait] == "2.25"));
    assert!(records.iter().any(|record| record[wait].is_empty()), "not observed is empty");
    assert!(records.iter().all(|record| record[at("cycles_per_message")].is_empty()));
}

#[test]
fn every_figure_of_a_cell_has_a_column() {
    let directory = tempfile::tempdir().unwrap();
    let mut analysis = fixture::analysis();
    let cell = &mut analysis.summary.cells[0];
    (cell.daemon_ms, cell.unsettled_runs) = (Some(7.5), 1);
    let mut one_more = cell.processes[0].clone();
    (one_more.role, one_more.cpu_percent) = (format!("{}-1", one_more.role), 1000.0);
    cell.processes.push(one_more);
    write_all(&analysis, directory.path()).unwrap();
    let mut rows = csv::Reader::from_path(directory.path().join("summary.csv")).unwrap();
    let heads: Vec<String> = rows.headers().unwrap().iter().map(str::to_owned).collect();
    let first = rows.records().next().unwrap().unwrap();
    let column = |name: &str| &first[heads.iter().position(|head| head == name).expect(name)];
    let whole = serde_json::to_value(&analysis.summary.cells[0]).unwrap();
    for (name, value) in whole.as_object().unwrap() {
        // The ends of an interval follow the name of their percentile; lists get a column each.
        let stem = name.replace("_interval_us", "");
        let has = |head: &String| head == name || head.starts_with(&format!("{stem}_"));
        let interval = name.replace("_p50_interval_us", "_us_p50_low");
        let interval = interval.replace("_p99_interval_us", "_us_p99_low");
        let interval = interval.replace("_p999_interval_us", "_us_p999_low");
        let is_told = matches!(name.as_str(), "params" | "placements" | "processes");
        assert!(is_told || heads.iter().any(has) || heads.contains(&interval), "{name}: {value}");
    }
    let guide = include_str!("../../../../docs/reference/results.md");
    for head in &heads {
        let (stem, _) = head.split_once("_us_").unwrap_or((head, ""));
        let ways = [format!("`{head}`"), format!("`{stem}_us_…`")];
        assert!(
            ways.iter().any(|way| guide.contains(way)),
            "docs/reference/results.md lacks {head}"
        );
    }
    assert_eq!(column("daemon_ms"), "7.5");
    assert!(column("ping_cpu_percent").parse::<f64>().unwrap() >= 1000.0, "both of two pings");
    assert_eq!(column("daemon_cpu_percent"), "", "there is none");
}

#[test]
fn each_latency_has_a_file_for_the_plotter() {
    let directory = tempfile::tempdir().unwrap();
    let mut analysis = fixture::analysis();
    for detail in &mut analysis.details[..2] {
        detail.name = "quick-a-default-64B".into();
        detail.histogram = (1..=1000).map(|us| (us * 1000, 2)).collect();
    }
    write_all(&analysis, directory.path()).unwrap();
    let folder = directory.path().join("hgrm");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "two of one name, others have none");
    assert!(folder.join("quick-a-default-64B-again.hgrm").exists());
    let text = std::fs::read_to_string(folder.join("quick-a-default-64B.hgrm")).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let heads = text.lines().find(|line| !line.starts_with('#')).unwrap();
    assert_eq!(words(heads), ["Value", "Percentile", "TotalCount", "1/(1-Percentile)"]);
    let rows: Vec<Vec<f64>> = (text.lines().filter(|line| !line.starts_with('#')).skip(2))
        .map(|line| words(line).iter().map(|word| word.parse().expect("a number")).collect())
        .collect();
    assert!(rows.len() > 20 && rows.is_sorted_by(|a, b| a[0] <= b[0] && a[2] <= b[2]), "{text}");
    for row in rows.iter().filter(|row| row[1] > 0.0) {
        let [value, quantile, count, beyond] = row[..] else { panic!("{row:?}") };
        assert!((value / (count / 2.0) - 1.0).abs() < 2e-3, "two of each value: {row:?}");
        let short = count - quantile * 2000.0;
        assert!((-1e-6..4.1).contains(&short), "the first value that reaches it: {row:?}");
        assert!(beyond.is_infinite() || (beyond * (1.0 - quantile) - 1.0).abs() < 0.01, "{row:?}");
    }
    assert!(rows.last().unwrap()[3].is_infinite());
    let footer: Vec<&str> = text.lines().filter(|line| line.starts_with("#[")).collect();
    assert!(footer[0].contains("Mean    =      500.") && footer[0].contains("StdDeviation"));
    assert!(footer[1].contains("Total count    =         2000]"), "{footer:?}");
}

#[test]
fn markdown_tables_are_rectangular_and_escaped() {
    let directory = tempfile::tempdir().unwrap();
    write_all(&fixture::analysis(), directory.path()).unwrap();
    let text = std::fs::read_to_string(directory.path().join("report.md")).unwrap();
    assert!(!text.contains('<'), "HTML, or hostile text that was not escaped");
    let lines: Vec<&str> = text.lines().collect();
    let is_row = |line: &str| line.starts_with('|');
    let heads: Vec<_> = lines.windows(3).filter(|it| !is_row(it[0]) && is_row(it[1])).collect();
    assert!(heads.len() > 3, "{text}");
    for head in heads {
        let is_rule = !head[2].is_empty() && head[2].chars().all(|it| "|- ".contains(it));
        assert!(head[0].is_empty() && is_rule, "a blank line, heads and a rule: {head:?}");
    }
    let mut width = None;
    for line in text.lines() {
        if !line.starts_with('|') {
            width = None;
            continue;
        }
        let bars = line.replace("\\|", "").matches('|').count();
        assert_eq!(*width.get_or_insert(bars), bars, "{line}");
    }
    assert!(text.contains("~~229 · 502~~²"), "{text}");
    assert!(text.contains("published → here"));
}

#[test]
fn a_missing_folder_is_a_plain_error() {
    let error = write_all(&fixture::analysis(), std::path::Path::new("no/such/folder"));
    let text = error.unwrap_err().to_string();
    assert!(text.starts_with("cannot write no/such/folder/summary.json"), "{text}");
}

#[test]
fn an_empty_analysis_makes_a_report() {
    let directory = tempfile::tempdir().unwrap();
    let mut analysis = fixture::analysis();
    analysis.summary.cells.clear();
    analysis.summary.systems.clear();
    analysis.details.clear();
    write_all(&analysis, directory.path()).unwrap();
    assert!(terminal(&analysis, Format::Table, Screen::default()).contains("0 of 0 valid"));
}
