//! `myelin view`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub struct Options {}

pub fn run(_options: Options) -> Result<ExitCode> {
    anyhow::bail!("not built")
}
