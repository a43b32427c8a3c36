//! Cells in reports that were repeated until their medians were known or the limit was reached, and
//! runs that never settled.

use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::fixture;
use summary::{Analysis, Repeats};

/// The first cell stayed wide, the second became narrow, the third has no interval; one run of the
/// second never settled.
fn analysis() -> Analysis {
    let mut analysis = fixture::analysis();
    let ended = [(Some(7.25), false), (Some(4.5), true), (None, false)];
    for (cell, (reached_percent, is_narrow)) in analysis.summary.cells.iter_mut().zip(ended) {
        cell.repeats = Some(Repeats { asked_percent: 5.0, reached_percent, is_narrow });
    }
    analysis.summary.cells[1].unsettled_runs = 1;
    let drift = "run 2 never settled: median drifted from 10 to 14 µs";
    analysis.summary.cells[1].notes.push(drift.into());
    analysis
}

fn names(analysis: &Analysis) -> Vec<String> {
    analysis.summary.cells.iter().map(|cell| cell.system.clone()).collect()
}

#[test]
fn cells_at_the_limit_are_named_below_their_tables() {
    let analysis = analysis();
    let runs = analysis.details[0].runs.len();
    let place = tempfile::tempdir().unwrap();
    write_all(&analysis, place.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    let wide = Screen { width: 10_000, colour: false };
    for text in [terminal(&analysis, Format::Table, wide), read("report.md")] {
        let below = format!("interval of the median wider than requested after {runs} runs: ");
        let lines: Vec<&str> = text.lines().filter(|line| line.contains(&below)).collect();
        assert_eq!(lines.len(), 1, "{text}");
        let (first, third) = (&names(&analysis)[0], &names(&analysis)[2]);
        assert!(
            lines[0].contains(first) && lines[0].contains("7.2 % (requested: 5 %)"),
            "{lines:?}"
        );
        assert!(lines[0].contains(third) && lines[0].contains("has no interval"), "{lines:?}");
        assert!(!lines[0].contains("4.5 %"), "a narrow cell is not accused: {lines:?}");
        assert!(text.contains("1 of 3 intervals of medians as narrow as requested"), "{text}");
        assert!(text.contains(" never settled, in 1 cell, fewer than half of the"), "{text}");
        assert_eq!(text.matches("drifted from 10 to 14 µs").count(), 1, "{text}");
    }
    assert!(read("report.html").contains("1 of 3 intervals of medians as narrow as requested"));
}

#[test]
fn the_table_of_figures_ends_with_repeats_and_drift() {
    let place = tempfile::tempdir().unwrap();
    let columns = |analysis: &Analysis| {
        write_all(analysis, place.path()).unwrap();
        let mut reader = csv::Reader::from_path(place.path().join("summary.csv")).unwrap();
        let heads: Vec<String> = reader.headers().unwrap().iter().map(String::from).collect();
        let rows: Vec<Vec<String>> =
            reader.records().map(|row| row.unwrap().iter().map(String::from).collect()).collect();
        (heads, rows)
    };
    let (heads, rows) = columns(&analysis());
    let expected = [
        "interval_asked_percent",
        "interval_reached_percent",
        "interval_is_narrow",
        "unsettled_runs",
        "loss_percent",
    ];
    let from = heads.len() - expected.len();
    assert_eq!(heads[from..], expected);
    assert_eq!(rows[0][from..from + 4], ["5", "7.25", "false", "0"]);
    assert_eq!(rows[1][from..from + 4], ["5", "4.5", "true", "1"]);
    assert_eq!(rows[2][from..from + 4], ["5", "", "false", "0"]);
    assert_eq!(rows[3][from..from + 4], ["", "", "", "0"]);
    let (heads, _) = columns(&fixture::analysis());
    assert!(!heads.contains(&"interval_is_narrow".into()), "nobody has asked");
}

#[test]
fn unsettled_runs_are_a_caution_if_they_are_half_of_a_cell() {
    let mut analysis = analysis();
    for cell in &mut analysis.summary.cells[..40] {
        cell.unsettled_runs = 1;
        cell.notes.push("run 1 never settled: median drifted from 5 to 9 µs".into());
    }
    let level = |analysis: &Analysis| {
        let text = terminal(analysis, Format::Table, Screen { width: 10_000, colour: false });
        let line = text.lines().find(|line| line.contains("Steady state: ")).unwrap().to_owned();
        let count = text.matches(" never settled: median drifted").count();
        assert!(count <= 5, "a handful is enough: {text}");
        line
    };
    assert!(level(&analysis).contains("in 40 cells, fewer than half"), "{}", level(&analysis));
    analysis.summary.cells[7].unsettled_runs = 3;
    let doubt = level(&analysis);
    assert!(doubt.contains("in 40 cells; half or more of the runs of 1 cell"), "{doubt}");
}

#[test]
fn without_interval_percent_repeats_are_not_mentioned() {
    let text = terminal(&fixture::analysis(), Format::Table, Screen::default());
    assert!(
        !text.contains("wider than requested") && !text.contains("as narrow as requested"),
        "{text}"
    );
    assert!(text.contains("Steady state: no drift or step in "), "{text}");
}
