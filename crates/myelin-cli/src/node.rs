//! `myelin node`.

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};
use myelin_tools::nodes;

use crate::attach::{Attach, Listing};
use crate::complete;
use crate::output::{json_lines, print, width};
use crate::topic::open;

#[derive(Subcommand)]
pub enum Verb {
    /// List nodes with their process, CPU and memory.
    List(Listing),
    /// Show everything about nodes: topics, services, matches, and what is wrong.
    Info(Info),
}

#[derive(Args)]
pub struct Info {
    /// The nodes: a name, a pattern with * and ?, a process or an id.
    #[arg(required = true, value_name = "NODE", add = complete::nodes())]
    nodes: Vec<String>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::List(options) => list(options)?,
        Verb::Info(options) => info(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(Listing { json, attach }: Listing) -> Result<()> {
    let (session, _) = open("myelin node list", attach)?;
    let watcher = nodes::look(&session)?;
    let lines = nodes::lines(watcher.status(), &session);
    if json {
        print(&json_lines(&lines)?)?;
    } else {
        print(&nodes::table(&lines).text(width()))?;
    }
    Ok(())
}

fn info(options: Info) -> Result<()> {
    let (session, place) = open("myelin node info", options.attach)?;
    let watcher = nodes::look(&session)?;
    let mut found = Vec::new();
    for typed in &options.nodes {
        found.extend(nodes::info(watcher.status(), typed, &session, &place)?);
    }
    if options.json {
        print(&json_lines(&found)?)?;
    } else {
        let texts: Vec<_> = found.iter().map(|it| it.text(width())).collect();
        print(&texts.join("\n"))?;
    }
    Ok(())
}
