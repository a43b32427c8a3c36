//! The scorecard of a report: its figures follow from the cells, it names what it leaves out, and
//! it uses the reader's weights.

use myelin_bench_lab::input_error::Source;
use myelin_bench_lab::report::{Format, Options, Report, Screen};
use myelin_bench_lab::score::Weights;
use myelin_bench_lab::summary;

use crate::page::fixture;
use summary::{Analysis, Cell};

/// `report.md` with the given weights.
fn markdown(analysis: &Analysis, weights: &str) -> String {
    let weights = match weights {
        "" => Weights::default(),
        text => Weights::parse(&Source::new("weights.toml", text)).unwrap(),
    };
    let folder = tempfile::tempdir().unwrap();
    Report::new(analysis, &Options { weights, ..Options::default() }).write(folder.path()).unwrap();
    std::fs::read_to_string(folder.path().join("report.md")).unwrap()
}

/// The part of the scorecard under a heading.
fn part<'t>(text: &'t str, title: &str) -> &'t str {
    let (_, card) = text.split_once("## Scorecard\n").expect("a scorecard");
    let (_, part) = card.split_once(&format!("### {title}\n")).unwrap_or_else(|| panic!("{card}"));
    let end = part.find("\n## ").unwrap_or(part.len());
    &part[..part[..end].find("\n### ").unwrap_or(end)]
}

/// A row's cells without markup; the first is its label.
fn row(part: &str, label: &str) -> Vec<String> {
    let line = part.lines().find(|line| line.starts_with(&format!("| {label} |")));
    let line = line.unwrap_or_else(|| panic!("no {label} in {part}"));
    let plain = |cell: &str| cell.split("; ").next().unwrap().trim().to_owned();
    line.trim_matches('|').split('|').map(plain).collect()
}

/// Scored systems, best first.
fn ranking(part: &str) -> Vec<String> {
    let table = part
        .split("scores out of 10")
        .nth(1)
        .unwrap()
        .split("the weight at which another")
        .next()
        .unwrap();
    let rows = table.lines().filter(|line| line.starts_with("| cyclonedds"));
    rows.map(|line| line.split('|').nth(1).unwrap().trim().to_owned()).collect()
}

const TUNED: &str = "roundtrip-sizes, two processes, tuned";
const SYSTEMS: [&str; 3] = ["cyclonedds.udp", "cyclonedds.iceoryx", "cyclonedds.iceoryx-loan"];

/// The systems of the fixture differ only in latency and CPU; here they differ in everything.
fn unlike() -> Analysis {
    let mut analysis = fixture::analysis();
    for cell in &mut analysis.summary.cells {
        let Some(place) = SYSTEMS.iter().position(|name| *name == cell.system) else { continue };
        cell.pss_bytes = Some([9 << 20, 71 << 20, 68 << 20][place] + cell.params.payload_bytes);
        cell.startup_ms = Some([11.0, 30.0, 28.5][place]);
        cell.daemon_ms = [None, Some(80.0), Some(79.0)][place];
        cell.processes[0].thread_count = [9, 11, 11][place];
    }
    for (cell, detail) in analysis.summary.cells.iter().zip(&mut analysis.details) {
        if cell.system == "cyclonedds.iceoryx" {
            let text = "# pools\n\n[general]\nversion = 1\n".to_owned();
            detail.configuration.insert("roudi.toml".to_owned(), text);
        }
    }
    analysis
}

/// The totals, computed as the report describes it.
fn totals(analysis: &Analysis, lines: [f64; 3]) -> [f64; 3] {
    let of = |name: &str, figure: &dyn Fn(&Cell) -> f64| {
        let ours = |cell: &&Cell| {
            (cell.scenario.as_str(), cell.tuning.name()) == ("roundtrip-sizes", "tuned")
                && cell.system == name
        };
        let cells: Vec<&Cell> = analysis.summary.cells.iter().filter(ours).collect();
        assert_eq!(cells.len(), fixture::PAYLOADS.len());
        cells.iter().map(|cell| figure(cell).log2()).sum::<f64>() / cells.len() as f64
    };
    let mut totals = [10.0; 3];
    let mut charge = |weight: f64, figure: &dyn Fn(usize, &Cell) -> f64| {
        let logs: Vec<f64> =
            (0..3).map(|place| of(SYSTEMS[place], &|cell| figure(place, cell))).collect();
        let best = logs.iter().copied().fold(f64::INFINITY, f64::min);
        (0..3).for_each(|place| totals[place] -= weight * (logs[place] - best));
    };
    charge(0.30, &|_, cell| cell.pss_bytes.unwrap() as f64);
    charge(0.25, &|_, cell| {
        let latency = cell.round_trip_us.unwrap();
        latency.p99.unwrap() / latency.p50.unwrap()
    });
    charge(0.20, &|_, cell| cell.cpu_us_per_message.unwrap());
    charge(0.15, &|place, cell| {
        let threads = cell.processes[0].thread_count + cell.processes[1].thread_count;
        (2.0 * f64::from(threads) * (lines[place] + 1.0)).powf(1.0 / 3.0)
    });
    charge(0.10, &|_, cell| cell.startup_ms.unwrap() + cell.daemon_ms.unwrap_or(0.0));
    totals
}

#[test]
fn totals_match_a_calculation_from_the_cells() {
    let analysis = unlike();
    let text = markdown(&analysis, "");
    let part = part(&text, TUNED);
    // Each has one line of XML; iceoryx has two lines of TOML besides a comment.
    for (system, total) in SYSTEMS.iter().zip(totals(&analysis, [1.0, 3.0, 1.0])) {
        assert_eq!(row(part, system)[1], format!("{total:.2}"), "{system} in {part}");
    }
    assert_eq!(ranking(part)[0], "cyclonedds.udp", "{part}");
    assert!(part.contains("- cyclonedds.udp is first with "), "{part}");
    // Each system is the best by some criterion, so some weight turns the order.
    let verdict = part.lines().find(|line| line.contains("is first with")).unwrap();
    assert!(verdict.contains(" is first if ") && verdict.contains(" weighs "), "{verdict}");
}

#[test]
fn weights_of_the_reader_change_the_order_and_its_sensitivity() {
    let analysis = unlike();
    let text = markdown(&analysis, "cpu = 1\n");
    let part = part(&text, TUNED);
    assert_eq!(ranking(part)[0], "cyclonedds.iceoryx-loan", "{part}");
    assert_eq!(row(part, "CPU")[1], "100 %");
    let turns = part.lines().rfind(|line| line.starts_with("| CPU |")).unwrap();
    let turns: Vec<&str> = turns.split('|').collect();
    assert!(turns[3].ends_with("; cyclonedds.udp "), "with less of CPU the lean one: {turns:?}");
    assert_eq!(turns[4], " – ", "it has all the weight");
}

#[test]
fn costs_are_shown_by_process_and_thread() {
    let text = markdown(&unlike(), "");
    let costs = part(&text, "What it costs: sanity, two processes, default");
    // RSS and CPU of ping, pong and daemons, then switches; the tested systems alone.
    let line = costs.lines().find(|line| line.starts_with("| cyclonedds.udp |")).unwrap();
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    assert_eq!(cells.len(), 9, "{line}");
    assert_eq!(cells[3], "–", "no daemon: {line}");
    let (total, threads) = cells[4].split_once("; ").unwrap();
    let threads = threads.split(", ").map(|it| it.rsplit(' ').next().unwrap());
    let sum: f64 = threads.map(|it| it.parse::<f64>().unwrap()).sum();
    let total: f64 = total.parse().unwrap();
    assert!((0.9..=1.0).contains(&(sum / total)), "threads make up the process: {line}");
    assert!(!text.contains("What it costs: roundtrip-sizes"), "it has several sizes");
}

#[test]
fn another_bad_system_does_not_change_the_order() {
    let analysis = unlike();
    let before = ranking(part(&markdown(&analysis, ""), TUNED));
    let mut more = analysis.clone();
    for (cell, detail) in analysis.summary.cells.iter().zip(&analysis.details) {
        if cell.system == "cyclonedds.udp" {
            let mut bad = cell.clone();
            bad.system = "cyclonedds.bad".to_owned();
            bad.pss_bytes = bad.pss_bytes.map(|bytes| 9 * bytes);
            bad.startup_ms = bad.startup_ms.map(|ms| 20.0 * ms);
            bad.cpu_us_per_message = bad.cpu_us_per_message.map(|us| 7.0 * us);
            more.summary.cells.push(bad);
            more.details.push(detail.clone());
        }
    }
    let after = ranking(part(&markdown(&more, ""), TUNED));
    assert_eq!(after.last().unwrap(), "cyclonedds.bad");
    assert_eq!(after[..3], before[..]);
}

#[test]
fn unscored_systems_are_named_and_not_scored_0() {
    let mut analysis = unlike();
    let text = markdown(&analysis, "");
    let default = part(&text, "roundtrip-sizes, two processes, default");
    assert!(default.contains("- not scored: cyclonedds.udp: invalid at 64 KiB"), "{default}");
    assert!(!ranking(default).contains(&"cyclonedds.udp".to_owned()), "{default}");

    // At 1 Hz every system has too few samples for a 99th percentile.
    let sanity = part(&text, "sanity, two processes, default");
    assert!(sanity.contains("latency stability is not scored"), "{sanity}");
    assert_eq!(row(sanity, "memory")[1], "40 %", "30 of the 75 that are left");

    // Folders of earlier versions have no number of threads.
    let processes = analysis.summary.cells.iter_mut().flat_map(|cell| &mut cell.processes);
    processes.for_each(|process| process.thread_count = 0);
    let text = markdown(&analysis, "");
    assert!(part(&text, TUNED).contains("simplicity is not scored"), "{text}");
    let nothing_else = markdown(&analysis, "simplicity = 1\n");
    assert!(part(&nothing_else, TUNED).contains("no system can be scored"), "{nothing_else}");
}

#[test]
fn a_system_that_keeps_a_core_busy_does_not_score_10_for_cpu() {
    let mut analysis = unlike();
    let mut burn = |systems: &[&str]| {
        for cell in &mut analysis.summary.cells {
            if cell.scenario == "sanity" {
                let is_busy = systems.contains(&cell.system.as_str());
                let percent = if is_busy { 100.0 } else { 1.0 };
                cell.cpu_percent = Some(percent);
                cell.cpu_us_per_message = Some(percent * 1e4); // at 1 Hz
            }
        }
        let text = markdown(&analysis, "");
        let part = part(&text, "sanity, two processes, default");
        SYSTEMS[..2].iter().map(|system| row(part, system)[3].clone()).collect::<Vec<_>>()
    };
    assert_eq!(burn(&SYSTEMS[..1])[1], "10.0", "it sleeps");
    assert_eq!(burn(&SYSTEMS), ["6.7", "6.7"]);
}

#[test]
fn published_scores_are_shown_beside_ours() {
    let text = markdown(&unlike(), "");
    let (_, published) = text.split_once("the scores its author gave").unwrap();
    let line = |criterion: &str| {
        let found = published.lines().find(|line| line.starts_with(&format!("| {criterion} |")));
        found.unwrap_or_else(|| panic!("no {criterion} in {published}")).to_owned()
    };
    // The fixture's sanity has only udp and iceoryx: 9 MiB and 71 MiB, 3 doublings.
    let points = 10.0 - ((71 << 20) as f64 + 12.0).log2() + ((9 << 20) as f64 + 12.0).log2();
    let expected = format!("| memory efficiency | 0.30 | 6.0 → {points:.1} | 9.5 → 10.0 |");
    assert_eq!(line("memory efficiency"), expected);
    assert!(line("latency stability").ends_with("7.0 → – | 8.5 → – |"), "no p99 at 1 Hz");
    assert!(!line("total").contains('–'), "{}", line("total"));
}

#[test]
fn the_page_has_sections_for_scorecard_and_advice() {
    let folder = tempfile::tempdir().unwrap();
    Report::new(&unlike(), &Options::default()).write(folder.path()).unwrap();
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    for section in ["<section id=\"scorecard\">", "<section id=\"advice\">"] {
        let (_, section) = page.split_once(section).unwrap_or_else(|| panic!("no {section}"));
        let section = &section[..section.find("</section>").unwrap()];
        assert!(section.contains("<table class=\"glance\">"), "{section}");
        assert!(section.contains("cyclonedds.iceoryx-loan"), "{section}");
    }
}

#[test]
fn the_terminal_shows_one_card_and_refers_to_the_report() {
    let screen = Screen { width: 160, colour: false };
    let text = Report::new(&unlike(), &Options::default()).terminal(Format::Table, screen);
    let (_, card) = text.split_once("\nScorecard\n").unwrap();
    let card = &card[..card.find("\nAdvice\n").unwrap()];
    assert_eq!(card.matches("scores out of 10 with the figures").count(), 1, "{card}");
    assert!(card.contains("The report has more."), "{card}");
}
