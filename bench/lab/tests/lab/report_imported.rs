//! The page of an application's own trace: what is not known is a dash, and the rest is drawn.

use std::fmt::Write as _;
use std::fs;

use myelin_bench_lab::import::{ImportOptions, import};

use crate::page::browser::{dump_of, write};

#[test]
fn a_page_without_cpu_memory_and_sizes_is_drawn() {
    let place = tempfile::tempdir().unwrap();
    let mut text = "sent_us,received_us\n".to_owned();
    for message in 0..3000u64 {
        writeln!(text, "{},{}", message * 1000, message * 1000 + 100 + message * 37 % 101).unwrap();
    }
    let file = place.path().join("app.csv");
    fs::write(&file, text).unwrap();
    let out = Some(place.path().join("out"));
    let options = ImportOptions { files: vec![file], out, ..ImportOptions::default() };
    let (_, analysis) = import(&options).unwrap();
    let page = write(&analysis);
    let costs = "<span class=\"number\" role=\"cell\">–</span><span class=\"number\" role=\"cell\">–</span>";
    assert!(page.2.contains(costs), "CPU and memory of the first screen");
    for part in ["id=\"fold-advice\"", "id=\"fold-published\"", ">simulated<"] {
        assert!(!page.2.contains(part), "{part}");
    }
    let Some(dom) = dump_of(&page, "") else { return };
    assert!(dom.contains("data-errors=\"0\""));
    assert!(dom.contains("aria-label=\"Latency over time of app, size not recorded, default"));
    assert!(dom.contains("Heat map of app") && dom.contains("not observed over time"));
}
