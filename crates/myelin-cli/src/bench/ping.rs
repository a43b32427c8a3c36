//! `myelin bench ping`: a scenario from options.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use myelin_bench_kit::protocol::Wait;
use myelin_bench_lab::live::in_a_line;
use myelin_bench_lab::ping::Ping;
use myelin_bench_lab::registry::Registry;
use myelin_bench_lab::report::{self, Report};
use myelin_bench_lab::scenario::Scenario;
use myelin_bench_lab::session::{self, Finished, RunOptions, View};
use myelin_bench_lab::stderr::print_line;
use myelin_bench_lab::summary::Cell;
use myelin_tools::signals::interruption;

use super::side::exceeded;
use super::values::{Counts, Rates, Sizes, latency_limit, run_time};
use super::{INTERRUPTED, Printing, TuningName};
use crate::complete;
use crate::say;

/// Arguments of `myelin bench ping`.
#[derive(Args)]
pub struct Options {
    /// Systems, by name or pattern such as 'os.*'; by default those of the scenario `quick`.
    #[arg(value_name = "SYSTEM", add = complete::systems())]
    systems: Vec<String>,
    /// Bytes of a message; several, or a range that grows by four: 64,1K..1M (1K is 1024).
    #[arg(long, value_name = "SIZES", default_value = "64")]
    size: Sizes,
    /// Messages a second; several: 10,1k. `max` is back to back, the default of round trips; messages
    /// one way have 1000.
    #[arg(long, value_name = "RATES")]
    rate: Option<Rates>,
    /// Time of each run.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = run_time)]
    duration: Duration,
    /// Only systems that wait like this; several: block,poll.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WAIT")]
    wait: Vec<WaitName>,
    /// Send messages one way, without answers.
    #[arg(long)]
    one_way: bool,
    /// Subscribers, each in its own process, of messages one way; several: 1,4.
    #[arg(long, value_name = "NUMBERS")]
    subscribers: Option<Counts>,
    /// The preparation for low latency; several: default,tuned.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "default")]
    tuning: Vec<TuningName>,
    /// Runs of each cell in fresh processes; five and more have intervals.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: u32,
    /// Print the scenario file that does the same, and measure nothing.
    #[arg(long, conflicts_with_all = ["out", "trace_on"])]
    print: bool,
    /// Keep records and reports in this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// End at the first message beyond a limit, for instance 'latency > 1 ms', and keep what the
    /// kernel traced until then.
    #[arg(long, value_name = "LIMIT", value_parser = latency_limit)]
    trace_on: Option<u64>,
    #[command(flatten)]
    printing: Printing,
}

#[derive(Clone, Copy, ValueEnum)]
enum WaitName {
    /// Spins without limit.
    Poll,
    /// Sleeps until the kernel wakes it.
    Block,
    /// Spins for a while, then sleeps.
    Adaptive,
    /// Sleeps until just before the next message is expected.
    Predictive,
    /// Is called by the system.
    Callback,
}

impl From<WaitName> for Wait {
    fn from(name: WaitName) -> Self {
        match name {
            WaitName::Poll => Wait::Poll,
            WaitName::Block => Wait::Block,
            WaitName::Adaptive => Wait::Adaptive,
            WaitName::Predictive => Wait::Predictive,
            WaitName::Callback => Wait::Callback,
        }
    }
}

/// Measures, prints the figures, and keeps them if a folder is given.
pub fn run(options: Options) -> Result<ExitCode> {
    let subscribers = options.subscribers.map(|Counts(numbers)| numbers);
    let ping = Ping {
        systems: options.systems,
        payload_bytes: options.size.0,
        rate_hz: options.rate.map(|Rates(rates)| rates).unwrap_or_default(),
        duration_s: options.duration.as_secs_f64(),
        waits: options.wait.into_iter().map(Wait::from).collect(),
        subscribers: subscribers.unwrap_or(if options.one_way { vec![1] } else { Vec::new() }),
        tunings: options.tuning.into_iter().map(Into::into).collect(),
        runs: options.runs,
    };
    let (text, notes) = ping.text(&Registry::discover())?;
    for note in &notes {
        print_line(format_args!("note: {note}"));
    }
    let scenario = Ping::scenario(&text)?;
    if options.print {
        say(&text);
        return Ok(ExitCode::SUCCESS);
    }
    // Without a place of its own it is removed at the end.
    let place = options.out.is_none().then(tempfile::tempdir).transpose();
    let place =
        place.context("no folder can be made for the records; TMPDIR names another place")?;
    let folder = place.as_ref().map(|place| place.path().join("ping"));
    let run = RunOptions {
        given: Some((scenario.clone(), super::command())),
        out: options.out.clone().or(folder),
        view: view(&scenario),
        ends_early: true,
        trace_on_ns: options.trace_on,
        ..RunOptions::default()
    };
    let finished = session::run(&run, interruption())?;
    let format = options.printing.format();
    if options.out.is_some() {
        super::report(&finished.analysis, &finished.folder, format, &report::Options::default())?;
    } else {
        let report = Report::new(&finished.analysis, &report::Options::default());
        say(&report.terminal(format, super::screen()));
        say("nothing was kept: --out DIR keeps records and page, --print the scenario\n");
    }
    say(&in_lines(&finished.analysis.summary.cells));
    match exceeded(finished.trigger.as_deref(), options.out.as_deref())? {
        Some(status) => Ok(status),
        None => Ok(status(&finished)),
    }
}

/// The whole distribution of each cell of a single system; a ranking would hide it.
fn in_lines(cells: &[Cell]) -> String {
    if cells.iter().any(|cell| cell.system != cells[0].system) {
        return String::new();
    }
    let line = |cell: &Cell| {
        let (what, latency) = match cell.round_trip_us {
            Some(latency) => ("round trip", Some(latency)),
            None => ("one way", cell.one_way_us),
        };
        let point = format!("{} B", cell.params.payload_bytes);
        let rate = cell.params.rate_hz.map(|rate_hz| format!(" {rate_hz} Hz")).unwrap_or_default();
        let latency = latency.map_or_else(|| "not measured".to_owned(), |it| in_a_line(&it));
        format!("{} {}, {point}{rate}, {what} in µs: {latency}\n", cell.system, cell.tuning)
    };
    cells.iter().map(line).collect()
}

/// A line a second for one system; the usual progress for several.
fn view(scenario: &Scenario) -> View {
    let is_one = |name: &String| !name.contains(['*', '?', '[', '{']);
    let [system] = &scenario.plan.systems[..] else { return View::Live };
    match is_one(system) && std::io::stdout().is_terminal() {
        true => View::Seconds,
        false => View::Live,
    }
}

/// As `ping` ends: figures so far are figures.
fn status(finished: &Finished) -> ExitCode {
    let cells = &finished.analysis.summary.cells;
    if finished.interrupted && cells.iter().any(|cell| cell.runs == 0) {
        return ExitCode::from(INTERRUPTED);
    }
    super::status(&finished.analysis)
}
