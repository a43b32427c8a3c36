//! `myelin play`.

mod status;
mod terminal;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use myelin_bag::player::{PlayError, Played, PlayerBuilder};
use myelin_bag::{Player, Recording, Time, Topics};
use myelin_tools::Error;
use myelin_tools::bag::moment::{self, Moment};
use myelin_tools::bag::topics::missing;
use myelin_tools::session::Session;
use myelin_tools::signals::Stop;
use myelin_tools::text::{counted, printable};
use serde_json::json;

use self::terminal::Keys;
use crate::attach::Attach;
use crate::output::{note, print};

/// See [`Player`].
#[derive(Args)]
pub struct Options {
    /// MCAP files, or folders of such files, such as the splits of one recording: played as one, in
    /// order of time.
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,
    /// Play so many times as fast as it was recorded.
    #[arg(long, short, value_name = "FACTOR", default_value = "1", value_parser = rate)]
    rate: f64,
    /// Begin at this time: 90s after the begin, -10s before the end, 2026-11-27T22:08:22.5Z, or
    /// seconds since 1970 as @1700000000.5.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    start: Option<Moment>,
    /// End before this time.
    #[arg(long, value_name = "TIME", value_parser = moment::parse, allow_hyphen_values = true)]
    end: Option<Moment>,
    /// Begin again at the end, until Ctrl-C.
    #[arg(long = "loop")]
    is_loop: bool,
    /// Begin paused: the space bar starts it.
    #[arg(long)]
    paused: bool,
    /// Play only this topic, or those that match a pattern with * and ?. May be repeated.
    #[arg(long, short, value_name = "GLOB")]
    topic: Vec<String>,
    /// Leave out this topic, or those that match. May be repeated.
    #[arg(long, short = 'x', value_name = "GLOB")]
    exclude: Vec<String>,
    /// Publish a topic under another name. May be repeated.
    #[arg(long, value_name = "FROM:=TO", value_parser = remap)]
    remap: Vec<(String, String)>,
    /// The time that counts: of publication, or of the record.
    #[arg(long, value_name = "TIME", value_enum, default_value_t = By::Publish)]
    by: By,
    /// Publish the time of the recording on /clock so many times a second, for nodes of ROS 2 with
    /// use_sim_time, and for Myelin's simulated clocks.
    #[arg(long, value_name = "HZ", value_parser = clock_hz)]
    clock: Option<f64>,
    /// Begin when there are so many subscribers in all, or when this topic has one. May be repeated.
    #[arg(long, value_name = "N|TOPIC")]
    wait_for: Vec<String>,
    /// Wait for slow subscribers that are reliable, so that they lose nothing: the playback becomes
    /// as slow as the slowest.
    #[arg(long)]
    wait_for_consumers: bool,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

/// Which time counts.
#[derive(Clone, Copy, ValueEnum)]
enum By {
    Publish,
    Log,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let stop = Stop::on_signals();
    let recording = Recording::open(&options.files).map_err(|error| explain(error, &[]))?;
    for (path, report) in recording.reports().filter(|(_, report)| !report.is_lossless()) {
        let lost = report.lost();
        let of_known = if lost.is_exact { "" } else { " at least" };
        note(&format!(
            "{}: the file is broken:{of_known} {} lost; the others are played",
            path.display(),
            counted(lost.known, "message")
        ));
    }
    let session = Session::open("myelin play", &options.attach.clone().place())?;
    let topics: Vec<String> = recording.topics().iter().map(|it| it.name.clone()).collect();
    let builder = builder(&options, &session, &recording)?;
    let mut player = builder.open(recording).map_err(|error| explain(error, &topics))?;
    for refused in player.refused() {
        note(&format!("left out: {refused}"));
    }
    if player.topics().next().is_none() {
        let what = "no topic of the recording can be published here".to_owned();
        return Err(Error::Failed(what).into());
    }
    for wanted in &options.wait_for {
        wait_for(&player, wanted, &stop)?;
    }
    let played = play(&mut player, &stop).map_err(|error| explain(error, &topics))?;
    let topics = player.topics().count();
    if options.json {
        print(&format!("{}\n", json(&played, topics)))?;
    } else {
        summary(&played, topics).iter().for_each(|line| note(line));
    }
    Ok(ExitCode::SUCCESS)
}

fn builder(
    options: &Options,
    session: &Session,
    recording: &Recording,
) -> Result<PlayerBuilder, Error> {
    if matches!(options.by, By::Publish) && recording.bytes() > LARGE_BYTES {
        note(
            "reading the times of publication, of which no file has an index; --by log begins at once",
        );
    }
    let lacks_times = || recording.lacks_publish_times().map_err(|error| explain(error, &[]));
    let by = match options.by {
        By::Publish if lacks_times()? => {
            note("the recording has no times of publication: those of the record count");
            Time::Log
        }
        By::Publish => Time::Publish,
        By::Log => Time::Log,
    };
    let mut builder = Player::builder(session.node()).by(by);
    builder = builder.rate(options.rate).paused(options.paused).repeat(options.is_loop);
    builder = builder.wait_for_slow(options.wait_for_consumers);
    if options.start.is_some() || options.end.is_some() {
        let (begin_ns, end_ns) = recording.times(by).map_err(|error| explain(error, &[]))?;
        let at = |moment: Moment| moment.ns((begin_ns, end_ns));
        if let Some(start) = options.start.map(at) {
            if start > end_ns || options.end.map(at).is_some_and(|end| end <= start) {
                let seconds = (end_ns - begin_ns) as f64 / 1e9;
                return Err(Error::BadInput(format!(
                    "--start is at or behind the end: the recording lasts {seconds:.1} s"
                )));
            }
            builder = builder.start_ns(start);
        }
        if let Some(end) = options.end.map(at) {
            builder = builder.end_ns(end);
        }
    }
    builder = options.topic.iter().fold(builder, |builder, glob| builder.topic(glob));
    builder = options.exclude.iter().fold(builder, |builder, glob| builder.exclude(glob));
    builder = options.remap.iter().fold(builder, |builder, (from, to)| builder.rename(from, to));
    Ok(match options.clock {
        Some(hz) => builder.clock_hz(hz),
        None => builder,
    })
}

/// Waits for so many subscribers, or for one of each topic that is meant; until the user wants the end.
fn wait_for(player: &Player, wanted: &str, stop: &Stop) -> Result<(), Error> {
    let (topics, count) = match wanted.parse::<usize>() {
        Ok(count) => (vec![None], count),
        Err(_) => {
            let named = Topics { wanted: vec![wanted.to_owned()], ..Topics::default() };
            let named = named.choose(player.topics());
            let named = named.map_err(|error| missing(&error, player.topics()))?;
            (named.into_iter().map(Some).collect(), 1)
        }
    };
    for topic in topics {
        if player.matched(topic) < count {
            match topic {
                Some(topic) => note(&format!("waiting for a subscriber of {}", printable(topic))),
                None => note(&format!("waiting for {}", counted(count, "subscriber"))),
            }
        }
        while !stop.is_set() && !player.wait_for_subscribers(topic, count, SLICE) {}
    }
    Ok(())
}

/// Plays to the end, or until the user wants it.
fn play(player: &mut Player, stop: &Stop) -> Result<Played, PlayError> {
    let control = player.control();
    let (ended, end) = channel::<()>();
    std::thread::scope(|scope| {
        let playing = scope.spawn(move || {
            let _ended = ended; // It is dropped at the end, also of a panic.
            player.run()
        });
        let mut keys = Keys::open();
        loop {
            if stop.is_set() {
                control.stop();
            }
            let wait = match &mut keys {
                Some(keys) => {
                    keys.turn(&control);
                    Duration::ZERO
                }
                None => SLICE,
            };
            if end.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
        }
        drop(keys);
        playing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What was played, in lines of at most 80 characters.
fn summary(played: &Played, topics: usize) -> Vec<String> {
    let (messages, topics) = (counted(played.messages, "message"), counted(topics as u64, "topic"));
    let seconds = played.duration.as_secs_f64();
    let mut lines = vec![format!("{messages} of {topics} in {seconds:.1} s")];
    if let Some(lateness) = played.lateness {
        let us = |ns: u64| ns as f64 / 1e3;
        lines.push(format!(
            "late by p50 {:.0} us, p99 {:.0} us, max {:.0} us",
            us(lateness.p50_ns),
            us(lateness.p99_ns),
            us(lateness.max_ns)
        ));
    }
    if played.least_share < 1.0 {
        lines.push(format!(
            "this host could not keep up: slowed to {:.2} of the rate for a while",
            played.least_share
        ));
    }
    if played.delayed > Duration::ZERO {
        lines.push(format!("stalls of {:.1} s were not made up", played.delayed.as_secs_f64()));
    }
    let counts = [
        (played.passed_over, "time", "a late subscriber was not waited for"),
        (played.unfit, "message", "left out that fit no sample of their type"),
        (played.unreadable, "part", "of the files left out, which cannot be read"),
    ];
    let counts = counts.iter().filter(|(count, ..)| *count > 0);
    lines.extend(counts.map(|(count, noun, what)| format!("{} {what}", counted(*count, noun))));
    lines
}

fn json(played: &Played, topics: usize) -> serde_json::Value {
    let us = |ns: u64| ns as f64 / 1e3;
    let lateness = played
        .lateness
        .map(|it| json!({ "p50": us(it.p50_ns), "p99": us(it.p99_ns), "max": us(it.max_ns) }));
    json!({
        "messages": played.messages, "bytes": played.bytes, "topics": topics,
        "duration_s": played.duration.as_secs_f64(), "lateness_us": lateness,
        "delayed_s": played.delayed.as_secs_f64(), "least_share": played.least_share,
        "late_subscribers": played.passed_over, "unfit": played.unfit,
        "unreadable": played.unreadable, "repeats": played.repeats,
        "is_complete": !played.is_stopped,
    })
}

/// The error with its exit status, and the nearest name.
fn explain(error: PlayError, topics: &[String]) -> Error {
    let text = || printable(&error.to_string()).into_owned();
    let is_missing = |error: &std::io::Error| error.kind() == std::io::ErrorKind::NotFound;
    match &error {
        PlayError::NoTopic(error) => missing(error, topics.iter().map(String::as_str)),
        PlayError::NoFile { .. } | PlayError::Nothing => Error::NotFound(text()),
        PlayError::Open { error: myelin_bag::OpenError::Io(io), .. } if is_missing(io) => {
            Error::NotFound(text())
        }
        PlayError::Setting { .. } => Error::BadInput(text()),
        _ => Error::Failed(text()),
    }
}

fn rate(text: &str) -> Result<f64, String> {
    let text = text.strip_prefix('x').unwrap_or(text);
    match text.parse::<f64>() {
        Ok(rate) if rate > 0.0 && rate <= 1e6 => Ok(rate),
        _ => Err("use a number above 0, at most 1,000,000, such as 2 or 0.5".to_owned()),
    }
}

fn clock_hz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hz) if hz > 0.0 && hz <= 1e4 => Ok(hz),
        _ => Err("use a number of Hz above 0, at most 10,000".to_owned()),
    }
}

fn remap(text: &str) -> Result<(String, String), String> {
    match text.split_once(":=") {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => {
            Ok((from.to_owned(), to.to_owned()))
        }
        _ => Err("write the names as FROM:=TO, such as /scan:=/scan_recorded".to_owned()),
    }
}

/// All of so much is not read in a moment.
const LARGE_BYTES: u64 = 1 << 30;
/// How soon the end, Ctrl-C and a subscriber are noticed.
const SLICE: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remap_has_two_names() {
        assert_eq!(remap("/a:=/b"), Ok(("/a".to_owned(), "/b".to_owned())));
        for wrong in ["", "/a", ":=/b", "/a:=", "/a=/b"] {
            assert!(remap(wrong).unwrap_err().contains(":="), "{wrong}");
        }
    }

    #[test]
    fn the_summary_fits_80_columns() {
        let mut played = Played::default();
        (played.messages, played.least_share) = (u64::from(u32::MAX), 0.01);
        played.delayed = Duration::from_secs(3600);
        (played.passed_over, played.unfit, played.unreadable) = (123_456, 123_456, 123_456);
        for line in summary(&played, 1_000) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}
