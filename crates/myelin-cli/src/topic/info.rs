//! `myelin topic info`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::info::TopicInfo;
use myelin_tools::{discovery, info, select};

use crate::attach::Attach;
use crate::complete;
use crate::output::{json_lines, note, print};

/// See [`info`].
#[derive(Args)]
pub struct Options {
    /// Topics; * stands for any text and ? for one character.
    #[arg(value_name = "TOPIC", required = true, add = complete::topics())]
    topics: Vec<String>,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let Options { topics, json, attach } = options;
    let (session, place) = super::open("myelin topic info", attach)?;
    let graph = discovery::graph(&session, ANSWER_LIMIT)?;
    let selected = select::topics(&graph, &topics, &session, &place)?;
    select::silent(&graph, &session, &place).iter().for_each(|line| note(line));
    let topics = info::topics(&graph, &selected);
    if json {
        print(&json_lines(&topics)?)?;
    } else {
        let texts: Vec<_> = topics.iter().map(TopicInfo::text).collect();
        print(&texts.join("\n"))?;
    }
    Ok(ExitCode::SUCCESS)
}

const ANSWER_LIMIT: Duration = Duration::from_secs(1);
