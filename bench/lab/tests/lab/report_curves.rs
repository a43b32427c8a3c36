//! Curves and signs of the page, read back from a browser and compared with the summary:
//! percentiles, latency against size, run by run, publish time against subscribers.

use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary;

use crate::page::{browser, fan, fixture, lines, marks};
use browser::{dump_of, write};
use lines::lines;
use marks::{assert_scale, signs};
use summary::{Analysis, Cell, Detail};

const SYSTEMS: [&str; 3] = ["cyclonedds.udp", "cyclonedds.iceoryx", "cyclonedds.iceoryx-loan"];

/// One section of the page.
fn section<'a>(dom: &'a str, id: &str) -> &'a str {
    let (_, rest) = dom.split_once(&format!("<section id=\"{id}\"")).unwrap();
    rest.split_once("</section>").unwrap().0
}

/// The tuned cells of a system in `roundtrip-sizes`, by ascending payload.
fn tuned<'a>(analysis: &'a Analysis, system: &str) -> Vec<(&'a Cell, &'a Detail)> {
    let cells = analysis.summary.cells.iter().zip(&analysis.details);
    let ours = cells.filter(|(cell, _)| {
        cell.system == system && cell.tuning == Tuning::Tuned && cell.scenario == "roundtrip-sizes"
    });
    ours.collect()
}

#[test]
fn percentiles_begin_and_end_where_the_summary_has_them() {
    let analysis = fixture::analysis();
    let Some(dom) = dump_of(&write(&analysis), "#without=default&sizes=256") else { return };
    let drawn = section(&dom, "percentiles");
    let (mut across, mut up) = (Vec::new(), Vec::new());
    for system in SYSTEMS {
        let found = tuned(&analysis, system);
        let (cell, detail) = found.iter().find(|it| it.0.params.payload_bytes == 256).unwrap();
        let curve = &lines(drawn, &format!("curve {system}, tuned"))[0];
        assert!(curve.len() > 50, "{system}: {}", curve.len());
        let ends = [detail.curve.first(), detail.curve.last()].map(Option::unwrap);
        for (point, (x, y)) in ends.iter().zip([curve[0], curve[curve.len() - 1]]) {
            across.push((-(1.0 - point.quantile).log10(), x));
            up.push((point.us, y));
        }
        // The median of the summary lies on the drawn line, between its neighbours.
        let p50 = cell.round_trip_us.unwrap().p50.unwrap();
        assert!(ends[0].us < p50 && p50 < ends[1].us);
    }
    assert_scale(&across, false);
    assert_scale(&up, true);
}

#[test]
fn sizes_and_runs_are_where_the_summary_has_them() {
    let analysis = fixture::analysis();
    for (statistic, scale) in [("p50", "log"), ("p99", "log"), ("p50", "linear")] {
        let hash = format!("#without=default&statistic={statistic}&scale={scale}");
        let Some(dom) = dump_of(&write(&analysis), &hash) else { return };
        let mut up = Vec::new();
        for system in SYSTEMS {
            let marks = signs(section(&dom, "sizes"), "point ");
            let own: Vec<_> = marks.iter().filter(|mark| mark.label == system).collect();
            let cells = tuned(&analysis, system);
            assert_eq!(own.len(), cells.len(), "{system}");
            for (mark, (cell, _)) in own.iter().zip(cells) {
                let latency = cell.round_trip_us.unwrap();
                let value = if statistic == "p99" { latency.p99 } else { latency.p50 };
                up.push((value.unwrap(), mark.y));
            }
        }
        assert_scale(&up, scale == "log");
        let (mut order, mut ratios) = (Vec::new(), Vec::new());
        for system in SYSTEMS {
            let marks = signs(section(&dom, "runs"), "runs ");
            let own: Vec<_> = marks.iter().filter(|mark| mark.label == system).collect();
            let runs: Vec<_> = tuned(&analysis, system)
                .iter()
                .flat_map(|(_, detail)| {
                    let mut medians: Vec<f64> =
                        detail.runs.iter().map(|run| run.get("p50_us").unwrap()).collect();
                    medians.sort_by(f64::total_cmp);
                    let centre = medians[medians.len() / 2];
                    detail
                        .runs
                        .iter()
                        .map(move |run| (run.order, run.get("p50_us").unwrap() / centre))
                })
                .collect();
            assert_eq!(own.len(), runs.len(), "{system}");
            order.extend(runs.iter().map(|run| f64::from(run.0)).zip(own.iter().map(|it| it.x)));
            ratios.extend(runs.iter().map(|run| run.1).zip(own.iter().map(|it| it.y)));
        }
        assert_scale(&order, false);
        assert_scale(&ratios, true);
    }
}

#[test]
fn publish_times_are_where_the_summary_has_them() {
    let analysis = fan::analysis();
    for scale in ["log", "linear"] {
        let hash = format!("#without=default&scale={scale}");
        let Some(dom) = dump_of(&write(&analysis), &hash) else { return };
        let figure = marks::figures(section(&dom, "publish")).next().unwrap();
        let first = analysis.summary.cells.iter().map(|cell| cell.params.payload_bytes).min();
        let mut up = Vec::new();
        for system in ["cyclonedds.udp", "cyclonedds.iceoryx-loan"] {
            let marks = signs(figure, "point ");
            let own: Vec<_> = marks.iter().filter(|mark| mark.label == system).collect();
            let mut cells: Vec<&Cell> = (analysis.summary.cells.iter())
                .filter(|cell| cell.system == system && cell.tuning == Tuning::Tuned && cell.valid)
                .filter(|cell| Some(cell.params.payload_bytes) == first)
                .collect();
            cells.sort_by_key(|cell| cell.params.subscribers);
            assert!(own.len() == cells.len() && own.len() > 2, "{system}: {}", own.len());
            let medians = cells.iter().map(|cell| cell.write_us.unwrap().p50.unwrap());
            up.extend(medians.zip(own.iter().map(|mark| mark.y)));
        }
        assert_scale(&up, scale == "log");
    }
}
