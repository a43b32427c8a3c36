//! The page in a browser: every script runs, every plot is drawn, and nothing is requested over a
//! network.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the page of the fixture in that folder for inspection.

use std::path::Path;
use std::sync::OnceLock;

use myelin_bench_lab::report::write_all;

use crate::page::{browser, dom, fan, fixture};
use browser::{Page, dump_of, write};
use dom::{attribute, elements};

fn page() -> &'static Page {
    static PAGE: OnceLock<Page> = OnceLock::new();
    PAGE.get_or_init(|| {
        if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
            write_all(&fixture::analysis(), Path::new(&folder)).unwrap();
        }
        write(&fixture::analysis())
    })
}

fn dump(hash: &str) -> Option<String> {
    dump_of(page(), hash)
}

/// The number of points of every curve with this label.
fn curves(dom: &str, label: &str) -> Vec<usize> {
    let ours = |tag: &&str| attribute(tag, "aria-label") == Some(label);
    let points = |tag: &str| {
        let path = attribute(tag, "d").unwrap_or_default();
        path.matches(['M', 'L']).count()
    };
    elements(dom, "path").filter(ours).map(points).collect()
}

#[test]
fn scripts_run_without_error() {
    let Some(dom) = dump("") else { return };
    let root = elements(&dom, "html").next().unwrap();
    assert_eq!(attribute(root, "data-errors"), Some("0"), "{root}");
    assert_eq!(elements(&dom, "img").count(), 0, "hostile text became an element");
}

#[test]
fn every_plot_has_its_curves() {
    let Some(dom) = dump("") else { return };
    // Smallest and largest payload, latency against size, and `sanity` for the default tuning.
    for (system, tuning, number) in [
        ("os.futex", "default", 4),
        ("os.pipe", "tuned", 3),
        ("cyclonedds.iceoryx", "default", 4),
        ("cyclonedds.iceoryx", "tuned", 3),
        ("cyclonedds.iceoryx-loan", "default", 3),
        ("cyclonedds.udp", "tuned", 3),
    ] {
        let points = curves(&dom, &format!("curve {system}, {tuning}"));
        assert_eq!(points.len(), number, "{system} {tuning}: {points:?}");
        assert!(points.iter().all(|&points| points > 1), "{system} {tuning}: {points:?}");
        let percentiles = points.iter().filter(|&&points| points > 50).count();
        assert_eq!(percentiles, number - 1, "{system} {tuning}: {points:?}");
        assert!(points.contains(&7) || points.contains(&6), "seven sizes: {points:?}");
    }
    assert_eq!(curves(&dom, "invalid curve cyclonedds.udp, default").len(), 1);
    assert!(
        curves(&dom, "curve os.cacheline, default").is_empty(),
        "set aside: nothing else polls"
    );
    let bimodal = elements(&dom, "text")
        .filter(|tag| attribute(tag, "aria-label") == Some("bimodal os.futex"));
    assert_eq!(bimodal.count(), 1, "os.futex at 0 B; the other is at a size not drawn at first");
}

#[test]
fn publish_runs_have_a_curve_against_subscribers() {
    let mut analysis = fan::analysis();
    let alone = write(&analysis);
    assert!(!alone.2.contains("<section id=\"sizes\">") && alone.2.contains("By subscribers"));
    let round_trips = fixture::analysis();
    analysis.summary.cells.extend(round_trips.summary.cells);
    analysis.details.extend(round_trips.details);
    for page in [alone, write(&analysis)] {
        let Some(dom) = dump_of(&page, "") else { return };
        let root = elements(&dom, "html").next().unwrap();
        assert_eq!(attribute(root, "data-errors"), Some("0"), "{root}");
        for (system, tuning, points) in [
            ("cyclonedds.udp", "default", 3),
            ("cyclonedds.udp", "tuned", 4),
            ("cyclonedds.iceoryx-loan", "default", 4),
        ] {
            assert_eq!(curves(&dom, &format!("publish {system}, {tuning}")), [points]);
            assert_eq!(curves(&dom, &format!("publish p99 {system}, {tuning}")), [points]);
        }
        let hidden = dump_of(&page, "#hide=cyclonedds.udp&without=default").unwrap();
        assert!(curves(&hidden, "publish cyclonedds.udp, tuned").is_empty());
        assert_eq!(curves(&hidden, "publish cyclonedds.iceoryx-loan, tuned"), [4]);
    }
}

#[test]
fn a_hidden_system_has_no_curve() {
    let Some(dom) = dump("#hide=os.pipe&without=tuned&sizes=64") else { return };
    assert!(curves(&dom, "curve os.pipe, default").is_empty());
    assert!(curves(&dom, "curve os.futex, tuned").is_empty());
    assert_eq!(curves(&dom, "curve os.cacheline, default").len(), 2, "asked for, hence shown");
    let boxes = elements(&dom, "input").filter(|tag| attribute(tag, "name") == Some("system"));
    assert_eq!(boxes.count(), 7);
}

#[test]
fn rows_are_filtered_by_the_hash() {
    let Some(dom) = dump("#tuning=tuned&payload=64") else { return };
    let hidden = |tag: &&str| tag.contains(" hidden");
    let bodies = elements(&dom, "tbody").filter(|tag| tag.contains("data-payload"));
    assert_eq!(bodies.filter(hidden).count(), fixture::PAYLOADS.len());
    let rows = elements(&dom, "tr").filter(|tag| attribute(tag, "data-tuning") == Some("default"));
    assert!(rows.clone().count() > 0 && rows.filter(hidden).count() > 0);
}

#[test]
fn tables_are_shown_without_scripts() {
    let (_, _, source) = page();
    let rows = elements(source, "tr").filter(|tag| tag.contains("data-cell="));
    assert_eq!(rows.count(), fixture::analysis().summary.cells.len());
    for wanted in [
        "better",
        "too noisy",
        "not compared with cyclonedds.udp, which is invalid here",
        "103 of 104 valid",
        "withheld: fewer than ten samples, or samples of only one run, lie beyond it",
        "same core 62 %",
        "iceoryx2.poll: not installed",
        "Jetson Orin",
        "myelin bench run roundtrip-sizes sanity --runs 5 --seed 7",
        "&lt;CycloneDDS&gt;",
    ] {
        assert!(source.contains(wanted), "{wanted:?} is not in the page");
    }
}

#[test]
fn the_page_makes_no_network_requests() {
    let (_, _, source) = page();
    assert!(source.len() < 5_000_000, "{} bytes", source.len());
    let policy = elements(source, "meta").find(|tag| tag.contains("Content-Security-Policy"));
    let policy = policy.and_then(|tag| attribute(tag, "content")).unwrap();
    assert!(policy.contains("default-src 'none'") && !policy.contains("http"), "{policy}");
    let outside = without(without(source.clone(), "script"), "style");
    for reference in ["http:", "https:", "<link", "<iframe", " src="] {
        let escaped = outside.replace("img src=", "");
        assert!(!escaped.contains(reference), "{reference} in the page");
    }
    for style in ["@import", "url("] {
        assert!(!include_str!("../../src/report/assets/report.css").contains(style));
    }
    let scripts = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/report/assets"));
    let scripts = scripts.unwrap().map(|entry| entry.unwrap().path());
    let scripts: Vec<_> =
        scripts.filter(|path| path.extension().is_some_and(|it| it == "js")).collect();
    assert!(scripts.len() > 10);
    for script in scripts {
        assert!(!std::fs::read_to_string(&script).unwrap().contains("http"), "{script:?}");
    }
}

/// The text without any element of this name.
fn without(html: String, name: &str) -> String {
    let (open, close) = (format!("<{name}"), format!("</{name}>"));
    let mut kept = String::new();
    let mut rest = html.as_str();
    while let Some(start) = rest.find(&open) {
        kept.push_str(&rest[..start]);
        let Some(end) = rest[start..].find(&close) else { return kept };
        rest = &rest[start + end + close.len()..];
    }
    kept + rest
}
