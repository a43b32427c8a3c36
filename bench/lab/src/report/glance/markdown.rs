//! The glance as Markdown.

use super::Glance;
use super::picture::{Drawing, Picture, Ranking};
use crate::report::format;
use crate::report::markdown::{escape, grid};

/// The title, whether to believe it, what to make of it, and the ranked figures.
pub(in crate::report) fn markdown(glance: &Glance) -> String {
    let trust = &glance.trust;
    let mut text = format!(
        "# {}\n\n{}\n\n**{}:** {}\n\n",
        escape(&glance.title),
        escape(&glance.circumstances),
        trust.verdict,
        escape(&trust.finding)
    );
    for sentence in &glance.sentences {
        text += &format!("- **{}** {}\n", escape(&sentence.lead), escape(&sentence.rest));
    }
    text += "\n";
    for picture in &glance.pictures {
        if let Drawing::Ranking(ranking) = &picture.drawing {
            text += &ranked(picture, ranking);
        }
    }
    for doubt in &trust.to_know {
        text += &format!("- To know: {}\n", escape(doubt));
    }
    text + "\n"
}

fn ranked(picture: &Picture, ranking: &Ranking) -> String {
    let quantity = picture.quantity;
    let mut heads = vec![picture.scenario.to_owned(), "system".to_owned()];
    for panel in &ranking.panels {
        heads.extend([quantity.low, quantity.high].map(|end| format!("{panel}, {end}")));
    }
    heads.extend(["CPU µs a message", "MB"].map(str::to_owned));
    let withheld = || [format::WITHHELD; 2].map(str::to_owned);
    let rows = ranking.sections.iter().flat_map(|section| {
        section.rows.iter().map(|row| {
            let mut cells = vec![section.title.clone(), row.system.name.to_owned()];
            let marks = (0..ranking.panels.len()).map(|panel| row.mark(panel));
            cells.extend(marks.flat_map(|it| it.map_or_else(withheld, |it| it.figures.clone())));
            let cost = row.mark(0).map(|mark| [mark.cpu.clone(), mark.memory.clone()]);
            cells.extend(cost.unwrap_or_default());
            cells
        })
    });
    grid(&heads.iter().map(String::as_str).collect::<Vec<_>>(), rows)
}
