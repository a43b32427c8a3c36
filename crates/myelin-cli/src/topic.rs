//! `myelin topic`.

mod bw;
mod delay;
mod echo;
mod hz;
mod info;
mod list;
mod publish;
mod watch;

use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use myelin_tools::session::{Place, Session};
use myelin_tools::{Error, discovery};

use crate::attach::Attach;

#[derive(Subcommand)]
pub enum Verb {
    /// List topics with their type, publishers and subscribers.
    List(list::Options),
    /// Show everything about topics: fields, endpoints, settings, matches, refusals, counters.
    Info(info::Options),
    /// Print the samples of topics.
    Echo(echo::Options),
    /// Measure rates: percentiles of the periods, jitter and gaps, by the publishers' own times.
    Hz(watch::Options),
    /// Measure bandwidths: bytes a second, and sizes.
    Bw(watch::Options),
    /// Measure delays: how late subscribers take samples, by their own counters, by a subscriber of
    /// the tool's own, or against a stamp in the samples.
    Delay(delay::Options),
    /// Publish values from the command line, a file or standard input.
    #[command(name = "pub")]
    Publish(publish::Options),
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::List(options) => list::run(options),
        Verb::Info(options) => info::run(options),
        Verb::Echo(options) => echo::run(options),
        Verb::Hz(options) => hz::run(options),
        Verb::Bw(options) => bw::run(options),
        Verb::Delay(options) => delay::run(options),
        Verb::Publish(options) => publish::run(options),
    }
}

/// A node that looks, once it has found other hosts.
pub fn open(name: &str, attach: Attach) -> Result<(Session, Place), Error> {
    let place = attach.place();
    let session = Session::open(name, &place)?;
    discovery::settle(&session, &place)?;
    Ok((session, place))
}
