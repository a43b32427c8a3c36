//! Writes a page and opens it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use myelin_bench_lab::report::write_all;
use tempfile::TempDir;

use myelin_bench_lab::summary::Analysis;

/// The page's folder, its path, and its text.
pub type Page = (TempDir, PathBuf, String);

/// Writes the page of an analysis, with all parts unfolded.
pub fn write(analysis: &Analysis) -> Page {
    let (directory, path, source) = write_folded(analysis);
    let source = source.replace("<details class=\"fold\"", "<details open class=\"fold\"");
    std::fs::write(&path, &source).unwrap();
    (directory, path, source)
}

/// Writes the page of an analysis as a reader first sees it.
pub fn write_folded(analysis: &Analysis) -> Page {
    let directory = tempfile::tempdir().unwrap();
    write_all(analysis, directory.path()).unwrap();
    let path = directory.path().join("report.html");
    let source = std::fs::read_to_string(&path).unwrap();
    (directory, path, source)
}

/// The document after its scripts have run; `None`, with a message, if there is no browser.
pub fn dump_of(page: &Page, hash: &str) -> Option<String> {
    dump_at(page, hash, 1400)
}

/// Like [`dump_of`], in a window of this width in pixels.
pub fn dump_at(page: &Page, hash: &str, width: u32) -> Option<String> {
    open(&page.1, hash, width)
}

/// Like [`dump_at`], for any file.
pub fn open(path: &Path, hash: &str, width: u32) -> Option<String> {
    if !is_to_open() {
        return None;
    }
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(exists)
    else {
        eprintln!("SKIPPED: no Chromium here, so the page was not opened; apt install chromium");
        return None;
    };
    let profile = tempfile::tempdir().unwrap();
    let output = profile.path().join("dom.html");
    let mut child = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update"])
        .args(["--disable-sync", "--virtual-time-budget=10000"])
        .arg(format!("--window-size={width},1200"))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{hash}", path.display()))
        .stdin(Stdio::null())
        .stdout(File::create(&output).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let watchdog = Instant::now() + Duration::from_secs(120);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > watchdog {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not come to an end");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let dom = std::fs::read_to_string(&output).unwrap();
    assert!(dom.contains("data-drawn=\"yes\""), "the script did not come to its end");
    Some(dom)
}

/// `make test` opens only one page, to see that it works; the long tests open all of them.
fn is_to_open() -> bool {
    let is_short = std::env::var_os("MYELIN_TESTS").is_some_and(|part| part == "short");
    !is_short || std::thread::current().name() == Some(SMOKE)
}

fn exists(browser: &&str) -> bool {
    let mut version = Command::new(browser);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

/// The test that always opens a page; a test's thread has the name of the test.
const SMOKE: &str = "report_page::scripts_run_without_error";
