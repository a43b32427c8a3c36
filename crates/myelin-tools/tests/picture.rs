//! The documentation's picture of `myelin top` shows what it draws today of a recorded robot.
//! `scripts/pictures` draws it again.

use std::fs;
use std::path::Path;

use myelin_tools::top::model::Model;
use myelin_tools::top::screen::{self, Look};
use myelin_tools::top::snapshot::Snapshot;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Cell;
use ratatui::style::{Color, Modifier};

#[test]
fn the_terminal_shows_what_top_draws() {
    let pictures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pictures");
    let recorded = fs::read_to_string(pictures.join("recorded/top.json")).unwrap();
    let snapshot: Snapshot = serde_json::from_str(&recorded).unwrap();
    let mut model = Model::new(Some("rate"));
    model.update(snapshot);
    let mut terminal = Terminal::new(TestBackend::new(COLUMNS, LINES)).unwrap();
    let look = Look { has_colour: true, is_utf8: true };
    terminal.draw(|frame| screen::draw(frame, &mut model, look)).unwrap();
    let rows = terminal.backend().buffer().content().chunks(usize::from(COLUMNS));
    if let Some(folder) = std::env::var_os("MYELIN_KEEP_REPORT") {
        let text: String = rows.clone().map(with_codes).collect();
        fs::write(Path::new(&folder).join("top.ansi"), text).unwrap();
    }
    let drawn: String = rows.map(|row| plain(row).trim_end().to_owned() + "\n").collect();
    let picture = fs::read_to_string(pictures.join("terminal-top.svg")).unwrap_or_default();
    let shown: String = picture.lines().filter_map(text_of).skip(1).collect();
    assert!(
        shown == drawn,
        "a picture of the documentation is out of date: run scripts/pictures\n{shown}\n{drawn}"
    );
}

fn plain(row: &[Cell]) -> String {
    row.iter().map(Cell::symbol).collect()
}

/// A line with the codes that `scripts/pictures` knows. The selected row is bold.
fn with_codes(row: &[Cell]) -> String {
    let end = plain(row).trim_end().chars().count();
    let mut line = String::new();
    let mut before = String::new();
    for cell in &row[..end] {
        let codes = codes(cell);
        if codes != before {
            line += "\x1b[0m";
            line += &codes;
            before = codes;
        }
        line += cell.symbol();
    }
    line + "\x1b[0m\n"
}

fn codes(cell: &Cell) -> String {
    let is = |modifier| cell.modifier.contains(modifier);
    let code =
        |is_so: bool, code: &str| if is_so { format!("\x1b[{code}m") } else { String::new() };
    code(is(Modifier::BOLD) || is(Modifier::REVERSED), "1")
        + &code(is(Modifier::DIM), "2")
        + &code(cell.fg == Color::Red, "31")
        + &code(cell.fg == Color::Yellow, "33")
}

/// The text of a line of a picture; `None` if the line has no text.
fn text_of(line: &str) -> Option<String> {
    let text = line.strip_prefix("<text")?;
    let pieces = text.split('<').filter_map(|piece| Some(piece.split_once('>')?.1));
    let text: String = pieces.collect();
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    Some(text.trim_end().to_owned() + "\n")
}

const COLUMNS: u16 = 80;
const LINES: u16 = 14;
