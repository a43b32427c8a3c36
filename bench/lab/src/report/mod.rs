//! Everything that people see of a results folder.
//!
//! A [`Report`] writes the files `report.html`, `report.md`, `summary.csv`, `summary.json`,
//! `figures.parquet`, `details.json.zst` and `hgrm/*.hgrm`, and a text for a terminal. All of them show the same
//! tables, verdicts and doubts: `view` sorts the cells, and `family` compares them. `verdicts`,
//! `validity` and `table` put that into words as parts of a `document`, and one module for each
//! format prints it.

mod advice;
mod cells;
pub(crate) mod document;
pub(crate) mod entry;
mod family;
mod flow;
pub(crate) mod format;
mod glance;
mod hgrm;
pub(crate) mod html;
mod load;
pub(crate) mod metrics;
mod packed;
pub(crate) mod palette;
pub(crate) mod parameter;
pub(crate) mod plots;
pub mod published;
mod rows;
mod scorecard;
mod sweep;
mod table;
pub(crate) mod terminal;
mod timeline;
mod validity;
mod verdicts;
mod view;

use std::cell::OnceCell;
use std::fs;
use std::io;
use std::path::Path;

use anyhow::Result;
use minijinja::context;
pub use terminal::Screen;

use crate::advise::Budget;
use crate::figures;
use crate::record::{make_whole, write_whole};
use crate::score::Weights;
use crate::summary::Analysis;
use document::Section;
use view::View;

/// A format of figures on a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// One screen: a picture of each scenario, its result in words, and whether it is valid.
    #[default]
    Glance,
    /// Tables of sizes by system and tuning, verdicts and doubts; whole round trips.
    Table,
    /// The format of CycloneDDS's RoundtripPing; half round trips.
    Roundtrip,
    /// The format of ddsperf of CycloneDDS 0.10.2; half round trips.
    Ddsperf,
}

/// The reader's priorities and limits.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Weights of the scorecard's criteria.
    pub weights: Weights,
    /// Limits for the advised configurations.
    pub budget: Budget,
}

/// The report of an analysis: its cells are sorted and compared once, for all formats.
pub struct Report<'a> {
    view: View<'a>,
    scorecard: OnceCell<Section>,
    advice: OnceCell<Section>,
}

impl<'a> Report<'a> {
    /// A report with a reader's options.
    pub fn new(analysis: &'a Analysis, options: &Options) -> Self {
        let view = View::new(analysis, *options);
        Report { view, scorecard: OnceCell::new(), advice: OnceCell::new() }
    }

    /// Scorecard and advice, which all formats but the first screen have.
    fn extras(&self) -> [&Section; 2] {
        [
            self.scorecard.get_or_init(|| scorecard::section(&self.view)),
            self.advice.get_or_init(|| advice::section(&self.view)),
        ]
    }

    /// Writes every report file into the folder, each atomically. The files to use the advised
    /// configurations go into its folder `advice`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        let Report { view, .. } = self;
        let json = serde_json::to_string_pretty(&view.analysis.summary)
            .expect("a summary has text keys and finite numbers")
            + "\n";
        let details = serde_json::to_vec(&view.analysis.details)
            .expect("details have text keys and finite numbers");
        let details =
            zstd::encode_all(details.as_slice(), 0).expect("writing to memory does not fail");
        let reports = [
            ("summary.json", json.into_bytes()),
            ("details.json.zst", details),
            ("summary.csv", metrics::csv(&view.analysis.summary).into_bytes()),
            ("topics.csv", metrics::topics_csv(&view.analysis.summary).into_bytes()),
            ("report.md", html::markdown(view, self.extras()).into_bytes()),
            ("report.html", html::render(view, self.extras()).into_bytes()),
        ];
        for (name, bytes) in reports {
            // Only replays have topics.
            if name == "topics.csv" && bytes.is_empty() {
                continue;
            }
            write(&directory.join(name), &bytes)?;
        }
        let table = directory.join("figures.parquet");
        let made = make_whole(&table, |file| {
            figures::write(view.analysis, directory, file).map_err(io::Error::other)
        });
        written(&table, made)?;
        let histograms = directory.join("hgrm");
        written(&histograms, fs::create_dir_all(&histograms))?;
        for (name, text) in hgrm::files(view.analysis) {
            write(&histograms.join(name), text.as_bytes())?;
        }
        advice::write(view, &directory.join("advice"))
    }

    /// The figures as text for a terminal.
    pub fn terminal(&self, format: Format, screen: Screen) -> String {
        let Report { view, .. } = self;
        match format {
            Format::Glance => {
                let tables = at_a_glance(view);
                let tables = tables.iter().map(|it| format!("\n{}", terminal::print(it, screen)));
                glance::render(&glance::Glance::new(view), screen) + &tables.collect::<String>()
            }
            Format::Table => terminal::render(view, self.extras(), screen),
            Format::Roundtrip => blocks(view, include_str!("assets/roundtrip.txt.jinja")),
            Format::Ddsperf => blocks(view, include_str!("assets/ddsperf.txt.jinja")),
        }
    }
}

/// The tables of the first screen: by topic of a recording, and beside loads.
fn at_a_glance(view: &View) -> Vec<document::Table> {
    flow::topics(view).into_iter().chain(load::tables(view)).collect()
}

/// Writes a file of a report atomically; if that fails, its former version stays.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    written(path, write_whole(path, bytes))
}

/// Adds a remedy to an error of writing `path`.
fn written(path: &Path, done: io::Result<()>) -> Result<()> {
    let (path, remedy) = (path.display(), "make sure the folder exists and has room");
    done.map_err(|error| anyhow::anyhow!("cannot write {path}: {error}; {remedy}"))
}

/// A block for each cell with round trips, in the format of another tool.
fn blocks(view: &View, template: &str) -> String {
    let entries = view.entries().filter(|entry| entry.cell.round_trip_us.is_some());
    let blocks = entries.map(|entry| {
        let (cell, seconds) = (entry.cell, &entry.detail.seconds);
        context! { circumstances => entry.circumstances(), cell, seconds }
    });
    html::rendered("blocks", template, context! { blocks => blocks.collect::<Vec<_>>() })
}

/// [`Report::write`] with default options.
pub fn write_all(analysis: &Analysis, directory: &Path) -> Result<()> {
    Report::new(analysis, &Options::default()).write(directory)
}

/// [`Report::terminal`] with default options.
pub fn terminal(analysis: &Analysis, format: Format, screen: Screen) -> String {
    Report::new(analysis, &Options::default()).terminal(format, screen)
}
