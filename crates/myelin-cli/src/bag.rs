//! `myelin bag`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

#[derive(Subcommand)]
pub enum Verb {
    /// Print what is in a file.
    Info { file: PathBuf },
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    let Verb::Info { file } = verb;
    anyhow::bail!("not built: {}", file.display())
}
