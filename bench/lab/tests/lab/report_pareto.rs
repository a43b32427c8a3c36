//! CPU against latency as a browser draws it: the positions of the marks are read back and compared
//! with the summary.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the page of the fixture in that folder for inspection.

use std::path::Path;

use myelin_bench_lab::report::write_all;
use myelin_bench_lab::summary;

use crate::page::{browser, dom, fixture, flow, marks};
use browser::{dump_of, write};
use dom::{attribute, elements};
use marks::{Mark, assert_scale};
use summary::{Analysis, Cell};

/// Every sign of a system, figure by figure.
fn figures(dom: &str) -> Vec<Vec<Mark>> {
    let figures = marks::figures(dom).map(|figure| marks::signs(figure, "pareto "));
    figures.filter(|marks| !marks.is_empty()).collect()
}

/// Asserts that each figure of the page shows CPU and latency of its group of cells, by position.
fn assert_drawn(dom: &str, groups: &[Vec<&Cell>], figures_of: fn(&Cell) -> Option<(f64, f64)>) {
    let drawn = figures(dom);
    assert_eq!(drawn.len(), groups.len());
    for (marks, cells) in drawn.iter().zip(groups) {
        let shown: Vec<_> = cells.iter().filter(|cell| figures_of(cell).is_some()).collect();
        assert_eq!(marks.len(), shown.iter().filter(|cell| cell.valid).count());
        let (mut across, mut up) = (Vec::new(), Vec::new());
        // Tunings stand side by side, each with its own position of the scale.
        for tuning in ["default", "tuned"] {
            let (mut xs, mut ys) = (Vec::new(), Vec::new());
            for cell in shown.iter().filter(|cell| cell.valid && cell.tuning.name() == tuning) {
                let label = format!("{}, {tuning}", cell.system);
                let mark = marks.iter().find(|mark| mark.label == label).expect(&label);
                let (cpu, latency) = figures_of(cell).unwrap();
                xs.push((cpu, mark.x));
                ys.push((latency, mark.y));
            }
            across.push(xs);
            up.extend(ys);
        }
        across.iter().filter(|pairs| pairs.len() > 1).for_each(|pairs| assert_scale(pairs, true));
        assert_scale(&up, true);
        assert!(across.iter().map(Vec::len).sum::<usize>() > 2);
    }
}

fn by_size(analysis: &Analysis) -> Vec<Vec<&Cell>> {
    let of = |bytes: u64| {
        let here = |cell: &&Cell| cell.params.payload_bytes == bytes;
        analysis.summary.cells.iter().filter(here).collect()
    };
    flow::FRAMES.iter().rev().map(|(_, bytes)| of(*bytes)).collect()
}

fn without_errors(dom: &str) {
    let root = elements(dom, "html").next().unwrap();
    assert_eq!(attribute(root, "data-errors"), Some("0"), "{root}");
}

#[test]
fn marks_of_frames_are_where_the_summary_has_them() {
    let analysis = flow::images();
    if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
        write_all(&analysis, Path::new(&folder)).unwrap();
    }
    let page = write(&analysis);
    let Some(dom) = dump_of(&page, "") else { return };
    without_errors(&dom);
    let of = |cell: &Cell| Some((cell.cpu_percent?, cell.one_way_us?.p50?));
    assert_drawn(&dom, &by_size(&analysis), of);
    let dom = dump_of(&page, "#cpu=receiver").unwrap();
    let of = |cell: &Cell| Some((cell.receiver_cpu_percent?, cell.one_way_us?.p50?));
    assert_drawn(&dom, &by_size(&analysis), of);
}

#[test]
fn each_schedule_has_a_figure_of_its_own() {
    let analysis = flow::streams();
    let Some(dom) = dump_of(&write(&analysis), "#cpu=receiver") else { return };
    without_errors(&dom);
    let of = |arrivals: &&str| -> Vec<&Cell> {
        let here = |cell: &&Cell| cell.params.arrivals.as_deref() == Some(*arrivals);
        analysis.summary.cells.iter().filter(here).collect()
    };
    let groups: Vec<_> = flow::ARRIVALS.iter().map(of).collect();
    assert_drawn(&dom, &groups, |cell| Some((cell.receiver_cpu_percent?, cell.one_way_us?.p50?)));
    for arrivals in flow::ARRIVALS {
        assert!(dom.contains(&format!("periodic · two processes · 100 Hz · {arrivals}")));
    }
}

#[test]
fn the_front_has_only_undominated_systems() {
    let Some(dom) = dump_of(&write(&flow::images()), "") else { return };
    let ours = |tag: &&str| attribute(tag, "aria-label") == Some("front two-processes, tuned");
    // From shm-block (cheapest) over shm-predictive to shm-poll (fastest): two steps, each one
    // point across and one down.
    let steps = |tag: &str| {
        let path = attribute(tag, "d").unwrap();
        path.matches(['M', 'L', 'H', 'V']).count()
    };
    let fronts: Vec<usize> = elements(&dom, "path").filter(ours).map(steps).collect();
    assert_eq!(fronts, [5, 5], "of two frames");
    let invalid = elements(&dom, "text").filter(|tag| {
        attribute(tag, "aria-label") == Some("invalid pareto myelin.shm-block, default")
    });
    assert_eq!(invalid.count(), 1);
}

#[test]
fn marks_of_round_trips_are_p99_over_cpu_for_each_message() {
    let analysis = fixture::analysis();
    let Some(dom) = dump_of(&write(&analysis), "#hide=none") else { return };
    without_errors(&dom);
    let ends = [0, 65_536].map(|bytes| -> Vec<&Cell> {
        let here =
            |cell: &&Cell| cell.params.payload_bytes == bytes && cell.scenario == "roundtrip-sizes";
        analysis.summary.cells.iter().filter(here).collect()
    });
    let sanity: Vec<&Cell> =
        analysis.summary.cells.iter().filter(|cell| cell.scenario == "sanity").collect();
    assert!(sanity.iter().all(|cell| cell.round_trip_us.unwrap().p99.is_none()), "not drawn");
    assert_drawn(&dom, &ends, |cell| Some((cell.cpu_us_per_message?, cell.round_trip_us?.p99?)));
}
