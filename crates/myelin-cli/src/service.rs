//! `myelin service`.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand};
use myelin_tools::{Error, duration, input, services};

use crate::attach::{Attach, Listing};
use crate::complete;
use crate::output::{json_lines, print, width};
use crate::topic::open;

#[derive(Subcommand)]
pub enum Verb {
    /// List services with their servers, clients and types.
    List(Listing),
    /// Show everything about services: servers, clients, and the fields of requests and replies.
    Info(Info),
    /// Call a service with a request in JSON, and print its reply.
    Call(Call),
}

#[derive(Args)]
pub struct Info {
    /// The services: names, or patterns with * and ?.
    #[arg(required = true, value_name = "SERVICE", add = complete::services())]
    services: Vec<String>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

#[derive(Args)]
pub struct Call {
    /// The service.
    #[arg(value_name = "SERVICE", add = complete::services())]
    service: String,
    /// The request in JSON or YAML, such as '{a: 1, b: 2}'. A missing field is zero or empty.
    #[arg(value_name = "VALUE", default_value = "{}")]
    request: String,
    /// Ends with status 3 if no reply comes within this time.
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration::parse)]
    timeout: Duration,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::List(options) => list(options)?,
        Verb::Info(options) => info(options)?,
        Verb::Call(options) => call(options)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn list(Listing { json, attach }: Listing) -> Result<()> {
    let (session, _) = open("myelin service list", attach)?;
    let services = services::all(&session.graph(ANSWER_LIMIT)?);
    if json {
        print(&json_lines(&services)?)?;
    } else {
        print(&services::table(&services).text(width()))?;
    }
    Ok(())
}

fn info(options: Info) -> Result<()> {
    let (session, place) = open("myelin service info", options.attach)?;
    let graph = session.graph(ANSWER_LIMIT)?;
    let mut found = Vec::new();
    for typed in &options.services {
        found.extend(services::meant(&graph, typed, &session, &place)?);
    }
    found.iter_mut().for_each(|it| services::describe(it, &graph));
    if options.json {
        print(&json_lines(&found)?)?;
    } else {
        let texts: Vec<_> = found.iter().map(services::ServiceInfo::text).collect();
        print(&texts.join("\n"))?;
    }
    Ok(())
}

fn call(Call { service, request, timeout, attach }: Call) -> Result<()> {
    let [request] = &input::values(&request)?[..] else {
        return Err(Error::BadInput("the request is several values; write one".to_owned()).into());
    };
    let (session, place) = open("myelin service call", attach)?;
    let graph = session.graph(ANSWER_LIMIT)?;
    let reply = services::call(&session, &place, &graph, &service, request, timeout)?;
    print(&(reply + "\n"))?;
    Ok(())
}

/// How long to wait for nodes that do not answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(1);
