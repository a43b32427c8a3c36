//! `myelin topic delay`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use myelin_tools::delay_watch::DelayWatch;
use myelin_tools::lateness_watch::LatenessWatch;

use super::watch;

/// What to measure.
#[derive(Args)]
#[group(skip)]
pub struct Options {
    #[command(flatten)]
    watch: watch::Options,
    /// Measure from a stamp in the sample, such as header.stamp: a ROS 2 time, or nanoseconds.
    #[arg(long, value_name = "FIELD")]
    stamp: Option<String>,
    /// Take the samples as a subscriber of its own does, which the publishers then wake.
    #[arg(long)]
    subscribe: bool,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let Options { watch, stamp, subscribe } = options;
    if stamp.is_none() && !subscribe {
        return watch::run("myelin topic delay", watch, |session, place, options| {
            LatenessWatch::new(session, place, options)
        });
    }
    watch::run("myelin topic delay", watch, |session, place, options| {
        DelayWatch::new(session, place, options, stamp, subscribe)
    })
}
