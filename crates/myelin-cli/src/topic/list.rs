//! `myelin topic list`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::{discovery, list, select};

use crate::attach::Attach;
use crate::complete;
use crate::output::{json_lines, note, print, width};

/// See [`list`].
#[derive(Args)]
pub struct Options {
    /// Topics; * stands for any text and ? for one character. Without one, all.
    #[arg(value_name = "PATTERN", add = complete::topics())]
    patterns: Vec<String>,
    /// Also list the topics of services.
    #[arg(long, short)]
    all: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let Options { patterns, all, json, attach } = options;
    let (session, place) = super::open("myelin topic list", attach)?;
    let graph = discovery::graph(&session, ANSWER_LIMIT)?;
    let selected = match (all, &patterns[..]) {
        (true, []) => select::all(&graph),
        _ => select::topics(&graph, &patterns, &session, &place)?,
    };
    let lines = list::lines(&graph, &selected);
    select::silent(&graph, &session, &place).iter().for_each(|line| note(line));
    if lines.is_empty() {
        let elsewhere = select::elsewhere(&session, &place);
        let domain = place.domain_number();
        note(format!("no topics in domain {domain}. {elsewhere}").trim_end());
    } else if json {
        print(&json_lines(&lines)?)?;
    } else {
        print(&list::table(&lines, place.network).text(width()))?;
    }
    Ok(ExitCode::SUCCESS)
}

const ANSWER_LIMIT: Duration = Duration::from_secs(1);
