//! `myelin top`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::attach::Attach;

#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    attach: Attach,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let Options { attach } = options;
    let _ = attach.place();
    Ok(ExitCode::SUCCESS)
}
