//! Reads tables from reports.

/// The rows of the table after this caption in `report.md`: the texts between the bars.
pub fn markdown_rows(text: &str, caption: &str) -> Vec<Vec<String>> {
    let (_, rest) = text.split_once(caption).unwrap_or_else(|| panic!("no {caption:?} in\n{text}"));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|'));
    let lines = lines.take_while(|line| line.starts_with('|')).skip(2);
    let cells = |line: &str| {
        let inner = line.trim_start_matches("| ").trim_end_matches(" |");
        inner.split(" | ").map(|cell| cell.replace("\\_", "_")).collect()
    };
    lines.map(cells).collect()
}

/// Like [`markdown_rows`], from the page; a published figure ends in an arrow there, too.
pub fn page_rows(text: &str, caption: &str) -> Vec<Vec<String>> {
    let (_, section) = text.split_once("<section id=\"published\">").unwrap();
    let caption = caption.replace('\'', "&#x27;");
    let (_, rest) = section.split_once(&caption).unwrap_or_else(|| panic!("no {caption:?}"));
    let body = rest.split_once("<tbody>").unwrap().1.split_once("</tbody>").unwrap().0;
    let cell = |piece: &str| {
        let (tag, inner) = piece.split_once('>').unwrap();
        let mut text = String::new();
        for (place, part) in inner.split('<').enumerate() {
            text += if place == 0 { part } else { part.split_once('>').unwrap().1 };
        }
        let arrow = if tag.contains("theirs") { " → " } else { "" };
        text.trim().replace("&#x27;", "'") + arrow
    };
    let cells = |row: &str| {
        let cells = row.split("<t").skip(1).filter(|piece| piece.starts_with(['d', 'h']));
        cells.map(cell).collect()
    };
    body.split("<tr>").skip(1).map(cells).collect()
}
