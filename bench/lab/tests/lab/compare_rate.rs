//! How often comparisons call equal folders different, and whether they find real differences.

use myelin_bench_lab::compare::{Comparison, Side, compare};
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::stats::verdict::Kind;

use crate::page::sides;

const FOLDERS: u64 = 10;
const RUNS: u32 = 5;

fn folders() -> Vec<Side> {
    (0..FOLDERS).map(|seed| sides::side("folder", seed, RUNS, 64)).collect()
}

fn pairs(folders: &[Side]) -> Vec<Comparison> {
    let later = |at: usize| folders[at + 1..].iter().map(move |other| (at, other));
    let pairs = (0..folders.len()).flat_map(later);
    pairs.map(|(at, other)| compare(&folders[at], other).unwrap()).collect()
}

#[test]
fn ten_equal_folders_raise_no_more_false_alarms_than_stated() {
    let all = pairs(&folders());
    assert_eq!(all.len(), 45);
    let stated = all.iter().map(|it| it.error_rate).sum::<f64>();
    assert_eq!(all[0].error_rate, 0.05);
    assert!(all.iter().all(|it| it.comparisons == 14 * 4), "{}", all[0].comparisons);
    let raised = |it: &&Comparison| it.verdicts.worse + it.verdicts.better > 0;
    let alarms = all.iter().filter(raised).count();
    println!("{alarms} of 45 pairs raised an alarm, at most {stated} stated");
    assert!(alarms as f64 <= stated, "{alarms} alarms, {stated} stated");

    // Without the correction the same folders would raise alarms.
    let alone = |it: &&Comparison| {
        let figures = it.cells.iter().flat_map(|cell| &cell.figures);
        figures.filter_map(|it| it.p).any(|p| p <= 0.05)
    };
    let alarms = all.iter().filter(alone).count();
    println!("{alarms} would without the correction");
    assert!(alarms > 30, "{alarms} of 45 without the correction");
}

/// In how many of `pairs` pairs only the 10 % increase of B is found.
fn found(pairs: u64, runs: u32) -> usize {
    let pair = |seed: u64| {
        let usual = sides::side("usual", seed, runs, 64);
        let mut slow = sides::side("slow", seed + 100, runs, 64);
        sides::change(&mut slow, "os.pipe", Tuning::Tuned, |run| {
            run.set("p50_us", run.get("p50_us").map(|us| 1.1 * us));
        });
        compare(&usual, &slow).unwrap()
    };
    let is_found = |comparison: &Comparison| {
        let worse = comparison.figures(|verdict| verdict == Some(Kind::Worse));
        assert_eq!(comparison.is_worse(), !worse.is_empty());
        matches!(worse[..], [(cell, it)] if (&*cell.name.system, cell.name.tuning.name(), it.figure.name)
            == ("os.pipe", "tuned", "p50_us")
            && it.interval.is_some_and(|[low, high]| low > 1.0 && low < 1.1 && high > 1.1))
    };
    (0..pairs).map(pair).filter(is_found).count()
}

/// One run in twenty is disturbed. With five runs that hides much; with ten it is trimmed.
#[test]
fn only_ten_percent_more_is_worse() {
    let (five, ten) = (found(10, 5), found(4, 10));
    println!("found in {five} of 10 pairs with five runs, in {ten} of 4 with ten");
    assert!(five >= 4 && ten >= 3, "{five} of 10 with five runs, {ten} of 4 with ten");
}
