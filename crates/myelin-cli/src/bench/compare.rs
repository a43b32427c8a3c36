//! `myelin bench compare`: results folders of two states.

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use anyhow::Result;
use clap::{Args, ValueEnum};
use myelin_bench_lab::compare;
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::record::write_whole;

/// Arguments of `myelin bench compare`.
#[derive(Args)]
pub struct Options {
    /// The results folder of the old state (A) and that of the new state (B); or with --with, all
    /// folders of the old state.
    #[arg(required = true, value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// The results folders of the new state, at least five, as of the old one: sessions are compared
    /// then, not runs.
    #[arg(long, value_name = "FOLDER", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Exit with status 1 if anything is worse in B, and with 3 if nothing is, but not everything of
    /// A could be compared.
    #[arg(long, value_enum)]
    fail_on: Option<FailOn>,
    /// List every figure, not only those that differ.
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// Print one JSON object and nothing else; docs/how-to/compare.md names its fields.
    #[arg(long)]
    json: bool,
    /// Write the difference plots: one page that works offline.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// When a script's run fails.
#[derive(Clone, Copy, ValueEnum)]
enum FailOn {
    /// A figure is worse, or a cell has no valid run any more.
    Worse,
}

/// Compares, prints, and writes the page if one is wanted.
pub fn run(options: &Options) -> Result<ExitCode> {
    let comparison = match (&options.folders[..], &options.with[..]) {
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
    crate::say(&match options.json {
        true => serde_json::to_string_pretty(&comparison)? + "\n",
        false => compare::terminal(&comparison, super::screen(), options.all),
    });
    if let Some(path) = options.html.as_ref().filter(|_| !options.json) {
        crate::say(&format!("page: {}\n", path.display()));
    }
    Ok(match options.fail_on {
        Some(FailOn::Worse) if comparison.is_worse() => ExitCode::FAILURE,
        Some(FailOn::Worse) if !comparison.unanswered().is_empty() => ExitCode::from(UNANSWERED),
        _ => ExitCode::SUCCESS,
    })
}

/// Status if nothing is worse, but not everything could be compared.
const UNANSWERED: u8 = 3;
