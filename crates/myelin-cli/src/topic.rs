//! `myelin topic`.

mod echo;
mod info;
mod list;
mod publish;

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
    /// Publish values from the command line, a file or standard input.
    #[command(name = "pub")]
    Publish(publish::Options),
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::List(options) => list::run(options),
        Verb::Info(options) => info::run(options),
        Verb::Echo(options) => echo::run(options),
        Verb::Publish(options) => publish::run(options),
    }
}

/// A node that looks, once it has found other hosts.
fn open(name: &str, attach: Attach) -> Result<(Session, Place), Error> {
    let place = attach.place();
    let session = Session::open(name, &place)?;
    discovery::settle(&session, &place)?;
    Ok((session, place))
}
