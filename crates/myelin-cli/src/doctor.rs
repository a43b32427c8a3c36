//! `myelin doctor`: what killed processes have left behind on this host, and who lives.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use myelin_shm::leftovers::{self, Leftover, LiveNode};

/// What to look at, and whether to mend it.
#[derive(Args)]
pub struct Options {
    /// Remove what dead nodes have left behind.
    #[arg(long)]
    fix: bool,
    /// Where the sockets of nodes lie, if not in /dev/shm.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Exit status 1 if something is left that should not be.
pub fn run(options: &Options) -> Result<ExitCode> {
    let survey = leftovers::survey(options.folder.as_deref())?;
    for node in &survey.live {
        println!("alive  {}", alive(node));
    }
    let mut left = 0;
    for dead in &survey.dead {
        let removed = options.fix && leftovers::remove(dead)?;
        left += u32::from(!removed);
        println!("{}   {}", if removed { "gone" } else { "dead" }, place(dead));
    }
    if survey.dead.is_empty() {
        println!("nothing is left behind by dead nodes");
    } else if left > 0 {
        println!(
            "{left} left behind by dead nodes, harmless: the next node of the domain removes them, \
             or `myelin doctor --fix` does"
        );
    }
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn alive(node: &LiveNode) -> String {
    let process = match node.pid {
        0 => "process unknown (stopped, or of another container)".to_owned(),
        pid => format!("process {pid}"),
    };
    format!("{}  domain {}, {process}", node.path.display(), node.domain)
}

fn place(dead: &Leftover) -> String {
    format!("{}  domain {}", dead.path.display(), dead.domain)
}
