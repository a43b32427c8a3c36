//! Figures across the clocks of two hosts in reports.

use myelin_bench_kit::protocol::{Topology, Wait, Workload};
use myelin_bench_lab::compare::compare;
use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::stats::verdict::Kind;
use myelin_bench_lab::summary;

use crate::page::{maker, sides};
use summary::{Analysis, Cell, ClockFigures, CutFigures};

use maker::{Maker, Model};

const UDP: Model = Model { topology: TWO_HOSTS, ..Model::two("cyclonedds.udp", BLOCK, 100.0, CPU) };
const TCP: Model = Model { topology: TWO_HOSTS, ..Model::two("zenoh.tcp", BLOCK, 150.0, CPU) };
const TWO_HOSTS: Topology = Topology::TwoHosts;
const BLOCK: Wait = Wait::Block;
const CPU: [f64; 2] = [7.0, 4.0];

fn clock(error_us: f64, negative: u64) -> ClockFigures {
    ClockFigures {
        offset_us: 1_500_000.0,
        at_s: 4000.0,
        drift_ppm: 80.1,
        drift_error_ppm: 0.4,
        error_us,
        exchanges: 1200,
        least_delay_us: 2.0 * error_us,
        negative,
    }
}

/// Two systems, with 100 and 150 µs one way, both with an error of ± `error_us`.
fn analysis(error_us: f64) -> Analysis {
    let mut maker = Maker::new("modules", &[UDP, TCP]);
    for model in [UDP, TCP] {
        maker.cell(&model, Tuning::Default, |cell: &mut Cell| {
            cell.scenario = "modules".into();
            cell.workload = Workload::Stream;
            cell.params.payload_bytes = 64 << 10;
            cell.params.module = Some("localisation".into());
            (cell.params.rate_hz, cell.throughput_per_s) = (Some(100.0), Some(100.0));
            cell.clock = Some(clock(error_us, 7));
        });
    }
    let mut analysis = maker.finish();
    for detail in &mut analysis.details {
        detail.histogram = vec![(0, 7), (200_000, 1000)];
        detail.name = format!("modules-{}", detail.histogram.len());
    }
    analysis
}

fn table(analysis: &Analysis) -> String {
    terminal(analysis, Format::Table, Screen { width: 250, colour: false })
}

fn file(analysis: &Analysis, name: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    write_all(analysis, directory.path()).unwrap();
    std::fs::read_to_string(directory.path().join(name)).unwrap()
}

#[test]
fn one_way_figures_show_the_clock_error() {
    let analysis = analysis(12.3);
    for text in [table(&analysis), file(&analysis, "report.md")] {
        assert!(text.contains("[198, 202] ± 12.3"), "{text}");
        assert!(text.contains("±: possible error of all figures of a row"), "{text}");
        assert!(text.contains("Clocks of two hosts"), "{text}");
        assert!(text.contains("known to ± 12.3 µs at worst; the lab asked"), "{text}");
        assert!(
            text.contains("pong's clock is ahead by 1500.000 ms and gains 80.10 ± 0.40 ppm"),
            "{text}"
        );
    }
    let page = file(&analysis, "report.html");
    assert!(page.contains("[198, 202] ± 12.3") && page.contains("Clocks of two hosts"));
}

#[test]
fn a_difference_within_the_clock_error_is_not_significant() {
    let told = |error_us: f64| table(&analysis(error_us)).contains("1.50× [1.");
    let (near, far) = (table(&analysis(12.0)), table(&analysis(60.0)));
    assert!(told(12.0), "200 and 300 µs are more than 24 µs apart: {near}");
    assert!(!told(60.0), "and less than 120: {far}");
    assert!(far.contains("too noisy"), "{far}");
}

#[test]
fn a_comparison_uses_the_clock_errors_of_both_folders() {
    let verdict = |error_us: f64| {
        let [mut a, mut b] = [1, 2].map(|seed| sides::side("x", seed, 5, 64));
        for (side, more_us) in [(&mut a, 0.0), (&mut b, 50.0)] {
            side.analysis = analysis(error_us);
            for detail in &mut side.analysis.details {
                let run = detail.runs[0].clone();
                let one = |order: u32| {
                    let mut one = run.clone();
                    one.order = order;
                    one.set("p50_us", Some(200.0 + f64::from(order) / 10.0 + more_us));
                    one
                };
                detail.runs = (0..20).map(one).collect();
            }
        }
        let comparison = compare(&a, &b).unwrap();
        let figures = &comparison.cells[0].figures;
        let p50 = figures.iter().find(|it| it.figure.name == "p50_us").unwrap();
        assert_eq!(p50.clock_error, Some(2.0 * error_us), "of both");
        let cpu = figures.iter().find(|it| it.figure.name == "cpu_us_per_message").unwrap();
        assert_eq!(cpu.clock_error, None);
        p50.verdict
    };
    assert_eq!(verdict(3.0), Some(Kind::Worse), "50 µs, of which the clocks may have made 6");
    assert_eq!(verdict(40.0), Some(Kind::TooNoisy), "of which they may have made 80");
}

#[test]
fn result_files_contain_the_clock_figures() {
    let analysis = analysis(12.3);
    let csv = file(&analysis, "summary.csv");
    let (heads, row) = (csv.lines().next().unwrap(), csv.lines().nth(1).unwrap());
    let place = heads.split(',').position(|head| head == "clock_error_us").unwrap();
    assert_eq!(row.split(',').nth(place), Some("12.3"));
    let hgrm = file(&analysis, "hgrm/modules-2.hgrm");
    assert!(hgrm.contains("# 7 values below zero count as 0"), "{hgrm}");
}

#[test]
fn published_two_host_figures_are_shown_beside_ours() {
    let markdown = file(&analysis(12.3), "report.md");
    let across = markdown.split("Modules across hosts").nth(1).expect("its table");
    let start = "| high-frequency functional (localization) | 64 KB | 100 Hz | ";
    let rows: Vec<_> = across.lines().filter(|line| line.starts_with(start)).collect();
    let systems = rows.iter().map(|row| row[start.len()..].split(' ').next().unwrap());
    assert_eq!(systems.collect::<Vec<_>>(), ["cyclonedds.udp", "zenoh.tcp"], "{across}");
    let here = markdown.split("Modules across processes").nth(1).unwrap();
    let here = here.split("Modules across hosts").next().unwrap();
    assert!(!here.contains("cyclonedds.udp") && here.contains("not measured"), "{here}");
}

#[test]
fn a_cut_is_in_the_summary() {
    let mut analysis = analysis(12.3);
    let cut =
        CutFigures { at_s: 2.0, for_s: 5.0, silent_s: Some(5.2), sent: 500, lost: 0, late: 500 };
    analysis.summary.cells[0].cuts = vec![cut];
    let summary: serde_json::Value =
        serde_json::from_str(&file(&analysis, "summary.json")).unwrap();
    assert_eq!(summary["cells"][0]["cuts"][0]["silent_s"], 5.2);
    assert!(summary["cells"][1].get("cuts").is_none());
}
