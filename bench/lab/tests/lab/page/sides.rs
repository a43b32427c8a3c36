//! Made-up results folders whose runs vary as specified.

use myelin_bench_lab::compare::Side;
use myelin_bench_lab::plan::Plan;
use myelin_bench_lab::scenario::Tuning;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::fixture;
use myelin_bench_lab::summary::{Cell, RUN_QUANTILES, RunFigures};

/// The fixture's cells with this payload, with `runs` runs each. Between seeds they differ only by
/// chance: by a tenth of a per cent in one cell, by ten per cent in another, with disturbed blocks
/// and single runs.
pub fn side(name: &str, seed: u64, runs: u32, payload: u64) -> Side {
    let mut random = StdRng::seed_from_u64(seed);
    let mut analysis = fixture::analysis();
    let cells = std::mem::take(&mut analysis.summary.cells);
    let of_payload = |cell: &Cell| cell.params.payload_bytes == payload;
    analysis.details.truncate(cells.iter().filter(|cell| of_payload(cell)).count());
    analysis.summary.cells = cells.into_iter().filter(of_payload).collect();
    let blocks: Vec<f64> = (0..runs).map(|_| 0.005 * normal(&mut random)).collect();
    let cells = analysis.summary.cells.iter_mut().zip(&mut analysis.details);
    for (place, (cell, detail)) in cells.enumerate() {
        let spread = SPREADS[place % SPREADS.len()];
        let mut run = |order: u32| {
            let disturbed = if random.random_bool(0.05) { 0.3 } else { 0.0 };
            let mut around = |value: f64, spread: f64| {
                let common = blocks[order as usize] + disturbed;
                value * (common + spread * normal(&mut random)).exp()
            };
            let p50 = around(50.0, spread);
            let figures = [
                ("p50_us", p50),
                ("p99_us", around(120.0, 2.0 * spread)),
                ("cross_p50_us", p50),
                ("cross_p99_us", around(130.0, 2.0 * spread)),
                ("cpu_us_per_message", around(20.0, spread)),
                // Whole pages, with small differences.
                ("pss_bytes", ((5120 + random.random_range(0..40u64)) * 4096) as f64),
            ];
            RunFigures::new(order, true, figures.map(|(name, value)| (name, Some(value))))
        };
        detail.runs = (0..runs).map(&mut run).collect();
        (cell.runs, cell.valid) = (runs, true);
    }
    let name = name.to_owned();
    Side {
        sessions: vec![name.clone()],
        name,
        plan: Plan::new(Vec::new(), seed, String::new()),
        analysis,
    }
}

/// A session of [`side`], in which the machine is up to some ten per cent faster or slower than in
/// others.
pub fn session(name: &str, seed: u64) -> Side {
    let mut side = side(name, seed, 5, 64);
    let mut random = StdRng::seed_from_u64(seed ^ 0x5e55);
    let state = (0.05 * normal(&mut random)).exp();
    for run in side.analysis.details.iter_mut().flat_map(|detail| &mut detail.runs) {
        for name in ["p50_us", "p99_us", "cross_p50_us", "cross_p99_us", "cpu_us_per_message"] {
            run.set(name, run.get(name).map(|us| us * state));
        }
    }
    side
}

/// Gives every run of a side a curve around its median.
pub fn with_curves(mut side: Side) -> Side {
    for run in side.analysis.details.iter_mut().flat_map(|detail| &mut detail.runs) {
        let p50 = run.get("p50_us").unwrap_or(1.0);
        let at = |quantile: f64| p50 * (0.2 * (quantile / (1.0 - quantile)).ln()).exp();
        run.curve_us = RUN_QUANTILES[..16].iter().map(|quantile| at(*quantile)).collect();
    }
    side
}

/// Changes every run of the cells of one system, at one tuning.
pub fn change(side: &mut Side, system: &str, tuning: Tuning, how: impl Fn(&mut RunFigures)) {
    let cells = side.analysis.summary.cells.iter().zip(&mut side.analysis.details);
    let wanted = cells.filter(|(cell, _)| cell.system == system && cell.tuning == tuning);
    let runs = wanted.flat_map(|(_, detail)| &mut detail.runs);
    assert!(runs.map(how).count() > 0, "{system}, {tuning}");
}

/// A nearly normal random number with a standard deviation of 1.
fn normal(random: &mut StdRng) -> f64 {
    (0..12).map(|_| random.random_range(-0.5..0.5)).sum()
}

const SPREADS: [f64; 5] = [0.001, 0.005, 0.01, 0.03, 0.1];
