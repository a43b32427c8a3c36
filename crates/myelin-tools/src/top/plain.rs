//! The tables as text, for a pipe or a terminal that can only print.

use super::details::ToneLine;
use super::snapshot::{NodeRow, Snapshot, TopicRow};
use super::table::{self, Row, Table};
use super::text;

/// Topics and nodes, sorted by the column of this name. Lines have at most `width` columns, if there
/// is a limit; otherwise names are complete.
pub fn text(snapshot: &Snapshot, sort: Option<&str>, width: Option<usize>) -> String {
    let mut out = String::new();
    add::<TopicRow>(&mut out, &snapshot.topics, sort, width);
    let problems = snapshot.topics.iter().filter_map(problem);
    for (line, _) in problems {
        out += &format!("! {line}\n");
    }
    out.push('\n');
    add::<NodeRow>(&mut out, &snapshot.nodes, sort, width);
    out
}

fn add<R: Row>(out: &mut String, rows: &[R], sort: Option<&str>, width: Option<usize>) {
    let mut table = Table::<R>::new(sort);
    table.arrange(rows, "");
    let longest = rows.iter().map(|it| text::width(it.name())).max().unwrap_or(0);
    let layout = match width {
        Some(width) => table::layout::<R>(width),
        None => table::layout::<R>(table::width::<R>(longest)),
    };
    let mut line = |line: String| {
        *out += line.trim_end();
        out.push('\n');
    };
    line(table::line(&layout, |column| column.title.to_owned()));
    for row in table.rows(rows) {
        line(table::line(&layout, |column| (column.cell)(row)));
    }
}

/// A refusal or a loss.
fn problem(topic: &TopicRow) -> Option<ToneLine> {
    let is_wrong = topic.refused > 0 || topic.lost > 0;
    let (about, tone) = super::model::about_topic(topic);
    is_wrong.then(|| (format!("{}: {about}", topic.name), tone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_or_names_are_complete() {
        let name = "a/topic/with/quite/a/long/name/of/more/than/forty/characters";
        let topic = TopicRow { name: name.to_owned(), rate_hz: Some(30.0), ..Default::default() };
        let snapshot = Snapshot { topics: vec![topic], ..Default::default() };
        for width in [40, 80] {
            let text = text(&snapshot, None, Some(width));
            assert!(text.lines().all(|line| line.len() <= width), "{text}");
            assert!(text.contains("a/topic/with/quite~ ") || width > 40, "{text}");
        }
        let whole = text(&snapshot, None, None);
        assert!(whole.contains(&format!("{name} ")) && whole.contains("30"), "{whole}");
    }
}
