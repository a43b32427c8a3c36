//! `myelin bench`: run, list, report, import, compare, baseline, export, schema.

mod baseline;
mod compare;
mod import;
mod list;
mod ping;
mod side;
mod trend;
mod values;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, Subcommand, ValueEnum};
use myelin_bench_lab::agent;
use myelin_bench_lab::export::{self, export};
use myelin_bench_lab::report::{self, Format, Report, Screen};
use myelin_bench_lab::scenario::{Recording, Tuning};
use myelin_bench_lab::schema;
use myelin_bench_lab::session::{self, RunOptions, View};
use myelin_bench_lab::shell;
use myelin_bench_lab::stderr::print_line;
use myelin_bench_lab::summary::Analysis;
use myelin_tools::duration;
use myelin_tools::signals::interruption;
use myelin_tools::text::counted;

use crate::complete;
use crate::options::Options;
use crate::say;

/// The verbs of `myelin bench`.
#[derive(Subcommand)]
pub enum Verb {
    /// Run scenarios and write a results folder with reports.
    Run(Box<Run>),
    /// Measure round trips, or messages one way, as options say: an answer without a file.
    Ping(ping::Options),
    /// Publish messages from this terminal, to `sub` in another one or on another host.
    Pub(side::Publish),
    /// Take the messages of `pub`, and print their latencies each second.
    Sub(side::Subscribe),
    /// List all scenarios and systems, which are installed, and how to install the others.
    List(list::Options),
    /// Write report.html, report.md, summary.csv and hgrm/ again from the records of a folder; of
    /// several folders, show how each figure changed over time and version, and what moved.
    Report {
        /// The results folders.
        #[arg(required = true, value_name = "FOLDER", add = complete::results())]
        directories: Vec<PathBuf>,
        #[command(flatten)]
        trend: trend::TrendOptions,
        #[command(flatten)]
        printing: Printing,
        #[command(flatten)]
        options: Options,
        /// Open the page in a browser.
        #[arg(long)]
        open: bool,
    },
    /// Report the messages of an application from its own trace, a CSV file with the times of sending
    /// and receiving: latency, loss, jitter and rate, as of measured systems.
    Import(import::Options),
    /// Compare two results folders: the environment, then each cell, and whether a difference is
    /// significant.
    Compare(compare::Options),
    /// Keep sessions under a name, for `compare --baseline`.
    #[command(subcommand)]
    Baseline(baseline::Verb),
    /// Print the JSON Schema of a file, draft 2020-12.
    Schema {
        /// The file.
        of: Described,
    },
    /// Serve a lab on another host over standard input and output.
    #[command(hide = true)]
    Agent {
        /// Where drivers write; removed at the end.
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
    },
    /// Write the samples of a results folder as a Parquet file for pandas or polars, with a row for
    /// each message.
    Export {
        /// The results folder.
        #[arg(add = complete::results())]
        directory: PathBuf,
        /// The file to write; samples.parquet in the folder by default.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Only these cells, named as the files in the folder's hgrm/; a pattern such as
        /// '*os.futex*'. May be repeated.
        #[arg(long, value_name = "GLOB")]
        cell: Vec<String>,
    },
}

/// Arguments of `myelin bench run`.
#[derive(Args)]
pub struct Run {
    /// Names of built-in scenarios, or files ending in .toml.
    #[arg(required_unless_present_any = ["resume", "from"], conflicts_with_all = ["resume", "from"], add = complete::scenarios())]
    scenarios: Vec<String>,
    #[command(flatten)]
    from: FromRecording,
    /// Only these systems; a pattern such as `os.*`. May be repeated.
    #[arg(long, value_name = "GLOB", add = complete::systems())]
    system: Vec<String>,
    /// Only these tunings. May be repeated.
    #[arg(long, value_enum)]
    tuning: Vec<TuningName>,
    /// Repeats of each cell in fresh processes.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    runs: Option<u32>,
    /// Run shorter scenarios for a first impression.
    #[arg(long)]
    quick: bool,
    /// The results folder; by default a new one under results/.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Continue an interrupted results folder.
    #[arg(long, value_name = "DIR", add = complete::results(), conflicts_with_all = ["system", "tuning", "runs", "quick", "out", "seed", "hosts"])]
    resume: Option<PathBuf>,
    /// Seed of the random order; the same seed gives the same order.
    #[arg(long)]
    seed: Option<u64>,
    /// End at the first message beyond a limit, for instance 'latency > 1 ms', and keep what the
    /// kernel traced until then.
    #[arg(long, value_name = "LIMIT", value_parser = values::latency_limit)]
    trace_on: Option<u64>,
    /// Hosts of ping and pong in scenarios across hosts: `netns` for two network namespaces here,
    /// or two of `local` and `ssh:DESTINATION`, for instance `ssh:a,ssh:b`.
    #[arg(long, value_name = "HOSTS")]
    hosts: Option<String>,
    #[command(flatten)]
    printing: Printing,
    /// Show progress in plain lines, even on a terminal.
    #[arg(long)]
    plain: bool,
    #[command(flatten)]
    options: Options,
}

/// A recording as the workload.
#[derive(Args)]
struct FromRecording {
    /// Replay a recording (MCAP) over all systems: its topics with the recorded sizes and times.
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    from: Option<String>,
    /// Only these topics of the recording; a pattern such as `/camera/*`. May be repeated.
    #[arg(long, value_name = "GLOB", requires = "from")]
    topic: Vec<String>,
    /// Begin at this time of the recording.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "from")]
    start: Option<Duration>,
    /// End at this time of the recording.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "from")]
    end: Option<Duration>,
    /// Replay at most for this time; 60s by default.
    #[arg(long, value_name = "TIME", value_parser = duration::parse, requires = "from")]
    duration: Option<Duration>,
    /// Replay this many times as fast as recorded.
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0, requires = "from")]
    speed: f64,
}

impl FromRecording {
    /// The recording, and the limit of its replay in seconds.
    fn recording(self) -> Option<(Recording, Option<f64>)> {
        let recording = Recording {
            file: self.from?,
            topics: self.topic,
            start_s: self.start.map_or(0.0, |start| start.as_secs_f64()),
            end_s: self.end.map(|end| end.as_secs_f64()),
            speed: self.speed,
        };
        Some((recording, self.duration.map(|limit| limit.as_secs_f64())))
    }
}

/// A file with a schema.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// `summary.json` of a results folder.
    Summary,
    /// A scenario, in TOML.
    Scenario,
}

/// How results are printed here.
#[derive(Args)]
pub struct Printing {
    /// How to print the results here.
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: Print,
    /// Print everything, as --format table.
    #[arg(long, short, conflicts_with = "format")]
    verbose: bool,
}

impl Printing {
    fn format(&self) -> Format {
        if self.verbose { Format::Table } else { self.format.into() }
    }

    fn is_whole(&self) -> bool {
        matches!(self.format(), Format::Table)
    }
}

/// A format of results.
#[derive(Clone, Copy, Default, ValueEnum)]
pub enum Print {
    /// One screen: how fast each system is, what it costs, and whether the figures can be trusted.
    #[default]
    Glance,
    /// Tables of all figures, comparisons and doubts; whole round trips.
    Table,
    /// As RoundtripPing prints them: half round trips.
    Roundtrip,
    /// As ddsperf prints them: half round trips.
    Ddsperf,
}

impl From<Print> for Format {
    fn from(print: Print) -> Self {
        match print {
            Print::Glance => Format::Glance,
            Print::Table => Format::Table,
            Print::Roundtrip => Format::Roundtrip,
            Print::Ddsperf => Format::Ddsperf,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TuningName {
    /// No tuning.
    Default,
    /// Pinned CPUs, SCHED_FIFO, locked memory.
    Tuned,
    /// `tuned`, and idle cores do not sleep.
    Awake,
}

impl From<TuningName> for Tuning {
    fn from(name: TuningName) -> Self {
        match name {
            TuningName::Default => Tuning::Default,
            TuningName::Tuned => Tuning::Tuned,
            TuningName::Awake => Tuning::Awake,
        }
    }
}

/// Executes a verb.
pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Run(arguments) => run_scenarios(*arguments),
        Verb::Ping(options) => ping::run(options),
        Verb::Pub(options) => side::publish(options),
        Verb::Sub(options) => side::subscribe(options),
        Verb::Import(options) => import::run(options),
        Verb::Compare(options) => compare::run(&options),
        Verb::List(options) => list::run(&options).map(|()| ExitCode::SUCCESS),
        Verb::Report { directories, trend, printing, options, open } => match &directories[..] {
            [directory] => {
                trend.refuse()?;
                report_again(directory, printing.format(), &options.read()?, open)
            }
            several => trend.run(several, printing.is_whole(), open),
        },
        Verb::Baseline(verb) => baseline::run(&verb),
        Verb::Schema { of } => {
            let schema = match of {
                Described::Summary => schema::summary(),
                Described::Scenario => schema::scenario(),
            };
            say(&(serde_json::to_string_pretty(&schema)? + "\n"));
            Ok(ExitCode::SUCCESS)
        }
        Verb::Agent { folder } => {
            agent::run(folder)?;
            Ok(ExitCode::SUCCESS)
        }
        Verb::Export { directory, out, cell } => {
            let done = export(&export::ExportOptions { directory, out, cells: cell })?;
            let (rows, runs) = (counted(done.rows, "row"), counted(done.runs, "run"));
            say(&format!("{rows} of {runs}: {}\n", done.path.display()));
            Ok(if is_whole(&done.analysis) { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
    }
}

fn report_again(
    directory: &Path,
    format: Format,
    options: &report::Options,
    open: bool,
) -> Result<ExitCode> {
    let analysis = match session::read(directory) {
        Ok(analysis) => analysis,
        Err(error) => return report_earlier(directory, format, options, error),
    };
    report(&analysis, directory, format, options)?;
    if open {
        self::open(&directory.join("report.html"))?;
    }
    Ok(status(&analysis))
}

/// The command line, so that the report says how to repeat it.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.map(|word| shell::quoted(&word).into_owned()).collect();
    format!("myelin {}", words.join(" "))
}

/// Opens a page in a browser.
fn open(page: &Path) -> Result<()> {
    let opener = std::process::Command::new("xdg-open").arg(page).spawn();
    opener.with_context(|| format!("xdg-open; open {} by hand", page.display()))?;
    Ok(())
}

/// Prints the tables of a folder whose records cannot be analysed any more, and the error. Reports
/// made earlier are left unchanged.
fn report_earlier(
    directory: &Path,
    format: Format,
    options: &report::Options,
    error: anyhow::Error,
) -> Result<ExitCode> {
    let Ok(earlier) = session::read_earlier(directory) else {
        return Err(error);
    };
    say(&Report::new(&earlier, options).terminal(format, screen()));
    let folder = directory.display();
    print_line(format_args!(
        "the tables come from {folder}/summary.json; the report files were not written again"
    ));
    Err(error)
}

/// Prints what is wrong with the records or the figures; 0 if nothing is.
fn status(analysis: &Analysis) -> ExitCode {
    let (is_whole, is_valid) = (is_whole(analysis), analysis.summary.all_valid());
    if !is_valid {
        print_line("some cells have no valid run; the report says which and why");
    }
    if is_whole && is_valid { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether all of the folder could be read; prints what could not.
fn is_whole(analysis: &Analysis) -> bool {
    for damage in &analysis.summary.damage {
        print_line(format_args!("damaged: {damage}"));
    }
    analysis.summary.damage.is_empty()
}

fn run_scenarios(arguments: Run) -> Result<ExitCode> {
    let options = arguments.options.read()?;
    let run = RunOptions {
        tunings: arguments.tuning.into_iter().map(Tuning::from).collect(),
        scenarios: arguments.scenarios,
        from: arguments.from.recording(),
        systems: arguments.system,
        runs: arguments.runs,
        quick: arguments.quick,
        out: arguments.out,
        resume: arguments.resume,
        seed: arguments.seed,
        hosts: arguments.hosts.as_deref().map(str::parse).transpose()?,
        trace_on_ns: arguments.trace_on,
        // The run that has the message is kept.
        ends_early: arguments.trace_on.is_some(),
        view: if arguments.plain { View::Plain } else { View::Live },
        ..RunOptions::default()
    };
    let finished = session::run(&run, interruption())?;
    report(&finished.analysis, &finished.folder, arguments.printing.format(), &options)?;
    let exceeded = side::exceeded(finished.trigger.as_deref(), Some(&finished.folder))?;
    if finished.interrupted {
        print_line(format_args!("interrupted; continue with: {}", shell::resume(&finished.folder)));
        return Ok(exceeded.unwrap_or(ExitCode::from(INTERRUPTED)));
    }
    Ok(exceeded.unwrap_or_else(|| status(&finished.analysis)))
}

fn report(
    analysis: &Analysis,
    folder: &Path,
    format: Format,
    options: &report::Options,
) -> Result<()> {
    let report = Report::new(analysis, options);
    let written = report.write(folder);
    say(&report.terminal(format, screen()));
    written.context("the records are intact")?;
    say(&format!("report: {}\n", folder.join("report.html").display()));
    Ok(())
}

/// The terminal that this prints to; one of usual width and without colour if there is none.
fn screen() -> Screen {
    let output = std::io::stdout();
    if !output.is_terminal() {
        return Screen::default();
    }
    let width = rustix::termios::tcgetwinsize(&output).map_or(0, |size| usize::from(size.ws_col));
    let width = if width == 0 { Screen::default().width } else { width.max(WIDTH_MIN) };
    let is_dumb = std::env::var_os("TERM").is_some_and(|kind| kind == "dumb");
    Screen { width, colour: std::env::var_os("NO_COLOR").is_none() && !is_dumb }
}

/// A narrower terminal wraps lines.
const WIDTH_MIN: usize = 40;
/// The exit status that a shell reports for a program ended by SIGINT.
const INTERRUPTED: u8 = 130;
