//! The first screen of a report: on the page without scrolling, on a terminal without a pager.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the page in that folder for inspection.

use std::path::Path;

use myelin_bench_kit::protocol::{Transport, Wait, Workload};
use myelin_bench_lab::cgroup::{CpuQuota, Throttling};
use myelin_bench_lab::machine::Machine;
use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary;

use crate::page::{ask, browser, fixture};
use ask::ask;
use browser::write_folded;
use summary::{Analysis, Cell, Distribution, RunFigures};

/// Systems in addition to those of the fixture; the factor is their latency over that of
/// `cyclonedds.iceoryx`.
const PEERS: &[(&str, Wait, Transport, f64)] = &[
    ("myelin.shm-block", Wait::Block, Transport::SharedMemory, 0.8),
    ("zenoh.shm", Wait::Block, Transport::SharedMemory, 0.9),
    ("zenoh.tcp", Wait::Block, Transport::Loopback, 2.1),
    ("iceoryx.waitset", Wait::Block, Transport::SharedMemory, 0.95),
    ("iceoryx2.event", Wait::Block, Transport::SharedMemory, 0.97),
    ("zeromq.ipc", Wait::Block, Transport::Kernel, 1.3),
    ("lcm.udpm", Wait::Block, Transport::Loopback, 1.9),
    ("fastdds.shm", Wait::Block, Transport::SharedMemory, 1.6),
    ("fastdds.datasharing", Wait::Block, Transport::SharedMemory, 1.7),
    ("fastdds.udp", Wait::Block, Transport::Loopback, 2.2),
    ("myelin.dds", Wait::Block, Transport::Loopback, 1.8),
    ("myelin.shm-adaptive", Wait::Adaptive, Transport::SharedMemory, 0.03),
    ("myelin.shm-predictive", Wait::Predictive, Transport::SharedMemory, 0.02),
    ("myelin.shm-poll", Wait::Poll, Transport::SharedMemory, 0.015),
    ("iceoryx2.poll", Wait::Poll, Transport::SharedMemory, 0.04),
    ("iceoryx.poll", Wait::Poll, Transport::SharedMemory, 0.08),
];

/// Results of `quick`: two sizes, two tunings, nineteen systems and the floor.
fn quick() -> Analysis {
    let mut made = fixture::analysis();
    keep(&mut made, |cell| {
        cell.scenario == "roundtrip-sizes" && [64, 65536].contains(&cell.params.payload_bytes)
    });
    let pattern = made.summary.systems.iter().find(|it| it.name == "cyclonedds.iceoryx").unwrap();
    let pattern = pattern.clone();
    for &(name, wait, transport, factor) in PEERS {
        let system = summary::SystemInfo { name: name.into(), wait, transport, ..pattern.clone() };
        made.summary.systems.push(system);
        for at in 0..made.summary.cells.len() {
            if made.summary.cells[at].system != pattern.name {
                continue;
            }
            let mut cell = made.summary.cells[at].clone();
            cell.placements.clear();
            (cell.system, cell.params.wait) = (name.to_owned(), wait);
            cell.round_trip_us = cell.round_trip_us.map(|it| scaled(it, factor));
            let ends = cell.round_trip_p50_interval_us;
            cell.round_trip_p50_interval_us = ends.map(|ends| ends.map(|end| end * factor));
            let ends = cell.round_trip_p99_interval_us;
            cell.round_trip_p99_interval_us = ends.map(|ends| ends.map(|end| end * factor));
            let mut detail = made.details[at].clone();
            for run in &mut detail.runs {
                // The runs of each cell vary differently.
                let wander = 1.0 + 0.005 * (f64::from(run.order) * factor * 9.7).sin();
                let of_all = cell.round_trip_us.map(|it| [it.p50, it.p99]).unwrap_or_default();
                for (name, us) in ["p50_us", "p99_us"].into_iter().zip(of_all) {
                    run.set(name, us.map(|us| us * wander));
                }
            }
            made.summary.cells.push(cell);
            made.details.push(detail);
        }
    }
    for cell in &mut made.summary.cells {
        cell.scenario = "quick".to_owned();
    }
    made
}

/// Without the one cell that is invalid because it lost messages.
fn all_valid(analysis: &mut Analysis) {
    for cell in &mut analysis.summary.cells {
        cell.valid = true;
        cell.invalid_reasons.clear();
        cell.received += cell.lost.replace(0).unwrap();
    }
}

fn keep(analysis: &mut Analysis, is_wanted: impl Fn(&Cell) -> bool) {
    let cells = std::mem::take(&mut analysis.summary.cells).into_iter();
    let pairs = cells.zip(std::mem::take(&mut analysis.details));
    let wanted = pairs.filter(|(cell, _)| is_wanted(cell));
    (analysis.summary.cells, analysis.details) = wanted.unzip();
}

fn scaled(it: Distribution, factor: f64) -> Distribution {
    let times = |value: Option<f64>| value.map(|value| value * factor);
    Distribution {
        min: it.min * factor,
        mean: it.mean * factor,
        p50: times(it.p50),
        p90: times(it.p90),
        p99: times(it.p99),
        p999: times(it.p999),
        max: it.max * factor,
    }
}

fn printed(analysis: &Analysis) -> String {
    terminal(analysis, Format::Glance, Screen::default())
}

#[test]
fn a_ranking_names_what_its_systems_lost() {
    let mut made = quick();
    all_valid(&mut made);
    for cell in &mut made.summary.cells {
        if cell.system == "myelin.shm-block" {
            let lost = cell.received / 50;
            (cell.received, cell.lost) = (cell.received - lost, Some(lost));
            let latency = cell.round_trip_us.as_mut().unwrap();
            (latency.p99, latency.p999) = (Some(f64::INFINITY), Some(f64::INFINITY));
        }
    }
    let text = printed(&made);
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("myelin.shm-block (2.00 % lost) is the fastest"), "{text}");
    let row = text.lines().find(|line| line.trim().starts_with("myelin.shm-block")).unwrap();
    assert!(row.contains("∞") && row.matches('━').count() > 5, "a tail to the edge: {text}");
}

fn cell<'a>(analysis: &'a mut Analysis, system: &str, tuning: &str, payload: u64) -> &'a mut Cell {
    let is_it = |cell: &&mut Cell| {
        cell.system == system
            && cell.tuning.name() == tuning
            && cell.params.payload_bytes == payload
    };
    analysis.summary.cells.iter_mut().find(is_it).unwrap()
}

fn runs<'a>(
    analysis: &'a mut Analysis,
    system: &str,
    tuning: &str,
    payload: u64,
) -> &'a mut [RunFigures] {
    let at = analysis.summary.cells.iter().position(|cell| {
        cell.system == system
            && cell.tuning.name() == tuning
            && cell.params.payload_bytes == payload
    });
    &mut analysis.details[at.unwrap()].runs
}

#[test]
fn the_answer_fits_the_first_screen() {
    let analysis = quick();
    if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
        write_all(&analysis, Path::new(&folder)).unwrap();
    }
    let page = write_folded(&analysis);
    // The right and the lower end of each, the first words of the page, and the number of unfolded
    // parts.
    let look = "
        const end = (selector) => Math.ceil(Math.max(...[...document.querySelectorAll(selector)].map((node) => node.getBoundingClientRect().bottom)));
        const rows = [...document.querySelectorAll('.panel:first-child .rank')].length;
        answer([document.documentElement.scrollWidth, end('h1'), end('.trust'), end('.panel:first-child .rank'), end('.panel .rank'), end('.sentences'), rows, document.querySelectorAll('.sentences li').length, document.querySelectorAll('details[open]').length].join(' '));";
    for (width, height) in [(1440, 900), (400, 800)] {
        let Some(answer) = ask(&page, "", width, look) else { return };
        let numbers: Vec<i64> =
            answer.split(' ').map(|word| word.parse().expect(&answer)).collect();
        let [wide, title, trust, first, all, sentences, rows, count, open] = numbers[..] else {
            panic!("{answer}")
        };
        assert!(wide <= i64::from(width), "{answer}");
        assert!(title > 0 && trust > title && first > trust && first <= height, "{answer}");
        assert!(rows >= 19 + 4, "a row for each system, one for each manner: {answer}");
        assert!((2..=5).contains(&count) && open == 0, "{answer}");
        if width > 1000 {
            assert!(all <= height && sentences <= height, "{answer}");
        }
    }
}

#[test]
fn marks_lie_where_the_axis_says() {
    // Ticks, then the dots of the ranking tuning with the figures beside them.
    let look = "
        const panel = document.querySelector('.panel');
        const ticks = [...panel.querySelectorAll('.heads small')].map((tick) => [tick.textContent, tick.style.left]);
        const rows = [...panel.querySelectorAll('.rank:not(.heads, .manner)')].map((row) => [row.querySelector('.strong').textContent, row.querySelector('.main .dot').style.left]);
        answer([ticks, rows].map((pairs) => pairs.map((pair) => pair.join('=').replace('%', '')).join(';')).join('|'));";
    let Some(answer) = ask(&write_folded(&quick()), "", 1440, look) else { return };
    let (ticks, rows) = answer.split_once('|').expect(&answer);
    let pairs = |text: &str, of: fn(&str) -> f64| -> Vec<(f64, f64)> {
        let pairs = text.split(';').map(|pair| pair.split_once('=').expect(&answer));
        pairs.map(|(value, at)| (of(value), at.parse().expect(&answer))).collect()
    };
    let ticks = pairs(ticks, |text| {
        let (number, unit) = text.split_once(' ').unwrap();
        let factor = [("ns", 1e-3), ("µs", 1.0), ("ms", 1e3)];
        number.parse::<f64>().unwrap() * factor.iter().find(|it| it.0 == unit).unwrap().1
    });
    let rows = pairs(rows, |text| text.parse().unwrap());
    let [first, .., last] = ticks[..] else { panic!("{answer}") };
    let slope = (last.1 - first.1) / (last.0 / first.0).ln();
    assert!(rows.len() >= 19 && slope > 0.0, "{answer}");
    for (value, at) in rows {
        let expected = first.1 + slope * (value / first.0).ln();
        assert!((at - expected).abs() < 0.3, "{value} at {at}, not {expected}: {answer}");
    }
}

#[test]
fn the_terminal_shows_one_screen() {
    let analysis = quick();
    let text = printed(&analysis);
    assert!(text.lines().count() < 40, "{}:\n{text}", text.lines().count());
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{widest}:\n{text}");
    let row = |system: &str| {
        let row = text.lines().find(|line| line.trim_start().starts_with(system));
        row.unwrap_or_else(|| panic!("{system}:\n{text}"))
    };
    let peers = analysis.summary.systems.iter().filter(|system| !system.floor);
    for system in peers {
        assert!(row(&system.name).contains('●'), "{text}");
    }
    assert!(row("sleep until woken").contains("floor os.futex"), "{text}");
    assert!(row("poll (costs a core)").contains("floor os.cacheline"), "{text}");
    // Faster systems stand above slower ones.
    let place = |system: &str| text.find(&format!(" {system} ")).unwrap();
    assert!(place("myelin.shm-block") < place("zenoh.shm"), "{text}");
    assert!(place("zenoh.shm") < place("fastdds.udp"), "{text}");
    assert!(place("fastdds.udp") < place("myelin.shm-adaptive"), "those that sleep come first");
}

#[test]
fn systems_that_could_not_run_are_named_on_the_first_screen() {
    let mut analysis = quick();
    // It has a cell that is invalid, and a system without a cell.
    all_valid(&mut analysis);
    analysis.summary.systems.retain(|system| system.missing.is_none());
    let before = printed(&analysis);
    assert!(!before.contains("Not measured"), "{before}");
    let pattern = analysis.summary.systems[0].clone();
    for (name, missing) in [
        ("horus.shm", "not installed: horus"),
        ("horus.udp", "not installed: horus"),
        ("ecal.shm", "not installed: eCAL"),
        ("ecal.udp", "not installed: eCAL"),
        ("libxr.topic", "not installed: LibXR"),
    ] {
        let missing = Some(missing.to_owned());
        let system = summary::SystemInfo { name: name.into(), missing, ..pattern.clone() };
        analysis.summary.systems.push(system);
    }
    let text = printed(&analysis);
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = "! Not measured: horus.*: not installed: horus; ecal.*: not installed: eCAL; \
                libxr.topic: not installed: LibXR.";
    assert!(flat(&text).contains(line), "with what to install: {text}");
    assert!(text.contains("✔ The figures can be trusted"), "{text}");
    // Below the most serious doubts.
    for cell in &mut analysis.summary.cells {
        cell.valid = cell.system != "zenoh.tcp";
    }
    let text = flat(&printed(&analysis));
    let (doubt, rest) = text.split_once("! Not measured").expect("it is named");
    assert!(doubt.contains("! Cells: ") && rest.contains(" more: --verbose."), "{text}");
    let (_, _, page) = write_folded(&analysis);
    assert!(page.contains("<p>! Not measured: horus.*, ecal.*, libxr.topic</p>"), "{page}");
    assert!(page.contains("<li>Not measured: ecal.*: not installed: eCAL</li>"), "{page}");
}

/// The first screen in one line, of `quick` with a change.
fn flat(change: impl Fn(&mut Analysis)) -> String {
    let mut analysis = quick();
    all_valid(&mut analysis);
    change(&mut analysis);
    printed(&analysis).split_whitespace().collect::<Vec<_>>().join(" ")
}

const TRUSTED: &str = "✔ The figures can be trusted";

#[test]
fn one_run_of_each_cell_is_not_believed() {
    assert!(flat(|_| ()).contains(TRUSTED));
    let with_runs = |runs: usize| {
        flat(|analysis| {
            for (cell, detail) in analysis.summary.cells.iter_mut().zip(&mut analysis.details) {
                detail.runs.truncate(runs);
                cell.runs = detail.runs.len() as u32;
            }
        })
    };
    assert!(with_runs(2).contains(TRUSTED), "said, and believed");
    let text = with_runs(1);
    let said = "! Repeats: 1 run of each cell; nothing shows how much they vary: use --runs 5.";
    assert!(text.contains("✗ Read the figures with care") && text.contains(said), "{text}");
}

#[test]
fn systems_below_the_floor_that_they_stand_on_are_not_believed() {
    let below = |[floor, system]: [&str; 2], factor: f64, payload: u64| {
        flat(|analysis| {
            let of_floor = cell(analysis, floor, "tuned", payload).round_trip_us.unwrap();
            let cell = cell(analysis, system, "tuned", payload);
            cell.round_trip_us = Some(scaled(of_floor, factor));
            let of_floor = runs(analysis, floor, "tuned", payload).to_vec();
            for (run, floor) in runs(analysis, system, "tuned", payload).iter_mut().zip(of_floor) {
                run.set("p50_us", floor.get("p50_us").map(|us| us * factor));
            }
        })
    };
    let (sleeping, polling) = (["os.futex", "zenoh.shm"], ["os.cacheline", "iceoryx2.poll"]);
    assert!(below(sleeping, 0.98, 64).contains(TRUSTED), "within the noise");
    assert!(below(sleeping, 0.7, 65536).contains(TRUSTED), "without the floor's copy");
    assert!(below(polling, 0.7, 64).contains(TRUSTED), "another loop");
    let text = below(sleeping, 0.7, 64);
    assert!(text.contains("✗ Read the figures with care"), "{text}");
    assert!(text.contains("! Below the floor: zenoh.shm, 64 B, tuned 0.70×"), "{text}");
}

#[test]
fn a_run_that_a_quota_held_up_is_named_on_the_first_screen() {
    let text = flat(|analysis| {
        let cell = cell(analysis, "zenoh.shm", "tuned", 64);
        cell.valid = false;
        let reason = "run 1: a CPU quota held it up in 73 of 78 periods, for 5840 ms";
        cell.invalid_reasons = vec![reason.to_owned()];
        let throttling = Throttling { periods: 78, throttled_periods: 73, throttled_us: 5_840_000 };
        analysis.summary.host.throttling = Some(throttling);
        analysis.summary.host.cpu_quota = Some(CpuQuota { quota_us: 20_000, period_us: 100_000 });
    });
    assert!(text.contains("✗ Not all figures can be trusted"), "{text}");
    let said =
        "! Machine: a CPU quota (20000 of each 100000 µs) held up the runs in 73 of 78 periods";
    assert!(text.contains(said), "{text}");
    assert!(text.contains("run 1: a CPU quota held it up"), "{text}");
}

#[test]
fn an_unfit_machine_is_not_believed() {
    let belief = |change: fn(&mut Machine)| {
        let mut analysis = quick();
        all_valid(&mut analysis);
        change(&mut analysis.summary.host);
        let text = printed(&analysis);
        (text.contains("✗ Read the figures with care"), text.contains("! Machine: "))
    };
    assert_eq!(belief(|_| ()), (false, false));
    assert_eq!(belief(|host| host.busy_percent = 93.0), (true, true));
    assert!(!belief(|host| host.busy_percent = 20.0).0, "said, and believed");
    assert_eq!(belief(|host| host.cpus_allowed = Some(1)), (true, true));
    let quota = CpuQuota { quota_us: 20_000, period_us: 100_000 };
    let mut analysis = quick();
    all_valid(&mut analysis);
    analysis.summary.host.cpu_quota = Some(quota);
    assert!(printed(&analysis).contains("Machine: a CPU quota gives 20000 of each 100000 µs"));
}

#[test]
fn without_a_complete_cell_there_is_no_picture() {
    let mut analysis = quick();
    for (cell, detail) in analysis.summary.cells.iter_mut().zip(&mut analysis.details) {
        (cell.round_trip_us, cell.valid) = (None, false);
        detail.runs.clear();
    }
    let text = printed(&analysis);
    assert!(text.contains("Nothing is complete yet.") && !text.contains("CPU µs"), "{text}");
}

#[test]
fn a_narrow_terminal_gets_as_much_as_fits() {
    let analysis = quick();
    let widths = [(100, 2, true), (80, 2, true), (60, 1, false), (40, 1, false)];
    for (width, panels, has_line) in widths {
        let text = terminal(&analysis, Format::Glance, Screen { width, colour: false });
        let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{text}");
        // At 40 columns there is room for the latencies alone.
        let costs = if width > 40 { 2 } else { 0 };
        assert_eq!(text.contains("CPU µs"), costs > 0, "{width}:\n{text}");
        let head = text.lines().find(|line| line.trim().starts_with("64 B")).unwrap_or("");
        let head = text.lines().find(|line| line.contains("CPU µs")).unwrap_or(head);
        assert_eq!(head.contains('●'), has_line, "{width}:\n{text}");
        assert_eq!(text.contains("1 further point: --verbose"), panels == 1, "{width}:\n{text}");
        let row = text.lines().find(|it| it.trim_start().starts_with("myelin.shm-block ")).unwrap();
        let figures = row.split_whitespace().filter(|word| word.parse::<f64>().is_ok()).count();
        assert_eq!(figures, 2 * panels + costs, "{width}:\n{text}");
        assert!(!text.contains("slower"), "each system has its row at {width}:\n{text}");
    }
    for width in [1, 20] {
        let screen = Screen { width, colour: false };
        assert!(!terminal(&analysis, Format::Glance, screen).is_empty());
        assert!(!terminal(&fixture::analysis(), Format::Glance, screen).is_empty());
    }
}

#[test]
fn systems_that_spin_before_sleeping_are_named_so() {
    let mut analysis = quick();
    let said = "among systems that sleep, some after spinning";
    let of = |analysis: &Analysis| {
        let text = terminal(analysis, Format::Table, Screen::default());
        (text.contains("among systems that sleep"), text.contains(said))
    };
    assert_eq!(of(&analysis), (true, true));
    assert!(printed(&analysis).contains("spin, then sleep"), "a group of its own");
    keep(&mut analysis, |cell| cell.params.wait != Wait::Adaptive);
    assert_eq!(of(&analysis), (true, false));
}

#[test]
fn with_equal_numbers_the_sentence_is_about_systems_that_sleep() {
    let mut analysis = quick();
    let (one, other) = ("myelin.shm-block", "myelin.shm-poll");
    keep(&mut analysis, |cell| cell.system == one || cell.system == other);
    let text = printed(&analysis);
    assert!(
        text.contains("Among systems that sleep, only myelin.shm-block was measured."),
        "{text}"
    );
}

#[test]
fn a_lone_system_is_compared_with_other_wait_modes() {
    let mut analysis = quick();
    let kept = ["myelin.shm-block", "myelin.shm-adaptive", "zenoh.shm", "iceoryx.poll"];
    keep(&mut analysis, |cell| kept.contains(&&*cell.system));
    for system in analysis.summary.systems.iter_mut().filter(|it| it.name == "zenoh.shm") {
        system.wait = Wait::Callback;
    }
    let text = printed(&analysis);
    let (_, rest) = text.split_once("only myelin.shm-block was measured.").expect(&text);
    let rest = rest.split_whitespace().collect::<Vec<_>>().join(" ");
    let (sentence, _) = rest.split_once(". ").expect(&text);
    assert!(sentence.contains("systems that wait in another way: zenoh.shm"), "{text}");
    assert!(!sentence.contains("iceoryx.poll"), "who polls has a core of its own: {text}");
}

#[test]
fn a_mark_for_one_placement_says_so() {
    let page = |analysis: &Analysis| {
        let folder = tempfile::tempdir().unwrap();
        write_all(analysis, folder.path()).unwrap();
        std::fs::read_to_string(folder.path().join("report.html")).unwrap()
    };
    let said = "ran on one core: the marks show those across cores.";
    let mut analysis = quick();
    keep(&mut analysis, |cell| ["zenoh.shm", "myelin.shm-block"].contains(&&*cell.system));
    assert!(!page(&analysis).contains(said));
    for cell in analysis.summary.cells.iter_mut().filter(|cell| cell.system == "zenoh.shm") {
        let latency = cell.round_trip_us.expect("a round trip has one");
        let placement = |same_cpu, factor| summary::Placement {
            same_cpu,
            share: 0.5,
            round_trip_us: Some(scaled(latency, factor)),
            one_way_us: None,
        };
        cell.placements = vec![placement(true, 0.5), placement(false, 1.5)];
    }
    assert!(page(&analysis).contains(&format!("Some messages of zenoh.shm {said}")));
}

#[test]
fn each_point_has_a_unique_label_and_omitted_points_are_counted() {
    let mut analysis = quick();
    let (cells, details) = (analysis.summary.cells.clone(), analysis.details.clone());
    (analysis.summary.cells, analysis.details) = Default::default();
    for rate_hz in [30.0, 100.0] {
        for subscribers in [1, 2] {
            let params = |cell: &Cell| {
                let mut cell = cell.clone();
                (cell.params.rate_hz, cell.params.subscribers) = (Some(rate_hz), subscribers);
                cell
            };
            analysis.summary.cells.extend(cells.iter().map(params));
            analysis.details.extend(details.iter().cloned());
        }
    }
    let text = printed(&analysis);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.iter().position(|line| line.contains("CPU µs")).unwrap();
    let heads = lines[last - 2..=last].iter().map(|line| line.split_whitespace().collect());
    let heads: Vec<Vec<&str>> = heads.collect();
    assert_eq!(heads[0][..4], ["64", "B", "64", "KiB"], "{text}");
    assert_eq!(heads[1], ["30", "Hz"].repeat(4), "not 100 Hz, which is not drawn: {text}");
    assert_eq!(heads[2][heads[2].len() - 5..], ["2", "subscribers", "CPU", "µs", "MB"], "{text}");
    assert!(text.contains("4 further points: --verbose"), "{text}");
}

#[test]
fn a_start_up_has_no_cpu_for_each_message() {
    let mut analysis = quick();
    for cell in &mut analysis.summary.cells {
        (cell.workload, cell.first_sample_us) = (Workload::Startup, cell.round_trip_us.take());
    }
    let text = printed(&analysis);
    let row = text.lines().find(|line| line.trim_start().starts_with("myelin.shm-block ")).unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(cells[cells.len() - 2], "–", "{row}");
}

#[test]
fn sentences_claim_only_significant_differences() {
    let mut analysis = quick();
    let text = printed(&analysis).replace("\n  ", " ");
    assert!(text.contains("myelin.shm-block is the fastest of systems that sleep."), "{text}");
    assert!(text.contains("× the floor (os.futex)"), "{text}");
    assert!(text.contains("Shared memory instead of the network stack saves"), "{text}");
    assert!(text.contains("; cyclonedds 50\u{a0}%, 81\u{a0}%;"), "{text}");
    assert!(text.contains("Polling (costs a core): "), "{text}");
    // If noise hides the difference, neither is first.
    for (system, first) in [("myelin.shm-block", 19.0), ("zenoh.shm", 21.0)] {
        for run in runs(&mut analysis, system, "tuned", 64) {
            run.set("p50_us", Some(first + 0.7 * f64::from(run.order % 5)));
        }
    }
    let text = printed(&analysis).replace("\n  ", " ");
    assert!(text.contains("myelin.shm-block and zenoh.shm lead the systems that sleep"), "{text}");
    // A tail that the medians do not show.
    let stalls = cell(&mut analysis, "myelin.dds", "tuned", 64);
    stalls.round_trip_us.as_mut().unwrap().p99 = Some(31_440.0);
    let text = printed(&analysis).replace("\n  ", " ");
    assert!(text.contains("Beware: 1 % of the messages of myelin.dds, 64 B, tuned"), "{text}");
    assert!(text.contains("take 31 ms or more"), "{text}");
}

#[test]
fn a_flood_leads_only_with_a_significant_difference() {
    let mut analysis = quick();
    let rate = |us: f64| 1e6 / us;
    for (cell, detail) in analysis.summary.cells.iter_mut().zip(&mut analysis.details) {
        cell.workload = Workload::Flood;
        cell.taken_per_s = cell.round_trip_us.and_then(|it| it.p50).map(rate);
        for run in &mut detail.runs {
            run.set("taken_per_s", run.get("p50_us").map(rate));
        }
    }
    let text = printed(&analysis).replace("\n  ", " ");
    assert!(
        text.contains("myelin.shm-block has the highest rate of systems that sleep."),
        "{text}"
    );
    for (system, first) in [("myelin.shm-block", 19.0), ("zenoh.shm", 21.0)] {
        for run in runs(&mut analysis, system, "tuned", 64) {
            run.set("taken_per_s", Some(rate(first + 0.7 * f64::from(run.order % 5))));
        }
    }
    let text = printed(&analysis).replace("\n  ", " ");
    assert!(text.contains("myelin.shm-block and zenoh.shm lead the systems that sleep"), "{text}");
}

#[test]
fn invalid_cells_have_no_rank() {
    let mut analysis = quick();
    for tuning in ["default", "tuned"] {
        let cell = cell(&mut analysis, "myelin.shm-block", tuning, 64);
        cell.valid = false;
        cell.invalid_reasons = vec!["run 1: 3 payloads damaged".to_owned()];
    }
    let text = printed(&analysis);
    let row = text.lines().find(|line| line.trim_start().starts_with("myelin.shm-block ")).unwrap();
    assert!(row.contains('–') && !row.contains('●'), "{row}");
    assert!(text.contains("✗ Not all figures can be trusted"), "{text}");
    assert!(text.contains("zenoh.shm is the fastest of systems that sleep"), "{text}");
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest <= 100, "{text}");
}

#[test]
fn many_sizes_are_drawn_as_curves() {
    let analysis = fixture::analysis();
    let text = printed(&analysis);
    assert!(text.contains("p50 against payload, µs: tuned"), "{text}");
    let heads = text.lines().find(|line| line.contains("64 KiB")).unwrap();
    assert!(["0 B", "256 B", "16 KiB"].iter().all(|size| heads.contains(size)), "{heads}");
    let look = "
        const lines = [...document.querySelectorAll('.panel:first-child polyline')].map((line) => line.points.numberOfItems);
        const legend = document.querySelectorAll('.panel:first-child .legend li').length;
        answer(lines.concat(legend).join(' '));";
    let Some(answer) = ask(&write_folded(&analysis), "", 1440, look) else { return };
    // One cell of seven systems is invalid and has no point.
    assert_eq!(answer, "7 7 7 7 7 7 6 7", "points of seven systems, and their names");
}

#[test]
fn sizes_without_valid_cells_are_still_named() {
    let mut analysis = fixture::analysis();
    for cell in &mut analysis.summary.cells {
        cell.valid = false;
        cell.invalid_reasons = vec!["run 1: ended early".to_owned()];
    }
    let text = printed(&analysis);
    assert!(text.contains("✗ Not all figures can be trusted"), "{text}");
    let (_, _, page) = write_folded(&analysis);
    assert!(page.contains("id=\"answer\""), "{page}");
}

#[test]
fn folded_sections_are_drawn_when_opened() {
    let look = "
        const plots = () => document.querySelectorAll('#fold-plots svg[role=img]').length;
        const before = plots();
        document.querySelector('.trust a').click();
        const led = document.getElementById('fold-validity').open;
        document.getElementById('fold-plots').open = true;
        const wait = () => (document.querySelector('#fold-plots [data-waiting]') ? setTimeout(wait, 20) : answer([before, led, plots() > 4].join(' ')));
        setTimeout(wait, 20);";
    let Some(answer) = ask(&write_folded(&quick()), "", 1440, look) else { return };
    assert_eq!(answer, "0 true true");
}
