//! `myelin topic echo`.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args, ValueEnum};
use myelin_tools::document::Format;
use myelin_tools::echo::{self, Echo, Layout, Step};
use myelin_tools::filter::Filter;
use myelin_tools::signals::Stop;
use myelin_tools::{Error, duration};

use crate::attach::Attach;
use crate::complete;
use crate::output::{has_no_reader, note, print, width};

/// See [`echo`].
#[derive(Args)]
#[command(after_help = LOOKS)]
pub struct Options {
    /// Topics; * stands for any text and ? for one character.
    #[arg(value_name = "TOPIC", required = true, add = complete::topics())]
    topics: Vec<String>,
    /// Print only this part of each sample, such as pose.position.x or ranges[0]; several are
    /// possible.
    #[arg(long = "field", short, value_name = "PATH", value_delimiter = ',', add = complete::fields())]
    fields: Vec<String>,
    /// Print only samples that fulfil a condition, such as 'velocity.x > 2 && mode == "auto"'.
    #[arg(long, value_name = "CONDITION")]
    filter: Option<String>,
    /// End after one sample of each topic.
    #[arg(long, short = '1', conflicts_with = "count")]
    once: bool,
    /// End after so many samples of each topic.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print at most one sample of each topic in this time, such as 1s.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    every: Option<Duration>,
    /// End with status 3 if nothing is printed for this time, such as 5s.
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Print whole arrays and texts; otherwise lines have at most 128 elements of each.
    #[arg(long)]
    full: bool,
    /// Print a table of comma-separated values.
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
    /// Read samples as this, instead of by their schema.
    #[arg(long = "as", value_name = "FORMAT")]
    format: Option<As>,
    /// Take part as a best-effort subscriber instead of looking: for every payload, and for topics
    /// of other hosts.
    #[arg(long)]
    subscribe: bool,
    /// Wait for topics that are not there yet.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    attach: Attach,
}

#[derive(Clone, Copy, ValueEnum)]
enum As {
    Json,
    Text,
    Hex,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let stop = Stop::on_signals();
    let filter = options.filter.as_deref().map(Filter::parse).transpose();
    let filter = filter.map_err(|error| Error::BadInput(error.to_string()))?;
    let layout = match (options.json, options.csv) {
        (true, _) => Layout::Json,
        (_, true) => Layout::Csv,
        _ => Layout::Lines,
    };
    let echo_options = echo::Options {
        fields: options.fields,
        filter,
        layout,
        limit: if options.full || layout != Layout::Lines { usize::MAX } else { ELEMENTS_MAX },
        width: width().unwrap_or(80),
        count: if options.once { Some(1) } else { options.count },
        every: options.every,
        format: options.format.map(|it| match it {
            As::Json => Format::Json,
            As::Text => Format::Text,
            As::Hex => Format::Bytes,
        }),
        subscribe: options.subscribe,
        wait: options.wait,
    };
    let (session, place) = super::open("myelin topic echo", options.attach)?;
    let mut echo = Echo::open(session, place, &options.topics, echo_options)?;
    let result = print_all(&mut echo, options.timeout, &stop);
    echo.missed().iter().for_each(|line| note(line));
    result.map(|()| ExitCode::SUCCESS)
}

/// Until the end, by whatever it comes.
fn print_all(echo: &mut Echo, timeout: Option<Duration>, stop: &Stop) -> Result<()> {
    let mut text = String::new();
    let mut printed = Instant::now();
    while !stop.is_set() {
        let left = timeout.map_or(SLICE, |it| it.saturating_sub(printed.elapsed()));
        let step = echo.step(&mut text, left.min(SLICE));
        echo.notes().iter().for_each(|line| note(line));
        if !text.is_empty() {
            if !print(&text)? {
                return Ok(());
            }
            printed = Instant::now();
            text.clear();
        }
        match step? {
            Step::Finished => return Ok(()),
            Step::Nothing if has_no_reader() => return Ok(()),
            _ => {}
        }
        if let Some(timeout) = timeout.filter(|it| printed.elapsed() >= *it) {
            return Err(Error::NotFound(format!("nothing came within {timeout:?}")).into());
        }
    }
    Ok(())
}

const LOOKS: &str = "\
It looks at the publishers' memory, and they do nothing for it. So the payload of a sample of more than
104 bytes can be gone before it is read; at the end it says how many were missed. With --subscribe it
gets each payload, like any other best-effort subscriber, and the publishers serve it like one.";
/// Of an array on the screen.
const ELEMENTS_MAX: usize = 128;
/// How long a wait is at most, so that Ctrl-C is noticed.
const SLICE: Duration = Duration::from_millis(100);
