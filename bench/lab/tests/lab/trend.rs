//! Trends over made-up sessions: what moved and what only varies, on terminal, page and in Markdown.

use myelin_bench_lab::compare::Side;
use myelin_bench_lab::report::Screen;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::stats::verdict::Kind;
use myelin_bench_lab::trend::{self, Trend};

use crate::page::{ask, sides};

/// Nightly sessions; from the sixth on a peer is slower and the commit another one.
fn nights(number: u32) -> Vec<Side> {
    let night = |at: u32| {
        let mut side = sides::session(&format!("results/night-{at}"), u64::from(at));
        side.plan.begun = Some(format!("2026-11-{:02}T02:00:00Z", at + 1));
        side.plan.commit = Some(if at < 6 { "v1.0" } else { "v1.1" }.to_owned());
        if at >= 6 {
            sides::change(&mut side, "cyclonedds.udp", Tuning::Tuned, |run| {
                for name in ["p50_us", "cross_p50_us"] {
                    run.set(name, run.get(name).map(|us| 1.6 * us));
                }
            });
        }
        side
    };
    (0..number).map(night).collect()
}

fn moved(trend: &Trend) -> Vec<(String, &str, Kind)> {
    let name = |cell: usize| trend.cells[cell].name.name.clone();
    trend.moved.iter().map(|it| (name(it.cell), it.figure, it.verdict)).collect()
}

#[test]
fn what_moved_is_told_from_what_varies() {
    let trend = trend::of(nights(12), None).unwrap();
    assert_eq!(trend.since, Some(6), "the last commit");
    let slower = ("cyclonedds.udp, 64 B, tuned".to_owned(), "p50_us", Kind::Worse);
    assert_eq!(moved(&trend), [slower]);
    let cell = &trend.cells[trend.moved[0].cell];
    let p50 = cell.figures.iter().find(|it| it.figure.name == "p50_us").unwrap();
    assert_eq!(p50.values.iter().flatten().count(), 12);
    let said =
        "The 6 sessions since 2026-11-07 02:00 (v1.1) against the 6 before: 1 worse, 0 better";
    assert!(trend.tested.starts_with(said), "{}", trend.tested);
}

#[test]
fn a_change_is_named_or_follows_from_versions_and_needs_sessions() {
    let few = trend::of(nights(8), None).unwrap();
    assert!(few.tested.contains("5 sessions before a change and 5 after it, and there are 8"));
    assert!(few.moved.is_empty() && few.since.is_none());
    // The last commit has three sessions; five are compared.
    assert_eq!(trend::of(nights(10), None).unwrap().since, Some(5));
    let asked = trend::of(nights(12), Some(9)).unwrap();
    assert!(asked.tested.contains("9 before and 3 from then on; it takes 5"), "{}", asked.tested);
    let mut same = nights(12);
    same.iter_mut().for_each(|side| side.plan.commit = None);
    let same = trend::of(same, None).unwrap();
    assert!(same.tested.contains("the same in all sessions; --since names"), "{}", same.tested);
    let mut versions = nights(12);
    for (side, version) in versions.iter_mut().zip(["0.10"; 5].iter().chain(&["0.11"; 7])) {
        side.plan.commit = None;
        let systems = side.analysis.summary.systems.iter_mut();
        systems
            .filter(|it| it.name.starts_with("cyclonedds"))
            .for_each(|it| it.version = (*version).to_owned());
    }
    let trend = trend::of(versions, None).unwrap();
    assert_eq!(trend.since, Some(5));
    let text = trend::terminal(&trend, Screen::default(), false);
    assert!(text.contains("cyclonedds 0.11 results/night-5"), "{text}");
}

#[test]
fn a_session_without_a_cell_or_of_another_machine_is_shown_as_such() {
    let mut all = nights(12);
    all[3].analysis.summary.cells.pop();
    all[3].analysis.details.pop();
    all[4].analysis.summary.host.identity.kernel = "7.0".to_owned();
    let trend = trend::of(all, None).unwrap();
    let last = trend.cells.last().unwrap();
    assert!(last.figures.iter().all(|it| it.values[3].is_none() && it.values[4].is_some()));
    let text = trend::terminal(&trend, Screen::default(), false).replace("\n  ", " ");
    assert!(text.contains("! Other machine or kernel than "), "{text}");
    assert!(text.contains("results/night-4; figures of machines differ"), "{text}");
}

#[test]
fn it_fits_every_terminal() {
    let trend = trend::of(nights(12), None).unwrap();
    for width in [100, 80, 40] {
        for all in [false, true] {
            let text = trend::terminal(&trend, Screen { width, colour: false }, all);
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width, "{widest} of {width}:\n{text}");
            assert!(text.contains('█') && text.contains("worse"), "{text}");
            assert_eq!(text.contains("further figures: --verbose"), !all, "{text}");
        }
    }
}

#[test]
fn the_page_needs_no_other_and_shows_each_figure() {
    let trend = trend::of(nights(12), None).unwrap();
    let (page, text) = (trend::page(&trend), trend::markdown(&trend));
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
    let figures: usize = trend.cells.iter().map(|cell| cell.figures.len()).sum();
    assert_eq!(page.matches("<polyline").count(), figures + 1, "and what moved");
    assert!(text.contains("cyclonedds.udp, 64 B, tuned | p50 | worse | "), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("| v1.1 |")).count(), 6, "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trend.html");
    std::fs::write(&path, &page).unwrap();
    if let Some(kept) = std::env::var_os("MYELIN_KEEP_REPORT") {
        std::fs::write(std::path::Path::new(&kept).join("trend.html"), &page).unwrap();
    }
    let look = "answer([document.documentElement.scrollWidth, document.querySelectorAll('.spark').length].join(' '));";
    for width in [1440, 400] {
        // The page has no scripts; the copy that is asked has that of the test.
        let asked = page
            .replace("default-src 'none';", "default-src 'none'; script-src 'unsafe-inline';")
            .replace("<html", "<html data-drawn=\"yes\"");
        let asked = (tempfile::tempdir().unwrap(), path.clone(), asked);
        let Some(answer) = ask::ask(&asked, "", width, look) else { return };
        let (wide, sparks) = answer.split_once(' ').expect(&answer);
        assert!(wide.parse::<u32>().unwrap() <= width, "{answer}");
        assert_eq!(sparks.parse::<usize>().unwrap(), figures + 1);
    }
}
