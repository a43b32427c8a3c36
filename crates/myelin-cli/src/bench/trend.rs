//! `myelin bench report` of several folders: the trend of each figure.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::record::write_whole;
use myelin_bench_lab::trend;

use crate::complete;

/// Arguments of a trend.
#[derive(Args)]
pub struct TrendOptions {
    /// Several folders: the first one after a change. By default the last commit, or the last
    /// versions of the systems, are the change.
    #[arg(long, value_name = "FOLDER", add = complete::results())]
    since: Option<PathBuf>,
    /// Several folders: write the trend as one page that works offline.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Several folders: print Markdown.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Several folders: print one JSON object and nothing else.
    #[arg(long)]
    json: bool,
}

impl TrendOptions {
    /// Refuses options that a report of one folder does not have.
    pub fn refuse(&self) -> Result<(), InputError> {
        let given = [
            ("--since", self.since.is_some()),
            ("--html", self.html.is_some()),
            ("--markdown", self.markdown),
            ("--json", self.json),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((option, _)) => {
                Err(InputError::new(format!("{option}: it is for several folders")).remedy(
                    "name at least two; a report of one folder writes report.html, report.md and \
                         summary.json into it",
                ))
            }
        }
    }

    /// Prints the trend, and writes the page if one is wanted.
    pub fn run(&self, folders: &[PathBuf], all: bool, open: bool) -> Result<ExitCode> {
        if open && self.html.is_none() {
            let error = InputError::new("--open: there is no page of several folders yet");
            return Err(error.remedy("add --html FILE").into());
        }
        let trend = trend::read(folders, self.since.as_deref())?;
        if let Some(path) = &self.html {
            write_whole(path, trend::page(&trend).as_bytes()).map_err(|error| {
                InputError::new(format!("--html {}: {error}", path.display()))
                    .remedy("name a file in a folder that exists and can be written")
            })?;
        }
        crate::say(&match (self.json, self.markdown) {
            (true, _) => serde_json::to_string_pretty(&trend)? + "\n",
            (_, true) => trend::markdown(&trend),
            _ => trend::terminal(&trend, super::screen(), all),
        });
        if let Some(path) = &self.html {
            if !self.json && !self.markdown {
                crate::say(&format!("page: {}\n", path.display()));
            }
            if open {
                super::open(path)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}
