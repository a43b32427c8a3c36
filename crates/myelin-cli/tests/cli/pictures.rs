//! The documentation's picture of `myelin doctor` shows what it prints today about a recorded host.
//! `scripts/pictures` draws it again.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

#[test]
fn the_terminal_shows_what_the_doctor_prints() {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let host = fs::read(pictures.join("recorded/host.json")).unwrap();
    let host: Value = serde_json::from_slice(&host).unwrap();
    let root = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = root.path().join(name.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for (name, text) in host["files"].as_object().unwrap() {
        write(name, &format!("{}\n", text.as_str().unwrap()));
    }
    write("measured.json", &host["measured"].to_string());
    write("dev/cpu_dma_latency", "");
    let sockets = root.path().join("dev/shm");
    fs::create_dir(&sockets).unwrap();
    let mut doctor = Command::new(env!("CARGO_BIN_EXE_myelin"));
    doctor.args(["doctor", "--root"]).arg(root.path()).arg("--runtime-dir").arg(sockets);
    let printed = String::from_utf8(doctor.output().unwrap().stdout).unwrap();

    let picture = fs::read_to_string(pictures.join("terminal-doctor.svg")).unwrap();
    let shown: String = picture.lines().filter_map(text_of).collect();
    let printed = format!("$ myelin doctor\n{printed}");
    // A terminal breaks a long line anywhere, so line ends do not count.
    let words = |text: &str| text.lines().filter(|line| !is_of_this_host(line)).collect::<String>();
    let (shown, printed) = (words(&shown), words(&printed));
    let same = shown.chars().zip(printed.chars()).take_while(|(shown, printed)| shown == printed);
    let at = same.count();
    let around = |text: &str| text.chars().skip(at.saturating_sub(30)).take(90).collect::<String>();
    assert!(
        shown == printed,
        "a picture of the documentation is out of date: run scripts/pictures\n{}\n{}",
        around(&shown),
        around(&printed)
    );
}

/// The room in `/dev/shm` is that of the file system with the test's folder.
fn is_of_this_host(line: &str) -> bool {
    line.contains(" shared_memory ")
}

/// The text of a line of a picture; `None` if the line has no text.
fn text_of(line: &str) -> Option<String> {
    let text = line.strip_prefix("<text")?;
    let pieces = text.split('<').filter_map(|piece| Some(piece.split_once('>')?.1));
    let text: String = pieces.collect();
    Some(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&") + "\n")
}
