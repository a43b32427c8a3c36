//! The comparison page as a browser draws it: positions of signs are read back and compared with
//! the figures.

use myelin_bench_lab::compare::{Comparison, compare, page};
use myelin_bench_lab::scenario::Tuning;

use crate::page::{browser, dom, fixture, marks, sides};

use browser::{Page, dump_at};
use dom::{attribute, elements};
use marks::{Mark, assert_scale};

fn comparison() -> Comparison {
    let a = sides::with_curves(sides::side("a", 1, 5, 64));
    let mut b = sides::side(fixture::HOSTILE, 2, 5, 64);
    for (tuning, factor) in [(Tuning::Tuned, 1.2), (Tuning::Default, 0.7)] {
        sides::change(&mut b, "cyclonedds.udp", tuning, |run| {
            run.set("p50_us", run.get("p50_us").map(|us| us * factor));
        });
    }
    compare(&a, &sides::with_curves(b)).unwrap()
}

fn written(comparison: &Comparison) -> Page {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("difference.html");
    let text = page(comparison);
    std::fs::write(&path, &text).unwrap();
    (folder, path, text)
}

/// The signs of a figure of the page, by index of their cell.
fn signs(dom: &str, figure: &str) -> Vec<Mark> {
    let wanted = format!("data-figure=\"{figure}\"");
    let drawn = marks::figures(dom).find(|it| it.contains(&wanted));
    marks::signs(drawn.unwrap_or(""), "ratio ")
}

#[test]
fn every_ratio_is_drawn_where_the_figures_have_it() {
    let comparison = comparison();
    assert!(comparison.verdicts.worse > 0 && comparison.verdicts.better > 0);
    let page = written(&comparison);
    assert!(!page.2.contains("<img"), "text of the folders is escaped");
    for width in [1440, 400] {
        let Some(dom) = dump_at(&page, "#show=all", width) else { return };
        let root = elements(&dom, "html").next().unwrap();
        assert_eq!(attribute(root, "data-errors"), Some("0"), "{root}");
        for name in ["p50_us", "p99_us", "cpu_us_per_message", "pss_bytes"] {
            let drawn = signs(&dom, name);
            assert_eq!(drawn.len(), comparison.cells.len(), "{name} at {width}");
            let pairs: Vec<(f64, f64)> = drawn
                .iter()
                .map(|mark| {
                    let cell = &comparison.cells[mark.label.parse::<usize>().unwrap()];
                    let found = cell.figures.iter().find(|it| it.figure.name == name).unwrap();
                    (found.ratio.unwrap(), mark.x)
                })
                .collect();
            if name != "pss_bytes" {
                assert_scale(&pairs, true);
            }
        }
    }
}

#[test]
fn the_page_draws_differing_cells_and_the_shift_of_the_chosen_cell() {
    let comparison = comparison();
    let page = written(&comparison);
    let place = comparison.cells.iter().position(|cell| cell.name.system == "cyclonedds.udp");
    let place = place.unwrap();
    let hash = format!("#show=different&cell={place}");
    let Some(dom) = dump_at(&page, &hash, 1440) else { return };
    assert_eq!(signs(&dom, "p50_us").len(), 2);
    let shift = &comparison.cells[place].shift;
    let drawn = marks::signs(&dom, "shift ");
    assert_eq!((drawn.len(), shift.len()), (16, 16));
    let pairs: Vec<(f64, f64)> = shift
        .iter()
        .map(|point| {
            let is_same = |mark: &&Mark| mark.label.parse() == Ok(point.quantile);
            (point.difference_us, drawn.iter().find(is_same).expect("its sign").y)
        })
        .collect();
    assert_scale(&pairs, false);
    assert!(shift.iter().all(|point| {
        point.interval_us.is_some_and(|[low, high]| (low..=high).contains(&point.difference_us))
    }));
}
