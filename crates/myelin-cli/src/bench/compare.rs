//! `myelin bench compare`: results folders of two states.

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use anyhow::Result;
use clap::Args;
use myelin_bench_lab::baseline::Baselines;
use myelin_bench_lab::compare::{self, Condition, Outcome};
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::record::write_whole;
use myelin_bench_lab::stderr::print_line;

use crate::complete;

/// Arguments of `myelin bench compare`.
#[derive(Args)]
pub struct Options {
    /// The results folder of the old state (A) and that of the new state (B); or with --with, all
    /// folders of the old state; or with --baseline, all folders of the new state.
    #[arg(required = true, value_name = "FOLDER", add = complete::results())]
    folders: Vec<PathBuf>,
    /// The results folders of the new state, at least five, as of the old one: sessions are compared
    /// then, not runs.
    #[arg(long, value_name = "FOLDER", num_args = 1.., add = complete::results())]
    with: Vec<PathBuf>,
    /// Compare with this baseline of the machine of the folders, as the old state.
    #[arg(long, value_name = "NAME", conflicts_with = "with", add = complete::baselines())]
    baseline: Option<String>,
    /// Exit with status 1 if this is so in B: `worse`, `p99 worse`, `p99 worse by 10%`; and with 3 if
    /// it is not, but not everything that this is about could be compared. May be repeated.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Condition>,
    /// List every figure, not only those that differ.
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Print one JSON object and nothing else; docs/how-to/compare.md names its fields.
    #[arg(long)]
    json: bool,
    /// Print Markdown: a comment for a merge request.
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write the difference plots: one page that works offline.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Compares, prints, and writes the page if one is wanted.
pub fn run(options: &Options) -> Result<ExitCode> {
    let baseline = options.baseline.as_ref();
    let baseline = baseline.map(|name| Baselines::of_user()?.sessions(name, &options.folders));
    let comparison = match (&options.folders[..], &options.with[..]) {
        (b, _) if let Some(baseline) = baseline => compare::read(&baseline?, b)?,
        ([a, b], []) => compare::read(slice::from_ref(a), slice::from_ref(b))?,
        (folders, []) => {
            let text = format!("{} results folders, without --with", folders.len());
            let remedy = "name two, or write `--with` before those of the new state";
            return Err(InputError::new(text).remedy(remedy).into());
        }
        (a, b) => compare::read(a, b)?,
    };
    if let Some(path) = &options.html {
        write_whole(path, compare::page(&comparison).as_bytes()).map_err(|error| {
            InputError::new(format!("--html {}: {error}", path.display()))
                .remedy("name a file in a folder that exists and can be written")
        })?;
    }
    crate::say(&match (options.json, options.markdown) {
        (true, _) => serde_json::to_string_pretty(&comparison)? + "\n",
        (_, true) => compare::markdown(&comparison, options.all),
        _ => compare::terminal(&comparison, super::screen(), options.all),
    });
    if let Some(path) = options.html.as_ref().filter(|_| !options.json && !options.markdown) {
        crate::say(&format!("page: {}\n", path.display()));
    }
    if options.fail_on.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let (status, lines) = match comparison.outcome(&options.fail_on) {
        Outcome::Passed => return Ok(ExitCode::SUCCESS),
        Outcome::Failed(lines) => (ExitCode::FAILURE, lines),
        Outcome::Unanswered(lines) => (ExitCode::from(UNANSWERED), lines),
    };
    for line in lines {
        print_line(format_args!("--fail-on: {line}"));
    }
    Ok(status)
}

/// Status if no condition is met, but not everything could be compared.
const UNANSWERED: u8 = 3;
