//! `myelin record`.

mod ring;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use myelin_bag::recorder::{
    End, FileOptions, Files, Recorded, Recorder, RecorderBuilder, Status, TopicStatus,
};
use myelin_bag::ring::RingHandle;
use myelin_bag::{Compression, RecordedLosses, WriteError};
use myelin_tools::numbers::bytes as bytes_text;
use myelin_tools::session::{Place, Session};
use myelin_tools::signals::{Asked, Stops, outlive_file_size_limit};
use myelin_tools::text::{counted, printable, shortened};
use myelin_tools::{Error, duration, names, select, size};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde_json::{Value, json};

use crate::attach::Attach;
use crate::complete;
use crate::output::{is_dumb, note, print, width};

/// See [`Recorder`].
#[derive(Args)]
#[command(after_help = LOSSES)]
pub struct Options {
    /// Topics; * stands for any text and ? for one character. Without topics and types, all.
    #[arg(value_name = "TOPIC", add = complete::topics())]
    topics: Vec<String>,
    /// The file, which must not exist, or a folder; by default a name with the date.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Record the topics of this type, too, such as sensor_msgs/msg/Imu or '*/Image'.
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Leave out these topics.
    #[arg(long, value_name = "TOPIC", add = complete::topics())]
    exclude: Vec<String>,
    /// Record the topics of ROS 2's services, too.
    #[arg(long)]
    services: bool,
    /// Begin another file when one has this size, such as 2GB.
    #[arg(long, value_name = "SIZE", value_parser = above_zero)]
    split_size: Option<u64>,
    /// Begin another file when one has messages of this time, such as 5min.
    #[arg(long, value_name = "TIME", value_parser = time)]
    split_time: Option<Duration>,
    /// End before less than this is free on the disk, such as 5GB.
    #[arg(long, value_name = "SIZE", value_parser = above_zero)]
    keep_free: Option<u64>,
    /// Remove the oldest file of this recording instead.
    #[arg(long, requires = "keep_free")]
    delete_oldest: bool,
    /// Record at most so many messages a second of a topic or pattern, such as 'camera/*=5'.
    #[arg(long, value_name = "TOPIC=HZ", value_parser = max_rate)]
    max_rate: Vec<(String, f64)>,
    /// Let the reliable publishers of these topics wait for the recorder; by default nobody does.
    #[arg(long, value_name = "TOPIC", add = complete::topics())]
    reliable: Vec<String>,
    /// Compress the file, by threads that run when nothing else does.
    #[arg(long, value_name = "HOW", default_value = "none")]
    compress: Compress,
    /// How much may wait to be written, in the memory of the publishers.
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = above_zero)]
    buffer: u64,
    /// End after this time.
    #[arg(long, value_name = "TIME", value_parser = time)]
    duration: Option<Duration>,
    /// End after so many messages, of all topics together.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object a second, and one at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    ring: ring::FlightRecorder,
    #[command(flatten, next_help_heading = "Options")]
    attach: Attach,
}

/// How chunks of a file are compressed.
#[derive(Clone, Copy, ValueEnum)]
pub enum Compress {
    None,
    Lz4,
    Zstd,
}

impl From<Compress> for Compression {
    fn from(how: Compress) -> Compression {
        match how {
            Compress::None => Compression::None,
            Compress::Lz4 => Compression::Lz4,
            Compress::Zstd => Compression::Zstd,
        }
    }
}

pub fn run(options: Options) -> Result<ExitCode> {
    let stops = Stops::on_signals().context("signals cannot be taken")?;
    let asked = Asked::on_signal();
    outlive_file_size_limit();
    use_all_descriptors();
    let file_options = file_options(&options)?;
    let name = if options.ring.is_ring() { ring::NODE } else { "myelin record" };
    let (session, place) = crate::topic::open(name, options.attach.clone())?;
    if options.ring.is_trigger() {
        return ring::trigger(&session);
    }
    let path = path(options.output.as_deref())?;
    let builder = builder(&session, &options);
    let (recorder, ring) = if options.ring.is_ring() {
        let ring = options.ring.open(&path, file_options.writer)?;
        let handle = ring.handle();
        (builder.start(ring), Some(handle))
    } else {
        let files = Files::create(&path, file_options).map_err(|error| refused(&path, error))?;
        (builder.start(files), None)
    };
    let recorder = recorder.map_err(|error| Error::Failed(error.to_string()))?;
    report_missing(&session, &place, &options)?;
    let mut screen = Screen::new(options.json);
    let on_request = ring.as_ref().map(|ring| (ring, &asked));
    let is_read = record(&recorder, &options, &stops, on_request, &mut screen)?;
    recorder.end();
    while !recorder.is_finished() {
        if stops.count() > 1 {
            recorder.discard();
        }
        std::thread::sleep(SLICE);
    }
    let mut recorded = recorder.finish();
    if let Some(ring) = &ring {
        // They are gone now.
        recorded.status.progress.files.clear();
        screen.clear()?;
        ring::report(ring.take_saved(), options.json)?;
    }
    if is_read {
        screen.finish(&recorded)?;
    }
    let named: Vec<_> = options.topics.iter().chain(&options.types).cloned().collect();
    if recorded.status.topics.is_empty() && !named.is_empty() {
        return Err(Error::NotFound(format!("there was no topic {}", named.join(", "))).into());
    }
    match recorded.end {
        End::LittleSpace(why) | End::Failed(why) => Err(Error::Failed(why).into()),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Until the end; false if nobody reads the output any more.
fn record(
    recorder: &Recorder,
    options: &Options,
    stops: &Stops,
    ring: Option<(&RingHandle, &Asked)>,
    screen: &mut Screen,
) -> Result<bool> {
    let begin = Instant::now();
    let mut shown = begin;
    while stops.count() == 0 && !recorder.is_ending() {
        let left = options.duration.map_or(SLICE, |it| it.saturating_sub(begin.elapsed()));
        if left.is_zero() {
            break;
        }
        std::thread::sleep(left.min(SLICE));
        if let Some((ring, asked)) = ring {
            if asked.take() {
                ring.trigger("a signal");
            }
            let saved = ring.take_saved();
            if !saved.is_empty() {
                screen.clear()?;
                ring::report(saved, options.json)?;
            }
        }
        let problems = recorder.problems();
        if shown.elapsed() < INTERVAL && problems.is_empty() {
            continue;
        }
        screen.clear()?;
        problems.iter().for_each(|it| note(it));
        if shown.elapsed() >= INTERVAL {
            shown = Instant::now();
            if !screen.show(&recorder.status())? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn builder(session: &Session, options: &Options) -> RecorderBuilder {
    let mut builder = Recorder::builder(session.node()).services(options.services);
    builder = options.topics.iter().fold(builder, |builder, it| builder.topic(it));
    builder = options.types.iter().fold(builder, |builder, it| builder.of_type(it));
    builder = options.exclude.iter().fold(builder, |builder, it| builder.exclude(it));
    builder = options.reliable.iter().fold(builder, |builder, it| builder.reliable(it));
    let rates = options.max_rate.iter();
    builder = rates.fold(builder, |builder, (topic, hz)| builder.max_rate(topic, *hz));
    builder = builder.buffer_bytes(options.buffer);
    options.count.map_or(builder.clone(), |count| builder.messages_max(count))
}

fn file_options(options: &Options) -> Result<FileOptions, Error> {
    let mut of_files = FileOptions::default();
    (of_files.split_bytes, of_files.split_time) = (options.split_size, options.split_time);
    (of_files.keep_free_bytes, of_files.delete_oldest) = (options.keep_free, options.delete_oldest);
    of_files.writer.compression = options.compress.into();
    // Threads of the lowest priority are not waited for.
    of_files.writer.drops_when_behind = true;
    if options.delete_oldest && !of_files.is_split() {
        let error =
            "--delete-oldest removes complete files: use it with --split-size or --split-time";
        return Err(Error::BadInput(error.to_owned()));
    }
    Ok(of_files)
}

/// The file of the recording.
fn path(output: Option<&Path>) -> Result<PathBuf, Error> {
    let by_date = || {
        let now = chrono::Local::now();
        PathBuf::from(now.format("recording_%Y-%m-%d_%H-%M-%S.mcap").to_string())
    };
    let Some(output) = output else { return Ok(by_date()) };
    if output.as_os_str().as_encoded_bytes().ends_with(b"/") {
        let what = output.display().to_string();
        std::fs::create_dir_all(output).map_err(|error| Error::Io { what, error })?;
    }
    Ok(match output {
        folder if folder.is_dir() => folder.join(by_date()),
        file if file.extension().is_none() => file.with_extension("mcap"),
        file => file.to_owned(),
    })
}

/// Why the file cannot be created.
fn refused(path: &Path, error: WriteError) -> Error {
    use std::io::ErrorKind::{AlreadyExists, NotFound};
    let path = path.display().to_string();
    let WriteError::Io(error) = error else { return Error::Failed(format!("{path}: {error}")) };
    match error.kind() {
        AlreadyExists => Error::BadInput(format!("{path} exists; name another file with --output")),
        NotFound => Error::NotFound(format!("{path}: there is no such folder")),
        _ => Error::Io { what: path, error },
    }
}

/// Names that nobody has yet are waited for. The user knows, because they may be misspelt.
fn report_missing(session: &Session, place: &Place, options: &Options) -> Result<(), Error> {
    let graph = session.graph(ANSWER_LIMIT)?;
    let all = select::all(&graph);
    for typed in &options.topics {
        if all.keys().any(|name| select::is_meant(typed, *name, &all)) {
            continue;
        }
        let what = if names::is_pattern(typed) { "that matches" } else { "of the name" };
        let mut text = format!("no topic {what} {typed:?} is there yet");
        if let Some(nearest) = names::nearest(typed, all.keys().map(|(shown, _)| *shown)) {
            text += &format!("; did you mean {nearest:?}?");
        }
        let elsewhere = select::elsewhere(session, place);
        note(&format!("{text} {elsewhere}"));
    }
    Ok(())
}

/// A subscriber has some file descriptors; 1,024 are few for a robot.
fn use_all_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // Without it there are as many as there were.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Where the state is shown.
struct Screen {
    json: bool,
    /// Whether the line is drawn over the last one.
    in_place: bool,
    is_drawn: bool,
    before: Status,
}

impl Screen {
    fn new(json: bool) -> Screen {
        let in_place = std::io::stdout().is_terminal() && !is_dumb() && !json;
        Screen { json, in_place, is_drawn: false, before: Status::default() }
    }

    /// False if nobody reads any more. Without a terminal only the end is of interest.
    fn show(&mut self, status: &Status) -> Result<bool> {
        let before = std::mem::replace(&mut self.before, status.clone());
        let passed = (status.elapsed - before.elapsed).as_secs_f64().max(1e-3);
        let rate = |now: u64, before: u64| now.saturating_sub(before) as f64 / passed;
        let hz = rate(status.messages, before.messages);
        let bytes_per_s = rate(status.bytes, before.bytes);
        if self.json {
            let mut object = object(status);
            object["rate_hz"] = json!((hz * 10.0).round() / 10.0);
            object["bytes_per_s"] = json!(bytes_per_s.round() as u64);
            return print(&format!("{object}\n"));
        }
        if !self.in_place {
            return Ok(true);
        }
        self.is_drawn = true;
        // The last column stays free: a full line would break.
        let columns = width().unwrap_or(80).saturating_sub(1);
        print(&format!("\r\x1b[K{}", line(status, hz, bytes_per_s, columns)))
    }

    fn clear(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_drawn) {
            print("\r\x1b[K")?;
        }
        Ok(())
    }

    fn finish(&mut self, recorded: &Recorded) -> Result<()> {
        self.clear()?;
        recorded.problems.iter().for_each(|it| note(it));
        if self.json {
            let mut object = object(&recorded.status);
            object["summary"] = true.into();
            object["end"] = match &recorded.end {
                End::Stopped => "stopped".into(),
                End::Count => "count".into(),
                End::LittleSpace(_) => "little_space".into(),
                _ => "failed".into(),
            };
            object["by_topic"] = recorded.status.topics.iter().map(topic_object).collect();
            print(&format!("{object}\n"))?;
        } else {
            print(&summary(&recorded.status, width()))?;
        }
        Ok(())
    }
}

/// How it goes, in one line of a terminal: what has no room is left out, the least important first.
fn line(status: &Status, hz: f64, bytes_per_s: f64, columns: usize) -> String {
    let seconds = status.elapsed.as_secs();
    let (minutes, seconds) = (seconds / 60, seconds % 60);
    let lost = status.losses.total();
    // The number is the importance.
    let mut parts = vec![
        (9, format!("{minutes}:{seconds:02}")),
        (4, counted(status.topics.len() as u64, "topic")),
        (6, counted(status.messages, "message")),
        (5, format!("{hz:.0}/s")),
        (7, bytes_text(status.progress.bytes as f64)),
        (3, format!("{}/s", bytes_text(bytes_per_s))),
        (8, format!("{lost} lost")),
    ];
    if let Some(free) = status.progress.free_bytes {
        parts.push((2, format!("{} free", bytes_text(free as f64))));
    }
    if status.buffered_bytes > BUFFERED_SHOWN {
        parts.push((1, format!("{} waiting", bytes_text(status.buffered_bytes as f64))));
    }
    loop {
        let text = parts.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("  ");
        let least = parts.iter().map(|(importance, _)| *importance).min();
        if text.chars().count() <= columns || parts.len() == 1 {
            return shortened(&text, columns).into_owned();
        }
        parts.retain(|(importance, _)| Some(*importance) != least);
    }
}

/// What was recorded and what was lost.
fn summary(status: &Status, width: Option<usize>) -> String {
    let Status { messages, losses, skipped, progress, .. } = status;
    let topics = status.topics.iter().filter(|it| it.messages > 0).count();
    let seconds = status.elapsed.as_secs_f64();
    let (messages, topics) = (counted(*messages, "message"), counted(topics as u64, "topic"));
    let mut lines = vec![format!("{messages} of {topics} in {seconds:.1} s")];
    for file in &progress.files {
        let bytes = std::fs::metadata(file).map(|it| it.len()).unwrap_or(0);
        lines.push(format!("{} ({})", file.display(), bytes_text(bytes as f64)));
    }
    if progress.removed > 0 {
        let removed = counted(progress.removed, "older file");
        lines.push(format!("{removed} removed to keep space free"));
    }
    if *skipped > 0 {
        lines.push(format!("{skipped} more left out by --max-rate or --count"));
    }
    if losses.total() == 0 {
        lines.push("nothing was lost".to_owned());
    } else {
        lines.push(format!("lost: {}", causes(losses)));
    }
    let mut lossy: Vec<_> = status.topics.iter().filter(|it| it.losses.total() > 0).collect();
    lossy.sort_by_key(|it| std::cmp::Reverse(it.losses.total()));
    let more = lossy.len().saturating_sub(LOSSY_MAX);
    for topic in lossy.iter().take(LOSSY_MAX) {
        lines.push(format!("  {}: {}", topic.name, causes(&topic.losses)));
    }
    if more > 0 {
        lines.push(format!("  and {}; --json has all", counted(more, "more topic")));
    }
    let columns = width.unwrap_or(usize::MAX);
    let line = |it: &String| format!("{}\n", shortened(&printable(it), columns));
    lines.iter().map(line).collect()
}

/// A number for each cause.
fn causes(losses: &RecordedLosses) -> String {
    let causes = [
        (losses.publisher_ring, "in the publisher's ring"),
        (losses.recorder, "by the recorder"),
        (losses.disk, "by the disk"),
    ];
    let causes = causes.iter().filter(|(count, _)| *count > 0);
    causes.map(|(count, cause)| format!("{count} {cause}")).collect::<Vec<_>>().join(", ")
}

fn object(status: &Status) -> Value {
    json!({
        "elapsed_s": (status.elapsed.as_secs_f64() * 1e3).round() / 1e3,
        "topics": status.topics.len(),
        "messages": status.messages,
        "bytes": status.bytes,
        "skipped": status.skipped,
        "repeated": status.repeated,
        "lost": losses_object(&status.losses),
        "buffered_bytes": status.buffered_bytes,
        "file_bytes": status.progress.bytes,
        "files": status.progress.files,
        "files_removed": status.progress.removed,
        "free_bytes": status.progress.free_bytes,
    })
}

fn topic_object(topic: &TopicStatus) -> Value {
    json!({
        "topic": topic.name,
        "type": topic.type_name,
        "messages": topic.messages,
        "bytes": topic.bytes,
        "skipped": topic.skipped,
        "lost": losses_object(&topic.losses),
    })
}

fn losses_object(losses: &RecordedLosses) -> Value {
    json!({
        "publisher_ring": losses.publisher_ring,
        "recorder": losses.recorder,
        "disk": losses.disk,
    })
}

fn above_zero(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text)?;
    if bytes > 0 { Ok(bytes) } else { Err("use a size above 0".to_owned()) }
}

fn time(text: &str) -> Result<Duration, String> {
    let time = duration::parse(text)?;
    if time.is_zero() { Err("use a time above 0".to_owned()) } else { Ok(time) }
}

fn max_rate(text: &str) -> Result<(String, f64), String> {
    let wrong = || format!("{text:?} is no limit: write TOPIC=HZ, such as 'camera/*=5'");
    let (topic, hz) = text.rsplit_once('=').ok_or_else(wrong)?;
    let hz: f64 = hz.trim().parse().map_err(|_| wrong())?;
    let is_rate = hz.is_finite() && hz > 0.0 && !topic.is_empty();
    is_rate.then(|| (topic.to_owned(), hz)).ok_or_else(wrong)
}

const LOSSES: &str = "\
It takes part as a best-effort subscriber that polls: publishers do not wait for it. What it misses is
counted by its cause: overwritten in the publisher's ring before it was taken (a larger depth of the
publisher gives more time), no room in the recorder's buffer (the disk is too slow), or a disk that
failed. Ctrl-C ends and completes the file; a second one does so without what waits to be written.";
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
const SLICE: Duration = Duration::from_millis(50);
const INTERVAL: Duration = Duration::from_secs(1);
/// Bytes that wait are of interest if they are many.
const BUFFERED_SHOWN: u64 = 16 << 20;
const LOSSY_MAX: usize = 10;
