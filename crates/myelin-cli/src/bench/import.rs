//! `myelin bench import`: the traces of an application.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use myelin_bench_lab::import::{ImportOptions, import};
use myelin_bench_lab::report;

use super::Printing;

/// Arguments of `myelin bench import`.
#[derive(Args)]
pub struct Options {
    /// CSV files, one for each run, with a line for each message: sent_ns,received_ns (or _us, _ms,
    /// _s; a lost message has no receive time), and if there are any: bytes, topic, subscriber,
    /// sequence.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The name of the application, of which all files are runs; by default each file is of an
    /// application named after it.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The results folder; by default a new one under results/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    printing: Printing,
}

/// Imports, reports and prints.
pub fn run(options: Options) -> Result<ExitCode> {
    let (folder, analysis) = import(&ImportOptions {
        files: options.files,
        name: options.name,
        out: options.out,
        command: super::command(),
    })?;
    super::report(&analysis, &folder, options.printing.format(), &report::Options::default())?;
    Ok(super::status(&analysis))
}
