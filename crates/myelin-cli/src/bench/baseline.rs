//! `myelin bench baseline`: sessions under a name, for `compare --baseline`.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Subcommand;
use myelin_bench_lab::baseline::{Baseline, Baselines};
use myelin_tools::text::counted;

use crate::complete;
use crate::say;

/// The verbs of `myelin bench baseline`.
#[derive(Subcommand)]
pub enum Verb {
    /// Keep a copy of results folders as a baseline of the machine that they were measured on. An
    /// earlier one of this name is replaced.
    Set {
        /// Its name, for instance `main` or `v1.2`.
        #[arg(add = complete::baselines())]
        name: String,
        /// The results folders: one session, or at least five.
        #[arg(required = true, value_name = "FOLDER", add = complete::results())]
        folders: Vec<PathBuf>,
    },
    /// List the baselines.
    List {
        /// Print a JSON array and nothing else.
        #[arg(long)]
        json: bool,
    },
    /// Remove a baseline.
    Rm {
        /// Its name.
        #[arg(add = complete::baselines())]
        name: String,
    },
}

/// Executes a verb.
pub fn run(verb: &Verb) -> Result<ExitCode> {
    let baselines = Baselines::of_user()?;
    match verb {
        Verb::Set { name, folders } => say(&line(&baselines.set(name, folders)?)),
        Verb::List { json: true } => {
            say(&(serde_json::to_string_pretty(&baselines.list()?)? + "\n"))
        }
        Verb::List { json: false } => {
            let all = baselines.list()?;
            let none = "no baselines; `myelin bench baseline set NAME FOLDER...` makes one\n";
            say(&if all.is_empty() { none.to_owned() } else { all.iter().map(line).collect() });
        }
        Verb::Rm { name } => {
            baselines.remove(name)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn line(it: &Baseline) -> String {
    let Baseline { name, machine, is_here, begun, bytes, sessions } = it;
    let sessions = counted(sessions.len() as u64, "session");
    let begun = begun.as_ref().map(|begun| format!(", {begun}")).unwrap_or_default();
    let place = if *is_here { "this machine".into() } else { machine.to_string() };
    let megabytes = *bytes as f64 / 1e6;
    format!("{name:<20} {sessions}{begun}, {megabytes:.1} MB, {place}\n")
}
