//! The documentation's pictures of the terminal and of the page show what the program prints today
//! from recorded results. `scripts/pictures` draws them again.
//!
//! `MYELIN_KEEP_REPORT=FOLDER` leaves the page and the texts in that folder, for `scripts/pictures`.

use std::path::{Path, PathBuf};
use std::{env, fs};

use myelin_bench_lab::report::{Format, Screen, terminal, write_all};
use myelin_bench_lab::summary::Analysis;

/// The results that `scripts/pictures record` took from a results folder.
fn recorded() -> Analysis {
    let unpacked = |name: &str| {
        let file = fs::File::open(pictures().join("recorded").join(name)).unwrap();
        zstd::decode_all(file).unwrap()
    };
    Analysis {
        summary: serde_json::from_slice(&unpacked("summary.json.zst")).unwrap(),
        details: serde_json::from_slice(&unpacked("details.json.zst")).unwrap(),
    }
}

fn pictures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures")
}

fn keep(name: &str, text: &str) {
    if let Some(folder) = env::var_os("MYELIN_KEEP_REPORT") {
        fs::write(Path::new(&folder).join(name), text).unwrap();
    }
}

#[test]
fn the_terminal_shows_what_is_printed() {
    let printed =
        |colour| terminal(&recorded(), Format::Glance, Screen { colour, ..Screen::default() });
    keep("quick.ansi", &printed(true));
    let picture = fs::read_to_string(pictures().join("terminal-quick.svg")).unwrap();
    let shown: String = picture
        .lines()
        .filter(|line| line.starts_with("<text"))
        .map(|line| plain(line, "").trim_end().to_owned() + "\n")
        .collect();
    let (command, shown) = shown.split_once('\n').unwrap();
    assert_eq!(command, "$ myelin bench run quick");
    assert_same(shown, &printed(false));
}

#[test]
fn the_page_shows_what_is_written() {
    let folder = tempfile::tempdir().unwrap();
    write_all(&recorded(), folder.path()).unwrap();
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    keep("report.html", &page);
    let (_, first) = page.split_once("<main>").unwrap();
    let (first, _) = first.split_once("</section>").unwrap();
    let text: String = plain(first, "\n")
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .map(|line| line + "\n")
        .collect();
    keep("report.txt", &text);
    for name in ["report.png", "report-narrow.png"] {
        assert_same(&shown(&fs::read(pictures().join(name)).unwrap()), &text);
    }
}

/// The text in a picture: `scripts/pictures` writes it into a chunk of the PNG file, as UTF-8
/// without compression.
fn shown(png: &[u8]) -> String {
    let mut rest = &png[8..];
    while let [a, b, c, d, chunk @ ..] = rest {
        let (data, after) = chunk[4..].split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        if let Some(text) = data.strip_prefix(b"Description\0\0\0\0\0") {
            return String::from_utf8(text.to_vec()).unwrap();
        }
        rest = &after[4..];
    }
    panic!("the picture has no text");
}

/// The text of HTML or SVG, with something in place of each tag.
fn plain(source: &str, of_tag: &str) -> String {
    let mut pieces = source.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    let text = pieces.fold(first, |text, piece| {
        let (_, after) = piece.split_once('>').expect("a tag has an end");
        text + of_tag + after
    });
    [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#x27;", "'"),
        ("&#x2f;", "/"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(text, |text, (escaped, sign)| text.replace(escaped, sign))
}

fn assert_same(shown: &str, today: &str) {
    let differs = shown.lines().zip(today.lines()).find(|(shown, today)| shown != today);
    assert!(
        shown == today,
        "a picture of the documentation is out of date: run scripts/pictures\n{differs:#?}"
    );
}
