//! `myelin topic hz`.

use std::process::ExitCode;

use anyhow::Result;
use myelin_tools::rate_watch::{RateWatch, Show};

use super::watch;

pub fn run(options: watch::Options) -> Result<ExitCode> {
    watch::run("myelin topic hz", options, |session, place, options| {
        RateWatch::new(session, place, options, Show::Hz)
    })
}
