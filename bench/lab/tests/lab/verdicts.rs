//! Better and worse mean the same everywhere: the sentence of a report about two cells agrees with
//! its advice and with a comparison of folders over the same runs. No report finds a difference
//! between equal cells.

use myelin_bench_lab::compare::{Side, compare};
use myelin_bench_lab::report::write_all;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::stats::verdict::Kind;
use myelin_bench_lab::summary;

use crate::page::sides;
use summary::{Analysis, Cell, RunFigures};

fn report(analysis: &Analysis) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_all(analysis, folder.path()).unwrap();
    std::fs::read_to_string(folder.path().join("report.md")).unwrap()
}

/// Number of sentences that say better or worse.
fn claims(text: &str) -> usize {
    text.matches("- 🟢 ").count() + text.matches("- 🔴 ").count()
}

/// The cells with one of the `tunings`, of one system, without separate placements, with medians
/// only.
fn only(mut side: Side, tunings: &[&str], p50_us: impl Fn(&str, usize) -> f64) -> Side {
    let cells = std::mem::take(&mut side.analysis.summary.cells).into_iter();
    let pairs = cells.zip(std::mem::take(&mut side.analysis.details));
    for (mut cell, mut detail) in pairs {
        if cell.system != "cyclonedds.udp" || !tunings.contains(&cell.tuning.name()) {
            continue;
        }
        for (place, run) in detail.runs.iter_mut().enumerate() {
            let p50_us = Some(p50_us(cell.tuning.name(), place));
            *run = RunFigures::new(run.order, true, [("p50_us", p50_us)]);
        }
        cell.placements.clear();
        let latency = cell.round_trip_us.as_mut().unwrap();
        (latency.p50, latency.p99) = (detail.runs[2].get("p50_us"), None);
        side.analysis.summary.cells.push(cell);
        side.analysis.details.push(detail);
    }
    side
}

#[test]
fn report_advice_and_comparison_agree_on_the_same_runs() {
    let spread = |place: usize, noise: f64| 1.0 + noise * [-1.0, -0.4, 0.0, 0.5, 1.0][place];
    for (factor, noise, expected, words) in [
        (0.7, 0.03, Kind::Better, "lower than default"),
        (1.4, 0.03, Kind::Worse, "higher than default"),
        (1.01, 0.002, Kind::NoDifference, "no difference ("),
        (1.1, 0.3, Kind::TooNoisy, "too noisy ("),
    ] {
        let p50 = |tuning: &str, place: usize| match tuning {
            "default" => 100.0 * spread(place, noise),
            _ => 100.0 * factor * spread(4 - place, noise),
        };
        let folder = |tunings: &[&str], p50: &dyn Fn(&str, usize) -> f64| {
            only(sides::side("x", 1, 5, 64), tunings, p50)
        };
        let a = folder(&["default"], &p50);
        let b = folder(&["default"], &|_, place| p50("tuned", place));
        let comparison = compare(&a, &b).unwrap();
        let figures = &comparison.cells[0].figures;
        let found = figures.iter().find(|it| it.figure.name == "p50_us").unwrap();
        assert_eq!((found.verdict, comparison.comparisons), (Some(expected), 1));

        let text = report(&folder(&["default", "tuned"], &p50).analysis);
        let of_both = |line: &&str| line.contains("64 B, tuned: p50") && line.contains("default");
        let line = text.lines().find(of_both).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(words), "{expected:?}: {line}");
        assert!(text.contains("over 1 comparison."), "{text}");
        let advice = if expected.is_significant() { "by p50" } else { "lowest p50, tied" };
        assert!(text.contains(advice), "{expected:?}: {text}");
    }
}

#[test]
fn a_report_of_equal_systems_claims_no_difference() {
    let said = |seed: &u64| {
        let text = report(&sides::side("like", *seed, 5, 64).analysis);
        assert!(text.contains("over 30 comparisons"), "six cells, two percentiles: {text}");
        claims(&text) > 0
    };
    let found = (0..20).filter(said).count();
    assert!(found <= 4, "{found} of 20: one is expected at most");
}

#[test]
fn a_scenario_beside_changes_no_verdict() {
    let alone = sides::side("like", 3, 5, 64).analysis;
    let mut both = alone.clone();
    for (cell, detail) in alone.summary.cells.iter().zip(&alone.details) {
        both.summary.cells.push(Cell { scenario: "beside".to_owned(), ..cell.clone() });
        both.details.push(detail.clone());
    }
    let texts = [report(&alone), report(&both)];
    for text in &texts {
        assert!(text.contains("over 30 comparisons"), "of one scenario: {text}");
        assert!(text.contains("in 100 scenarios"), "{text}");
    }
}

#[test]
fn runs_with_too_few_messages_do_not_drop_out() {
    let mut side = sides::side("like", 1, 6, 64);
    sides::change(&mut side, "cyclonedds.udp", Tuning::Tuned, |run| {
        run.set("p99_us", run.get("p99_us").filter(|_| run.order != 3));
    });
    let text = report(&side.analysis);
    assert!(text.contains("over 25 comparisons"), "p99 of one cell against five others: {text}");
}

#[test]
fn too_few_runs_are_reported_and_no_difference_claimed() {
    let mut side = sides::side("few", 1, 4, 64);
    sides::change(&mut side, "cyclonedds.udp", Tuning::Tuned, |run| {
        run.set("p50_us", run.get("p50_us").map(|us| 9.0 * us));
    });
    let text = report(&side.analysis);
    assert_eq!(claims(&text), 0, "{text}");
    assert!(text.contains("Too few runs for a comparison: it takes 5 of each cell."), "{text}");
    assert!(text.contains("too few runs to rank them"), "{text}");
    assert!(!text.contains("is the fastest of"), "{text}");
}
