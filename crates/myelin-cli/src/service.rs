//! `myelin service`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;

use crate::attach::Attach;

#[derive(Subcommand)]
pub enum Verb {
    /// List them.
    List(List),
}

#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    attach: Attach,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    let Verb::List(List { attach }) = verb;
    let _ = attach.place();
    Ok(ExitCode::SUCCESS)
}
