//! `myelin bag`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand, ValueEnum};
use myelin_bag::{
    Copied, CopyError, DiffOptions, Options, Pairing, Selection, Topics, cut, diff, merge,
};
use myelin_tools::Error;
use myelin_tools::bag::check::{self, cannot_write};
use myelin_tools::bag::export::{self, Request};
use myelin_tools::bag::info::FileInfo;
use myelin_tools::bag::moment::{self, Moment};
use myelin_tools::bag::topics::{channels, choose};
use myelin_tools::bag::{diff as difference, loss, open};
use myelin_tools::output_file::OutputFile;
use myelin_tools::text::{counted, printable};

use crate::output::{json_lines, note, print, width};
use crate::record::Compress;

#[derive(Subcommand)]
pub enum Verb {
    /// Print what is in files: times, topics with type, count, rate and size, and losses.
    Info(Info),
    /// Look whether everything in files agrees, and print what does not.
    Check(Check),
    /// Write a whole file with all that can be read of a broken one.
    Repair(Repair),
    /// Copy some topics, or a part of the time, to a new file.
    Cut(Cut),
    /// Write the messages of several files to one, in order of time.
    Merge(Merge),
    /// Compare two files by topic: counts, missing messages, values.
    Diff(Diff),
    /// Write messages as tables: CSV or Parquet.
    Export(Export),
}

#[derive(Args)]
pub struct Info {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Check {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Prints one JSON object a line.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
pub struct Repair {
    /// The broken file. It is not changed.
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The new file.
    #[arg(value_name = "OUT")]
    to: PathBuf,
    #[command(flatten)]
    written: OutputOptions,
    /// Prints one JSON object.
    #[arg(long)]
    json: bool,
}

/// Which messages of a file.
#[derive(Args)]
struct Part {
    #[command(flatten)]
    topics: TopicOptions,
    /// From this time on: 10s after the begin, -10s before the end, 2026-11-27T22:08:22.5Z, or
    /// seconds since 1970 as @1700000000.5.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    start: Option<Moment>,
    /// Before this time.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    end: Option<Moment>,
}

#[derive(Args)]
struct TopicOptions {
    /// Only these topics: names, or patterns with * and ?. May be given several times.
    #[arg(long = "topic", value_name = "TOPIC")]
    topics: Vec<String>,
    /// Not these topics.
    #[arg(long, value_name = "TOPIC")]
    exclude: Vec<String>,
}

/// How a new file is written.
#[derive(Args)]
struct OutputOptions {
    /// Compresses the new file.
    #[arg(long, value_name = "HOW", default_value = "none")]
    compress: Compress,
    /// Overwrites the new file if it exists.
    #[arg(long)]
    force: bool,
}

#[derive(Args)]
pub struct Cut {
    /// The file. It is not changed.
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// The new file.
    #[arg(value_name = "OUT")]
    to: PathBuf,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    written: OutputOptions,
}

#[derive(Args)]
pub struct Merge {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    from: Vec<PathBuf>,
    /// The new file.
    #[arg(short, long = "output", value_name = "OUT")]
    output: PathBuf,
    #[command(flatten)]
    written: OutputOptions,
}

#[derive(Args)]
pub struct Diff {
    /// The first file.
    #[arg(value_name = "A")]
    first: PathBuf,
    /// The second file.
    #[arg(value_name = "B")]
    second: PathBuf,
    #[command(flatten)]
    topics: TopicOptions,
    /// By how much floats may differ; of numbers above 1, by how large a part of them.
    #[arg(long, value_name = "NUMBER", default_value = "1e-6", value_parser = tolerance)]
    tolerance: f64,
    /// Which messages of a topic are compared: those with the same sequence number, or in order.
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pair: Pair,
    /// Prints topics that are the same, too.
    #[arg(long)]
    all: bool,
    /// Prints one JSON object a line, for each topic.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Pair {
    /// By sequence, if both files count from the same number or are of the same time.
    Auto,
    /// By sequence.
    Sequence,
    /// The first with the first, and so on.
    Order,
}

#[derive(Args)]
pub struct Export {
    /// The file.
    #[arg(value_name = "FILE")]
    from: PathBuf,
    #[command(flatten)]
    part: Part,
    /// Only this field, such as pose.x or ranges[3]. May be given several times.
    #[arg(long = "field", value_name = "FIELD")]
    fields: Vec<String>,
    /// The format; by default that of the output's name, or csv.
    #[arg(long, value_name = "FORMAT")]
    format: Option<Format>,
    /// A file for one topic, or a folder that gets a file for each.
    #[arg(short, long = "output", value_name = "OUT")]
    output: PathBuf,
    /// Overwrites files that exist.
    #[arg(long)]
    force: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// Comma-separated values.
    Csv,
    /// Apache Parquet.
    Parquet,
}

pub fn run(verb: Verb) -> Result<ExitCode> {
    match verb {
        Verb::Info(options) => info(&options),
        Verb::Check(options) => check(&options),
        Verb::Repair(options) => repair(&options),
        Verb::Cut(options) => run_cut(&options),
        Verb::Merge(options) => run_merge(&options),
        Verb::Diff(options) => run_diff(&options),
        Verb::Export(options) => run_export(options),
    }
}

fn info(options: &Info) -> Result<ExitCode> {
    for (number, path) in options.files.iter().enumerate() {
        let info = FileInfo::read(path)?;
        let text = match options.json {
            true => json_lines(&[info])?,
            false => {
                let between = if number > 0 { "\n" } else { "" };
                between.to_owned() + &info.text(width())
            }
        };
        if !print(&text)? {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn check(options: &Check) -> Result<ExitCode> {
    let mut are_right = true;
    for path in &options.files {
        let checked = check::check_file(path)?;
        are_right &= checked.is_right();
        let text = match options.json {
            true => json_lines(&[check::json(path, &checked)])?,
            false => check::text(path, &checked),
        };
        print(&text)?;
    }
    Ok(status(!are_right))
}

fn repair(options: &Repair) -> Result<ExitCode> {
    let repaired = check::repair_file(
        &options.from,
        &options.to,
        options.written.writer(),
        options.written.force,
    )?;
    let text = match options.json {
        true => json_lines(&[check::repaired_json(&options.to, &repaired)])?,
        false => check::repaired_text(&options.to, &repaired),
    };
    print(&text)?;
    Ok(status(!repaired.is_lossless()))
}

fn run_cut(options: &Cut) -> Result<ExitCode> {
    let reader = open(&options.from)?;
    let info = reader.info();
    let (start_ns, end_ns) = options.part.times(info.statistics.times)?;
    let mut selection = Selection::default();
    selection.channels = Some(channels(&options.part.topics.chosen(), &info.definitions)?);
    (selection.start_ns, selection.end_ns) = (start_ns, end_ns);
    let (output, file) = OutputFile::create(&options.to, options.written.force)?;
    let copied = cut(&reader, &selection, file, options.written.writer());
    let copied = whole(copied, &options.from, &options.to)?;
    if copied.written.statistics.messages == copied.latched {
        let text = format!("{}: no message is in this part", options.from.display());
        return Err(Error::NotFound(text).into());
    }
    output.keep()?;
    if copied.latched > 0 {
        note(&format!("{} latched messages of before stand at its begin", copied.latched));
    }
    let lost = loss(&options.from, reader.report(), copied.losses.len() as u64);
    copied_to(&options.to, &copied, lost.into_iter())
}

fn run_merge(options: &Merge) -> Result<ExitCode> {
    let readers = options.from.iter().map(|path| open(path)).collect::<Result<Vec<_>, _>>()?;
    let (output, file) = OutputFile::create(&options.output, options.written.force)?;
    let copied = merge(&readers, file, options.written.writer());
    let copied = whole(copied, &options.from[0], &options.output)?;
    output.keep()?;
    let files = options.from.iter().zip(&readers);
    let lost = files.filter_map(|(path, reader)| loss(path, reader.report(), 0));
    let chunks = copied.losses.iter().map(|loss| format!("a part cannot be read: {loss}"));
    copied_to(&options.output, &copied, lost.chain(chunks))
}

/// What was copied, if it could be written.
fn whole(copied: Result<Copied, CopyError>, from: &Path, to: &Path) -> Result<Copied, Error> {
    let copied = copied.map_err(|error| match error {
        CopyError::Write(error) => cannot_write(to, &error),
        error => Error::Failed(format!("{}: {error}", from.display())),
    })?;
    // A disk that was full at the last moment is no error of the writer.
    if copied.written.lost.is_empty() {
        return Ok(copied);
    }
    Err(Error::Failed(format!("{}: the disk is full", to.display())))
}

fn copied_to(to: &Path, copied: &Copied, lost: impl Iterator<Item = String>) -> Result<ExitCode> {
    let lost: Vec<_> = lost.collect();
    lost.iter().for_each(|line| note(line));
    let messages = counted(copied.written.statistics.messages, "message");
    print(&format!("{}: {messages}\n", shown(to)))?;
    Ok(status(!lost.is_empty()))
}

fn run_diff(options: &Diff) -> Result<ExitCode> {
    // Status 1 says that the files differ.
    let of_input = |error: Error| match error {
        Error::NotFound(_) => error,
        other => Error::BadInput(other.to_string()),
    };
    let first = open(&options.first).map_err(of_input)?;
    let second = open(&options.second).map_err(of_input)?;
    let definitions = [&first.info().definitions, &second.info().definitions];
    let mut how = DiffOptions::default();
    how.topics = Some(choose(&options.topics.chosen(), definitions)?);
    how.tolerance = options.tolerance;
    how.pairing = match options.pair {
        Pair::Auto => Pairing::Auto,
        Pair::Sequence => Pairing::Sequence,
        Pair::Order => Pairing::Order,
    };
    let found = diff(&first, &second, &how)
        .map_err(|error| Error::BadInput(format!("{}: {error}", options.first.display())))?;
    let files = [(&options.first, &first), (&options.second, &second)];
    for (path, reader) in files {
        if let Some(lost) = loss(path, reader.report(), 0) {
            note(&lost);
        }
    }
    let text = match options.json {
        true => json_lines(&difference::json(&found, options.all))?,
        false => difference::text(&found, options.all, width()),
    };
    print(&text)?;
    Ok(if found.is_same() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn run_export(options: Export) -> Result<ExitCode> {
    let reader = open(&options.from)?;
    let info = reader.info();
    let request = Request {
        topics: choose(&options.part.topics.chosen(), [&info.definitions])?,
        are_named: !options.part.topics.topics.is_empty(),
        fields: options.fields,
        times: options.part.times(info.statistics.times)?,
        format: options.format.map(|format| match format {
            Format::Csv => export::Format::Csv,
            Format::Parquet => export::Format::Parquet,
        }),
        to: options.output,
        overwrite: options.force,
        from: options.from,
    };
    let exported = export::export(&reader, &request)?;
    exported.notes.iter().for_each(|line| note(line));
    let lost = loss(&request.from, reader.report(), 0);
    lost.iter().for_each(|line| note(line));
    for (path, topic, rows) in &exported.files {
        let (topic, messages) = (printable(topic), counted(*rows, "message"));
        if !print(&format!("{}: {messages} of {topic}\n", shown(path)))? {
            break;
        }
    }
    Ok(status(exported.is_lossy || lost.is_some()))
}

impl OutputOptions {
    fn writer(&self) -> Options {
        let mut options = Options::default();
        options.compression = self.compress.into();
        options
    }
}

impl Part {
    /// The times, in a file whose messages are of these.
    fn times(&self, of_file: (u64, u64)) -> Result<(Option<u64>, Option<u64>), Error> {
        let ns = |moment: Option<Moment>| moment.map(|moment| moment.ns(of_file));
        let (start, end) = (ns(self.start), ns(self.end));
        if let (Some(start), Some(end)) = (start, end)
            && start >= end
        {
            let (start, end) = (moment::text(start), moment::text(end));
            let text = format!("--start {start} is not before --end {end}");
            return Err(Error::BadInput(text));
        }
        Ok((start, end))
    }
}

impl TopicOptions {
    fn chosen(&self) -> Topics {
        Topics { wanted: self.topics.clone(), unwanted: self.exclude.clone() }
    }
}

fn tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("use a number from 0 on, such as 1e-6".to_owned()),
    }
}

fn shown(path: &Path) -> String {
    myelin_tools::text::printable(&path.display().to_string()).into_owned()
}

/// 3 if something was lost, or is wrong.
fn status(is_lossy: bool) -> ExitCode {
    if is_lossy { ExitCode::from(LOSSY) } else { ExitCode::SUCCESS }
}

/// The exit status for a file of which something cannot be read.
const LOSSY: u8 = 3;
