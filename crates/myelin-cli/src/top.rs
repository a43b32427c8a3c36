//! `myelin top`.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::duration;
use myelin_tools::session::Session;
use myelin_tools::top::look::Looker;
use myelin_tools::top::screen::Look;
use myelin_tools::top::snapshot::Snapshot;
use myelin_tools::top::{self, End, plain, signals};

use crate::attach::Attach;
use crate::output::{is_dumb, print};

#[derive(Args)]
pub struct Options {
    /// The time between two updates.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    interval: Duration,
    /// The column to sort by, such as name, rate, lost, cpu or mem.
    #[arg(long, value_name = "COLUMN", value_parser = column)]
    sort: Option<String>,
    /// Print one update as text, and end. Without a terminal it is always so.
    #[arg(long)]
    once: bool,
    /// Print each update as a line of JSON; with --once, one.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let Options { interval, sort, once, json, attach } = options;
    let signals = top::block_signals();
    let looker = Looker::new(Session::open("myelin top", &attach.place())?);
    let is_terminal = io::stdout().is_terminal();
    let sort = sort.as_deref();
    let end = if json {
        top::each(looker, interval, signals, |it| shows(&as_json(it)) && !once)?
    } else if once || !is_terminal {
        top::each(looker, interval, signals, |it| {
            shows(&as_text(it, sort));
            false
        })?
    } else if is_dumb() {
        top::each(looker, interval, signals, |it| shows(&(as_text(it, sort) + "\n")))?
    } else {
        let (sort, look) = (sort.map(str::to_owned), look());
        top::show(looker, &top::Options { interval, sort }, signals, look)?
    };
    if let End::Signal(signal) = end {
        signals::default_action(signal);
    }
    Ok(ExitCode::SUCCESS)
}

fn as_text(snapshot: &Snapshot, sort: Option<&str>) -> String {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok();
    plain::text(snapshot, sort, size.map(|it| usize::from(it.ws_col)).filter(|it| *it > 0))
}

fn as_json(snapshot: &Snapshot) -> String {
    serde_json::to_string(snapshot).expect("its keys are strings") + "\n"
}

/// False if nobody reads any more.
fn shows(text: &str) -> bool {
    print(text).unwrap_or(false)
}

fn look() -> Look {
    let of = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(of).unwrap_or_default();
    let locale = locale.to_uppercase();
    Look {
        has_colour: of("NO_COLOR").is_none(),
        is_utf8: locale.contains("UTF-8") || locale.contains("UTF8"),
    }
}

fn column(text: &str) -> Result<String, String> {
    let columns = top::columns();
    let all: Vec<_> = columns.iter().copied().collect();
    if columns.contains(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("use one of {}", all.join(", ")))
    }
}

fn interval(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::from_millis(100)..=Duration::from_secs(3600))
}
