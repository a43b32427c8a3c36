//! Streams at a robot's rates on the page: the small multiples against one parameter in a browser,
//! read back and compared with the summary.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the pages of the fixtures in that folder for inspection.

use std::collections::BTreeSet;
use std::path::Path;

use myelin_bench_lab::report::write_all;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary;

use crate::page::{browser, dom, lines, marks, published, robot};
use browser::{Page, dump_at, dump_of, write};
use dom::{attribute, elements};
use lines::lines;
use marks::{assert_scale, figures, signs};
use summary::{Analysis, Cell};

/// The page of an analysis, kept if the user asked for that.
fn page_of(name: &str, analysis: &Analysis) -> Page {
    if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
        let folder = Path::new(&folder).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        write_all(analysis, &folder).unwrap();
    }
    write(analysis)
}

fn without_errors(dom: &str) {
    let root = elements(dom, "html").next().unwrap();
    assert_eq!(attribute(root, "data-errors"), Some("0"), "{root}");
}

/// The expected panel.
struct Panel {
    key: &'static str,
    of: fn(&Cell) -> Option<f64>,
    is_log: bool,
}

const CPU: Panel = Panel { key: "cpu", of: |cell| cell.cpu_percent, is_log: true };
const LATENCY: Panel = Panel { key: "p50", of: |cell| cell.one_way_us?.p50, is_log: true };
const LOST: Panel = Panel { key: "lost", of: loss, is_log: false };

fn loss(cell: &Cell) -> Option<f64> {
    Some(100.0 * cell.lost? as f64 / (cell.lost? + cell.received) as f64)
}

/// Asserts that the panels of a key show, row by row, exactly the given cells, at positions that
/// follow from the values along both axes.
fn assert_panels(dom: &str, panel: &Panel, rows: &[Vec<&Cell>], x_of: fn(&Cell) -> f64) {
    let prefix = format!("sweep {} ", panel.key);
    let drawn = figures(dom).map(|figure| signs(figure, &prefix));
    let drawn: Vec<_> = drawn.filter(|marks| !marks.is_empty()).collect();
    assert_eq!(drawn.len(), rows.len(), "rows of {}", panel.key);
    for (marks, cells) in drawn.iter().zip(rows) {
        let shown = cells.iter().filter(|cell| cell.valid && (panel.of)(cell).is_some());
        let shown: Vec<&&Cell> = shown.collect();
        assert_eq!(marks.len(), shown.len(), "{}: {marks:?}", panel.key);
        let mut across = Vec::new();
        let mut up = Vec::new();
        let systems: BTreeSet<&str> = shown.iter().map(|cell| cell.system.as_str()).collect();
        for system in systems {
            let own = || shown.iter().filter(|cell| cell.system == system);
            let tuning = &own().next().unwrap().tuning;
            let prefix = format!("{system}, {tuning}, ");
            let mut marks: Vec<_> =
                marks.iter().filter(|mark| mark.label.starts_with(&prefix)).collect();
            marks.sort_by(|a, b| a.x.total_cmp(&b.x));
            let mut cells: Vec<&&&Cell> = own().collect();
            cells.sort_by(|a, b| x_of(a).total_cmp(&x_of(b)));
            assert_eq!(marks.len(), cells.len(), "{system}");
            for (mark, cell) in marks.iter().zip(cells) {
                across.push((x_of(cell), mark.x));
                up.push(((panel.of)(cell).unwrap(), mark.y));
            }
        }
        assert_scale(&across, true);
        if up.iter().any(|(value, _)| *value != up[0].0) {
            assert_scale(&up, panel.is_log);
        }
    }
}

fn by_tuning<'c>(cells: &'c [Cell], tunings: &[&str]) -> Vec<Vec<&'c Cell>> {
    let of = |tuning: &&str| cells.iter().filter(|cell| cell.tuning.name() == *tuning).collect();
    tunings.iter().map(of).collect()
}

#[test]
fn sizes_are_where_the_summary_has_them() {
    let analysis = robot::sizes();
    let page = page_of("sizes", &analysis);
    let Some(dom) = dump_of(&page, "") else { return };
    without_errors(&dom);
    let rows = by_tuning(&analysis.summary.cells, &["default", "tuned"]);
    let memory =
        Panel { key: "memory", of: |cell| Some(cell.pss_bytes? as f64 / 1e6), is_log: true };
    for panel in [LATENCY, CPU, LOST, memory] {
        assert_panels(&dom, &panel, &rows, |cell| cell.params.payload_bytes as f64);
    }
    assert!(!page.2.contains("\"has_sizes\":true"), "no second plot of the same");
    let dom = dump_of(&page, "#hide=cyclonedds.udp,os.unix&without=default").unwrap();
    let is_shown = |cell: &&Cell| {
        cell.tuning == Tuning::Tuned
            && !["cyclonedds.udp", "os.unix"].contains(&cell.system.as_str())
    };
    let rows = [analysis.summary.cells.iter().filter(is_shown).collect()];
    assert_panels(&dom, &LATENCY, &rows, |cell| cell.params.payload_bytes as f64);
}

#[test]
fn withheld_and_invalid_figures_are_gaps() {
    let Some(dom) = dump_of(&page_of("sizes", &robot::sizes()), "") else { return };
    let pieces = |label: &str| lines(&dom, label).iter().map(Vec::len).collect::<Vec<_>>();
    // 1 MiB, the fifth of eight, has no p99.
    assert_eq!(pieces("sweep p99 myelin.shm-block, default"), [4, 3]);
    assert_eq!(pieces("sweep line p50 myelin.shm-block, default"), [8]);
    assert_eq!(pieces("sweep line p50 os.unix, default"), [7], "10 MiB was not measured");
    // 1 KiB, the second of eight, is invalid: a cross, and no line.
    assert_eq!(pieces("sweep line cpu cyclonedds.udp, tuned"), [1, 6]);
    let label = "invalid sweep cpu cyclonedds.udp, tuned, 1 KiB";
    let crosses = elements(&dom, "text").filter(|tag| attribute(tag, "aria-label") == Some(label));
    assert_eq!(crosses.count(), 1);
}

#[test]
fn published_figures_lie_on_the_same_scale() {
    let analysis = robot::sizes();
    let Some(dom) = dump_of(&page_of("sizes", &analysis), "") else { return };
    let rows = published::rows(&published::tables(published::CYBERRT)[0]);
    let number = |row: &toml::Table, column| published::number(&row[column]).unwrap();
    let row = rows.iter().find(|row| number(row, "rate_Hz") == 100.0).unwrap();
    for (key, value, of) in [
        ("p50", number(row, "latency_us"), LATENCY.of),
        ("cpu", number(row, "cpu_percent"), CPU.of),
        ("memory", number(row, "memory_MB"), |cell: &Cell| Some(cell.pss_bytes? as f64 / 1e6)),
    ] {
        let theirs = figures(&dom).filter_map(|figure| {
            let theirs = signs(figure, &format!("published {key} CyberRT 10.0, published: "));
            (!theirs.is_empty()).then_some((figure, theirs))
        });
        let theirs: Vec<_> = theirs.collect();
        assert_eq!(theirs.len(), 2, "{key}: default and tuned");
        for ((figure, theirs), tuning) in theirs.iter().zip(["default", "tuned"]) {
            assert_eq!(theirs.len(), 1, "one module sends at 100 Hz");
            assert_eq!(Some(theirs[0].label.as_str()), row["module"].as_str());
            let ours = |size: u64| {
                let cells = analysis.summary.cells.iter();
                let mut cells = cells.filter(|cell| cell.tuning.name() == tuning);
                let cell = cells.find(|cell| {
                    cell.system == "cyclonedds.udp" && cell.params.payload_bytes == size
                });
                of(cell.unwrap()).unwrap()
            };
            let marks = signs(figure, &format!("sweep {key} cyclonedds.udp, {tuning}, "));
            let place = |label: &str| marks.iter().find(|mark| mark.label == label).unwrap();
            let (small, large) = (place("64 KiB"), place("10 MiB"));
            assert!((small.x - theirs[0].x).abs() < 0.6, "64 KB is 64 KiB");
            if key != "cpu" {
                assert_scale(
                    &[(ours(64 << 10), small.y), (ours(10 << 20), large.y), (value, theirs[0].y)],
                    true,
                );
            }
        }
    }
}

#[test]
fn rates_show_where_a_system_falls_behind() {
    let analysis = robot::rates();
    let page = page_of("rates", &analysis);
    let Some(dom) = dump_of(&page, "") else { return };
    without_errors(&dom);
    let rows = by_tuning(&analysis.summary.cells, &["tuned"]);
    for panel in [LATENCY, CPU, LOST] {
        assert_panels(&dom, &panel, &rows, |cell| cell.params.rate_hz.unwrap());
    }
    // Only hollow signs have strokes of this width.
    let groups = dom.split("<g ").filter(|group| {
        let tag = group.split('>').next().unwrap();
        tag.contains("stroke-width=\"1.6\"") && tag.contains("fill=\"var(--paper)\"")
    });
    let mut hollow: Vec<String> = groups
        .flat_map(|group| signs(group, "sweep p50 ").into_iter().map(|mark| mark.label))
        .collect();
    hollow.sort();
    assert_eq!(hollow, ["cyclonedds.udp, tuned, 10 kHz", "cyclonedds.udp, tuned, 100 kHz"]);
    // p99 from 100 Hz on, p99.9 from 1 kHz on: lower rates have too few messages.
    let pieces = |label: &str| lines(&dom, label).iter().map(Vec::len).collect::<Vec<_>>();
    assert_eq!(pieces("sweep p99 myelin.shm-block, tuned"), [4]);
    assert_eq!(pieces("sweep p999 myelin.shm-block, tuned"), [3]);
}

#[test]
fn only_the_end_points_are_drawn_by_default() {
    let page = page_of("rates", &robot::rates());
    let curves = |dom: &str| {
        let drawn = elements(dom, "svg").filter_map(|tag| attribute(tag, "aria-label"));
        let drawn = drawn.filter_map(|label| label.strip_prefix("Percentiles, rate-curve · "));
        drawn.map(|label| label.split(',').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let Some(dom) = dump_of(&page, "") else { return };
    assert_eq!(curves(&dom), ["two processes · 1 Hz", "two processes · 100000 Hz"]);
    let third = robot::rates()
        .summary
        .cells
        .iter()
        .position(|cell| cell.params.rate_hz == Some(robot::RATES[2]));
    let chosen = dump_of(&page, &format!("#points=group-{}", third.unwrap())).unwrap();
    without_errors(&chosen);
    assert_eq!(curves(&chosen), ["two processes · 100 Hz"]);
}

#[test]
fn each_payload_of_a_fan_out_has_its_row() {
    let analysis = robot::fan_out();
    let Some(dom) = dump_of(&page_of("fan-out", &analysis), "") else { return };
    without_errors(&dom);
    let of = |bytes: u64| -> Vec<&Cell> {
        let here = |cell: &&Cell| cell.params.payload_bytes == bytes;
        analysis.summary.cells.iter().filter(here).collect()
    };
    let rows = [of(64), of(8 << 20)];
    assert_panels(&dom, &LATENCY, &rows, |cell| f64::from(cell.params.subscribers));
    for title in ["fan-out · 64 B · 30 Hz: against subscribers", "fan-out · 8 MiB · 30 Hz"] {
        assert!(dom.contains(title), "{title}");
    }
}

#[test]
fn floods_have_panels_of_their_own_and_no_latency() {
    let analysis = robot::extremes();
    let page = page_of("extremes", &analysis);
    let Some(dom) = dump_of(&page, "") else { return };
    without_errors(&dom);
    let floods = analysis.summary.cells.iter().filter(|cell| cell.scenario == "flood");
    let rows = vec![floods.collect::<Vec<_>>()];
    let taken = Panel { key: "taken", of: |cell| cell.taken_per_s, is_log: false };
    let bytes = Panel {
        key: "bytes",
        of: |cell| Some(cell.taken_per_s? * cell.params.payload_bytes as f64 / 1e6),
        is_log: true,
    };
    for panel in [taken, bytes, LOST] {
        assert_panels(&dom, &panel, &rows, |cell| cell.params.payload_bytes as f64);
    }
    for section in ["pareto", "percentiles", "runs"] {
        assert!(!page.2.contains(&format!("<section id=\"{section}\">")), "{section}");
    }
    assert!(!dom.contains("sweep p50 ") && !dom.contains("sanity-discovery: against"));
}

#[test]
fn modules_are_not_drawn_along_payload_or_rate() {
    let page = page_of("modules", &robot::modules());
    let Some(dom) = dump_of(&page, "") else { return };
    without_errors(&dom);
    assert!(!dom.contains("\"sweep "), "three payloads at 10 Hz, each of another module");
    let drawn = elements(&dom, "svg").filter_map(|tag| attribute(tag, "aria-label"));
    let drawn = drawn.filter(|label| label.starts_with("CPU against latency, modules · "));
    assert_eq!(drawn.count(), robot::MODULES.len());
}

/// The ticks of one plot along x, with text and position.
fn ticks(figure: &str) -> Vec<(f64, String)> {
    let Some((_, axis)) = figure.split_once("aria-label=\"x-axis tick label\"") else {
        return vec![];
    };
    let axis = axis.split("</g>").next().unwrap();
    let texts = axis.split("<text").skip(1).map(|text| {
        let (tag, rest) = text.split_once('>').unwrap();
        let place = tag.split_once("translate(").unwrap().1.split([',', ')']).next().unwrap();
        (place.parse().unwrap(), rest.split('<').next().unwrap().to_owned())
    });
    texts.collect()
}

#[test]
fn panels_fit_the_window_and_labels_do_not_touch() {
    for (name, analysis) in [("sizes", robot::sizes()), ("rates", robot::rates())] {
        let page = page_of(name, &analysis);
        let mut widths = Vec::new();
        // A window of Chromium cannot be narrower.
        for window in [500, 1440] {
            let Some(dom) = dump_at(&page, "", window) else { return };
            let panels: Vec<_> =
                figures(&dom).filter(|figure| figure.contains("\"sweep line ")).collect();
            assert!(panels.len() >= 4);
            for panel in panels {
                let svg = elements(panel, "svg").next().unwrap();
                let width: f64 = attribute(svg, "width").unwrap().parse().unwrap();
                widths.push((window, width));
                let ticks = ticks(panel);
                assert!(ticks.len() > 1, "{panel}");
                for pair in ticks.windows(2) {
                    let wide = |text: &str| 6.0 * text.chars().count() as f64;
                    let gap = pair[1].0 - pair[0].0;
                    assert!(gap > (wide(&pair[0].1) + wide(&pair[1].1)) / 2.0, "{pair:?}");
                }
            }
        }
        // One below the other in a narrow window, four side by side in a wide one.
        for (window, width) in widths {
            let columns = (f64::from(window) / width).floor();
            assert_eq!(columns, if window == 500 { 1.0 } else { 4.0 }, "{window}: {width}");
        }
    }
}
