//! The advice of a report: its choice, its budget, and the files it writes.

use std::path::Path;

use myelin_bench_kit::protocol::{Reliability, Transport, Wait};
use myelin_bench_lab::advise::Budget;
use myelin_bench_lab::report::{Options, Report};
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary;

use crate::page::fixture;
use summary::{Analysis, Cell, Detail};

fn write(analysis: &Analysis, folder: &Path, budget: Budget) -> String {
    Report::new(analysis, &Options { budget, ..Options::default() }).write(folder).unwrap();
    std::fs::read_to_string(folder.join("report.md")).unwrap()
}

fn report(analysis: &Analysis, budget: Budget) -> String {
    write(analysis, tempfile::tempdir().unwrap().path(), budget)
}

/// The cells of a row below a heading, without markup; the first is the label.
fn row(text: &str, heading: &str, label: &str) -> Vec<String> {
    let (_, part) = text.split_once(&format!("### {heading}")).unwrap_or_else(|| panic!("{text}"));
    let part = &part[..part.find("\n#").unwrap_or(part.len())];
    let line = part.lines().find(|line| line.starts_with(&format!("| {label} |")));
    let line = line.unwrap_or_else(|| panic!("no {label} in {part}"));
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

/// Files and their texts in a folder of advice.
fn files(folder: &Path) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(folder.join("advice")).unwrap().map(Result::unwrap);
    let mut files: Vec<(String, String)> = entries
        .map(|entry| {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            (entry.file_name().to_string_lossy().into_owned(), text)
        })
        .collect();
    files.sort();
    files
}

fn text_of<'f>(files: &'f [(String, String)], name: &str) -> &'f str {
    let found = files.iter().find(|(file, _)| file == name);
    &found.unwrap_or_else(|| panic!("no {name} in {files:?}")).1
}

fn edit(analysis: &mut Analysis, accepts: impl Fn(&Cell) -> bool, change: impl Fn(&mut Cell)) {
    analysis.summary.cells.iter_mut().filter(|cell| accepts(cell)).for_each(change);
}

const SIZES: &str = "Best configuration: roundtrip-sizes, two processes";
const ALL: Budget = Budget { cpu_percent: None, memory_bytes: None };

#[test]
fn the_best_has_the_significantly_lowest_latency_within_the_budget() {
    let mut analysis = fixture::analysis();
    // Fast, but it uses more CPU.
    edit(
        &mut analysis,
        |cell| cell.system == "cyclonedds.iceoryx-loan",
        |cell| (cell.cpu_percent, cell.pss_bytes) = (Some(199.0), Some(90 << 20)),
    );
    let any = row(&report(&analysis, ALL), SIZES, "64 KiB, back to back");
    assert!(any[1].starts_with("cyclonedds.iceoryx-loan tuned; by p99"), "{any:?}");
    assert_eq!(any[6], "", "it was told from all: {any:?}");
    for budget in [
        Budget { cpu_percent: Some(100.0), memory_bytes: None },
        Budget { cpu_percent: None, memory_bytes: Some(50 << 20) },
    ] {
        let text = report(&analysis, budget);
        let best = row(&text, SIZES, "64 KiB, back to back");
        assert!(best[1].starts_with("cyclonedds.iceoryx tuned"), "{best:?}");
        assert!(text.contains("Budget: "), "{text}");
    }
    let none = Budget { cpu_percent: Some(1.0), memory_bytes: None };
    let best = row(&report(&analysis, none), SIZES, "64 KiB, back to back");
    assert_eq!(best[1], "none within the budget");
}

#[test]
fn lossy_systems_are_excluded_and_few_runs_decide_nothing() {
    let mut analysis = fixture::analysis();
    let loans = |cell: &Cell| cell.system == "cyclonedds.iceoryx-loan";
    edit(
        &mut analysis,
        |cell| loans(cell) && cell.params.payload_bytes == 65536,
        |cell| {
            cell.lost = Some(1);
        },
    );
    let text = report(&analysis, ALL);
    let best = row(&text, SIZES, "64 KiB, back to back");
    assert!(best[1].starts_with("cyclonedds.iceoryx tuned"), "{best:?}");
    assert!(row(&text, SIZES, "16 KiB, back to back")[1].starts_with("cyclonedds.iceoryx-loan"));

    let sanity = "Best configuration: sanity, two processes";
    let best = row(&text, sanity, "12 B, 1 Hz");
    assert!(best[1].contains("lowest p50, tied"), "{best:?}");
    assert!(
        best[6].contains("cyclonedds.udp default"),
        "said whom it cannot be told from: {best:?}"
    );
    assert!(text.contains("cells with fewer than 5 have no interval"), "{text}");
}

#[test]
fn the_crossover_size_counts_only_significant_differences() {
    let mut analysis = fixture::analysis();
    // 64 µs more, but less for each byte: faster from where the lines cross.
    for (cell, detail) in analysis.summary.cells.iter().zip(&mut analysis.details) {
        if cell.system == "cyclonedds.iceoryx-loan" && cell.tuning == Tuning::Tuned {
            for run in &mut detail.runs {
                run.set("p50_us", run.get("p50_us").map(|us| us + 64.0));
            }
        }
    }
    let text = report(&analysis, ALL);
    let heading =
        "Where shared memory begins to pay: roundtrip-sizes · two processes · back to back";
    let late = row(&text, heading, "cyclonedds: iceoryx-loan over udp");
    // 48.2 + 1.25 x = 88.1 + 0.012 x, with x in KiB, gives 32, which is between the two largest
    // sizes.
    assert_eq!(late[2], "from 64 KiB; slower up to 16 KiB", "{late:?}");
    let early = row(&text, heading, "cyclonedds: iceoryx over udp");
    assert_eq!(early[2], "at all sizes", "{early:?}");
}

#[test]
fn the_gain_of_tuning_has_an_interval_and_a_verdict() {
    let text = report(&fixture::analysis(), ALL);
    let heading = "What tuning gains: roundtrip-sizes · two processes · back to back";
    let gain = row(&text, heading, "cyclonedds.iceoryx-loan, 0 B");
    // 77.2 µs over 24.1 µs.
    let factor: f64 = gain[1].trim_matches('*').split('×').next().unwrap().parse().unwrap();
    assert!((factor - 77.2 / 24.1).abs() < 0.05, "{gain:?}");
    assert!(gain[1].starts_with("**") && gain[1].contains("; ["), "significant: {gain:?}");
}

const CYCLONEDDS: &str = r#"<?xml version="1.0" encoding="utf-8"?>
<CycloneDDS xmlns="https://cdds.io/config">
  <Domain Id="142">
    <Internal>
      <!-- A run is short. -->
      <WriterLingerDuration>0 s</WriterLingerDuration>
      <SocketReceiveBufferSize max="212992B"/>
    </Internal>
  </Domain>
</CycloneDDS>
"#;

const FASTDDS: &str = "<dds><receiveBufferSize>212992</receiveBufferSize>\
    <initialAnnouncements><count>20</count></initialAnnouncements></dds>";

/// Systems with each kind of configuration file, at two sizes.
fn with_configuration() -> Analysis {
    let mut analysis = fixture::analysis();
    let Analysis { summary, details } = &mut analysis;
    let rename = |name: &mut String| {
        *name = match name.as_str() {
            "cyclonedds.iceoryx" => "iceoryx.waitset".to_owned(),
            "cyclonedds.iceoryx-loan" => "myelin.shm-block".to_owned(),
            other => other.to_owned(),
        };
    };
    summary.systems.iter_mut().for_each(|system| rename(&mut system.name));
    let mut more: Vec<(Cell, Detail)> = Vec::new();
    for (cell, detail) in summary.cells.iter_mut().zip(details.iter_mut()) {
        rename(&mut cell.system);
        detail.configuration.clear();
        let payload = cell.params.payload_bytes;
        let pools = |size: u64, count: u32| {
            format!("[[segment]]\n[[segment.mempool]]\nsize = {size}\ncount = {count}\n")
        };
        match cell.system.as_str() {
            "iceoryx.waitset" => {
                detail.configuration.insert("roudi.toml".into(), pools(payload + 8, 13));
            }
            "cyclonedds.udp" => {
                detail.configuration.insert("cyclonedds.xml".into(), CYCLONEDDS.into());
                for (name, file, text) in [
                    ("fastdds.udp", "fastdds.xml", FASTDDS.to_owned()),
                    ("cyclone2.iceoryx", "roudi.toml", pools(payload + 72, 19)),
                ] {
                    let mut twin = (cell.clone(), detail.clone());
                    twin.0.system = name.to_owned();
                    twin.1.configuration = [(file.to_owned(), text)].into();
                    more.push(twin);
                }
            }
            _ => {}
        }
    }
    let info = |name: &str| {
        let udp = summary.systems.iter().find(|it| it.name == "cyclonedds.udp").unwrap();
        summary::SystemInfo { name: name.to_owned(), ..udp.clone() }
    };
    let fastdds = info("fastdds.udp");
    let below =
        summary::SystemInfo { transport: Transport::SharedMemory, ..info("cyclone2.iceoryx") };
    summary.systems.extend([fastdds, below]);
    for (cell, detail) in more {
        summary.cells.push(cell);
        details.push(detail);
    }
    analysis
}

#[test]
fn advice_files_are_the_measured_settings_ready_for_use() {
    let folder = tempfile::tempdir().unwrap();
    let text = write(&with_configuration(), folder.path(), ALL);
    let files = files(folder.path());
    for (name, file) in &files {
        assert!(file.contains("Written by `myelin bench report`"), "{name}");
        assert!(text.contains(&format!("- advice/{name}: ")), "{name} is in the report");
    }
    let xml = text_of(&files, "cyclonedds.udp.xml");
    assert!(xml.contains("<Domain Id=\"any\">"), "{xml}");
    assert!(xml.starts_with("<?xml ") && !xml.contains("<WriterLingerDuration>"), "{xml}");
    let measured = CYCLONEDDS.split_once("<SocketReceiveBufferSize").unwrap().1;
    assert!(xml.ends_with(measured), "{xml}");
    let xml = text_of(&files, "fastdds.udp.xml");
    assert!(xml.ends_with(FASTDDS) && xml.contains("FASTRTPS_DEFAULT_PROFILES_FILE="), "{xml}");
    let sysctl = text_of(&files, "60-myelin-advice.conf");
    assert!(sysctl.contains("\nnet.core.rmem_max = 1048576\n"), "{sysctl}");
    assert!(sysctl.contains("rmem_max was 212992 when measured"), "{sysctl}");
}

#[test]
fn pools_of_each_system_are_those_of_its_largest_payload() {
    let folder = tempfile::tempdir().unwrap();
    write(&with_configuration(), folder.path(), ALL);
    let files = files(folder.path());
    for (name, size, count) in
        [("iceoryx.waitset.roudi.toml", 65544, 13), ("cyclone2.iceoryx.roudi.toml", 65608, 19)]
    {
        let pools: toml::Table = text_of(&files, name).parse().unwrap();
        let pools = pools["segment"][0]["mempool"].as_array().unwrap();
        let found: Vec<_> = pools.iter().map(|pool| (&pool["size"], &pool["count"])).collect();
        assert_eq!(found, [(&size.into(), &count.into())], "{name}");
    }
}

#[test]
fn drop_ins_have_the_directives_of_the_tuning() {
    let folder = tempfile::tempdir().unwrap();
    write(&with_configuration(), folder.path(), ALL);
    let files = files(folder.path());
    for (role, cpu) in [("publisher", "1"), ("subscriber", "0")] {
        let text = text_of(&files, &format!("realtime-{role}.conf"));
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let (section, directives): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with('['));
        assert_eq!(section, ["[Service]"]);
        let directives: Vec<(&str, &str)> =
            directives.iter().map(|line| line.split_once('=').unwrap()).collect();
        assert_eq!(
            directives,
            [
                ("CPUAffinity", cpu),
                ("CPUSchedulingPolicy", "fifo"),
                ("CPUSchedulingPriority", "80"),
                ("LimitRTPRIO", "80"),
                ("LimitMEMLOCK", "infinity"),
                ("TimerSlackNSec", "1"),
            ]
        );
    }
}

#[test]
fn a_polling_process_gets_no_realtime_advice() {
    let mut analysis = fixture::analysis();
    edit(&mut analysis, |_| true, |cell| cell.params.wait = Wait::Poll);
    let folder = tempfile::tempdir().unwrap();
    write(&analysis, folder.path(), ALL);
    let files = files(folder.path());
    let text = text_of(&files, "realtime-subscriber.conf");
    assert!(!text.contains("\nCPUSchedulingPolicy"), "{text}");
    assert!(text.contains("# No CPUSchedulingPolicy=fifo: the kernel stops"), "{text}");
}

#[test]
fn awake_advice_is_a_service_or_the_latency_guard_of_myelin() {
    let mut analysis = with_configuration();
    edit(
        &mut analysis,
        |cell| cell.tuning == Tuning::Tuned,
        |cell| {
            cell.tuning = Tuning::Awake;
            cell.params.depth = Some(4);
            cell.params.reliability = Some(Reliability::Reliable);
        },
    );
    let folder = tempfile::tempdir().unwrap();
    write(&analysis, folder.path(), ALL);
    let files = files(folder.path());
    assert!(text_of(&files, "cpu-awake.service").contains("/dev/cpu_dma_latency"));
    let lines = text_of(&files, "myelin.rs");
    for wanted in
        ["latency_guard(true)", "Wait::Block", ".depth(4).reliable(Duration::from_secs(1))"]
    {
        assert!(lines.contains(wanted), "{wanted} in {lines}");
    }
}

#[test]
fn old_advice_files_are_removed_and_user_files_kept() {
    let folder = tempfile::tempdir().unwrap();
    write(&with_configuration(), folder.path(), ALL);
    let own = folder.path().join("advice/mine.xml");
    std::fs::write(&own, "<mine/>").unwrap();
    assert!(files(folder.path()).len() > 5);
    write(&with_configuration(), folder.path(), Budget { cpu_percent: Some(1.0), ..ALL });
    let left = files(folder.path());
    assert_eq!(left, [("mine.xml".to_owned(), "<mine/>".to_owned())]);
}
