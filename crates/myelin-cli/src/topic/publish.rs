//! `myelin topic pub`.

use std::io::BufRead;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;
use myelin_tools::publish::Target;
use myelin_tools::signals::Stop;
use myelin_tools::text::counted;
use myelin_tools::{Error, duration, input};

use crate::attach::Attach;
use crate::complete;
use crate::output::print;

/// See [`Target`].
#[derive(Args)]
pub struct Options {
    /// The topic.
    #[arg(value_name = "TOPIC", add = complete::topics())]
    topic: String,
    /// JSON or YAML, such as '{x: 1.5, name: home}'; @FILE reads a file; - reads standard input, a
    /// value a line. A field that is missing becomes zero or empty.
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    /// Publish so many times a second; without --count, the values again and again.
    #[arg(long, value_name = "HZ", value_parser = rate)]
    rate: Option<f64>,
    /// Publish so many samples in all.
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// The type, if nobody has the topic yet or it has several: the name of a type that the domain
    /// has, or a layout, such as f64 or 'Point{x: f32 @0, y: f32 @4} 8'.
    #[arg(long = "type", value_name = "TYPE")]
    ty: Option<String>,
    /// Wait for so many subscribers first, so that a single sample arrives.
    #[arg(long, value_name = "N", default_value_t = 1)]
    wait: usize,
    /// Wait for them at most so long.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration::parse)]
    wait_limit: Duration,
    /// Print one JSON object at the end.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

pub fn run(options: Options) -> Result<ExitCode> {
    let stop = Stop::on_signals();
    // A mistake in the value is found before anything else happens.
    let mut values = Values::open(&options)?;
    let (session, place) = super::open("myelin topic pub", options.attach)?;
    let target = Target::open(session, &place, &options.topic, options.ty.as_deref())?;
    values.encode(&target)?;
    target.wait_for(options.wait, options.wait_limit, &stop)?;
    let mut published = 0_u64;
    let mut passed_over = 0;
    let begin = Instant::now();
    while options.count != Some(published) && !stop.is_set() {
        let Some(sample) = values.next(&target, &stop)? else { break };
        if let Some(rate) = options.rate
            && !sleep_until(begin + Duration::from_secs_f64(published as f64 / rate), &stop)
        {
            break;
        }
        passed_over += u64::from(target.publish(&sample)?);
        published += 1;
    }
    let subscribers = target.matched();
    target.finish();
    let name = target.name();
    let text = match options.json {
        true => serde_json::json!({
            "topic": name, "published": published, "subscribers": subscribers,
            "late_subscribers": passed_over,
        })
        .to_string(),
        false => {
            let late = match passed_over {
                0 => String::new(),
                times => {
                    let times = counted(times, "time");
                    format!("; {times} a reliable subscriber was late, and was not waited for")
                }
            };
            let (samples, of) = (counted(published, "sample"), counted(subscribers, "subscriber"));
            format!("{name}: published {samples} to {of}{late}")
        }
    };
    print(&format!("{text}\n"))?;
    Ok(ExitCode::SUCCESS)
}

/// What is published.
enum Values {
    /// Values of the line or of a file, and their samples; again and again if `endless`.
    Known { values: Vec<serde_json::Value>, samples: Vec<Vec<u8>>, next: usize, endless: bool },
    /// Lines of standard input.
    Lines { lines: Receiver<std::io::Result<String>>, number: usize, waiting: Vec<Vec<u8>> },
}

impl Values {
    fn open(options: &Options) -> Result<Values, Error> {
        if options.value == "-" {
            let (to, lines) = sync_channel(LINES_MAX);
            // It ends with the input, or with the process.
            std::thread::spawn(move || {
                for line in std::io::stdin().lock().lines() {
                    if to.send(line).is_err() {
                        return;
                    }
                }
            });
            return Ok(Values::Lines { lines, number: 0, waiting: Vec::new() });
        }
        let text = match options.value.strip_prefix('@') {
            Some(file) => std::fs::read_to_string(file)
                .map_err(|error| Error::Io { what: file.to_owned(), error })?,
            None => options.value.clone(),
        };
        let values = input::values(&text)?;
        let endless = options.rate.is_some() || options.count.is_some();
        Ok(Values::Known { values, samples: Vec::new(), next: 0, endless })
    }

    /// Checks all values that are known.
    fn encode(&mut self, target: &Target) -> Result<(), Error> {
        let Values::Known { values, samples, .. } = self else { return Ok(()) };
        let several = values.len() > 1;
        for (at, value) in values.iter().enumerate() {
            let encoded = target.encode(value).map_err(|error| match several {
                true => Error::BadInput(format!("value {}: {error}", at + 1)),
                false => error,
            });
            samples.push(encoded?);
        }
        Ok(())
    }

    /// The next sample; `None` at the end.
    fn next(&mut self, target: &Target, stop: &Stop) -> Result<Option<Vec<u8>>, Error> {
        match self {
            Values::Known { samples, next, endless, .. } => {
                if *next == samples.len() && !*endless {
                    return Ok(None);
                }
                *next = *next % samples.len() + 1;
                Ok(Some(samples[*next - 1].clone()))
            }
            Values::Lines { lines, number, waiting } => loop {
                if !waiting.is_empty() {
                    return Ok(Some(waiting.remove(0)));
                }
                let line = match lines.recv_timeout(SLICE) {
                    Ok(line) => line,
                    Err(RecvTimeoutError::Timeout) if !stop.is_set() => continue,
                    Err(_) => return Ok(None),
                };
                *number += 1;
                let what = "standard input".to_owned();
                let line = line.map_err(|error| Error::Io { what, error })?;
                if line.trim().is_empty() {
                    continue;
                }
                let at = |error: Error| Error::BadInput(format!("line {number}: {error}"));
                for value in input::values(&line).map_err(at)? {
                    waiting.push(target.encode(&value).map_err(at)?);
                }
            },
        }
    }
}

/// False if the user wants the end first.
fn sleep_until(time: Instant, stop: &Stop) -> bool {
    loop {
        let left = time.saturating_duration_since(Instant::now());
        if stop.is_set() || left.is_zero() {
            return !stop.is_set();
        }
        std::thread::sleep(left.min(SLICE));
    }
}

fn rate(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(hz) if (1e-6..=1e6).contains(&hz) => Ok(hz),
        _ => Err("use a number of Hz above 0, at most 1,000,000".to_owned()),
    }
}

/// Lines of standard input that wait.
const LINES_MAX: usize = 64;
const SLICE: Duration = Duration::from_millis(100);
