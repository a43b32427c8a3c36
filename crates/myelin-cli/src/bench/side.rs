//! `myelin bench pub` and `myelin bench sub`: one side of a stream, by hand.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use myelin_bench_kit::protocol::{Reliability, Role};
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::live::Trigger;
use myelin_bench_lab::side::{self, Side, Terms};
use myelin_bench_lab::stderr::print_line;
use myelin_tools::signals::interruption;

use super::values::{latency_limit, rate, run_time, size};
use super::{INTERRUPTED, TuningName};
use crate::complete;
use crate::say;

/// Arguments of `myelin bench pub`.
#[derive(Args)]
pub struct Publish {
    #[command(flatten)]
    both: Both,
    /// Messages a second, for instance 500 or 1k.
    #[arg(long, value_name = "RATE", default_value = "1k", value_parser = stream_rate)]
    rate: f64,
}

/// Arguments of `myelin bench sub`.
#[derive(Args)]
pub struct Subscribe {
    #[command(flatten)]
    both: Both,
    /// Which of several subscribers this is, from 0; by default the first that does not run on this
    /// host.
    #[arg(long, value_name = "NUMBER")]
    index: Option<u32>,
    /// End at the first message beyond a limit, for instance 'latency > 1 ms', and keep what the
    /// kernel traced until then.
    #[arg(long, value_name = "LIMIT", value_parser = latency_limit)]
    trace_on: Option<u64>,
}

/// Options of both sides.
#[derive(Args)]
struct Both {
    /// The system.
    #[arg(value_name = "SYSTEM", add = complete::systems())]
    system: String,
    /// Name of the topic; letters, digits and `-`.
    #[arg(long, default_value = "hand", value_parser = topic)]
    topic: String,
    /// Bytes of a message, for instance 64 or 1K; by default as the other side of this host has it, or
    /// 64.
    #[arg(long, value_parser = size)]
    size: Option<u64>,
    /// End after this time; otherwise with Ctrl-C, and a subscriber also with its publisher.
    #[arg(long, value_name = "TIME", value_parser = run_time)]
    duration: Option<Duration>,
    /// Subscribers that a publisher waits for; the same for both sides.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=256))]
    subscribers: Option<u32>,
    /// What happens to a message for which a subscriber has no room; by default as the system has it.
    #[arg(long, value_enum)]
    reliability: Option<ReliabilityName>,
    /// Messages kept for a slow subscriber.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    depth: Option<u32>,
    /// Pin to a CPU with SCHED_FIFO and lock memory.
    #[arg(long, value_enum, default_value = "default")]
    tuning: SideTuning,
    /// The CPU of `--tuning tuned`.
    #[arg(long, value_name = "NUMBER")]
    cpu: Option<usize>,
    /// Address of the other host.
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ReliabilityName {
    /// The subscriber loses a message.
    BestEffort,
    /// The publisher waits.
    Reliable,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SideTuning {
    /// No tuning.
    Default,
    /// Pinned CPU, SCHED_FIFO, locked memory.
    Tuned,
}

impl Both {
    fn side(self, role: Role) -> Result<Side, InputError> {
        if self.cpu.is_some() && self.tuning == SideTuning::Default {
            return Err(InputError::new("--cpu: only a tuned side is pinned")
                .remedy("add --tuning tuned, or leave it out"));
        }
        let terms = Terms {
            payload_bytes: self.size,
            subscribers: self.subscribers,
            index: None,
            reliability: self.reliability.map(|name| match name {
                ReliabilityName::BestEffort => Reliability::BestEffort,
                ReliabilityName::Reliable => Reliability::Reliable,
            }),
            depth: self.depth,
        };
        let tuning = match self.tuning {
            SideTuning::Default => TuningName::Default,
            SideTuning::Tuned => TuningName::Tuned,
        };
        Ok(Side {
            role,
            system: self.system,
            topic: self.topic,
            terms,
            // Only a publisher needs it.
            rate_hz: 1.0,
            duration: self.duration,
            tuning: tuning.into(),
            cpu: self.cpu,
            peer: self.peer,
            trace_on_ns: None,
        })
    }
}

/// Publishes.
pub fn publish(options: Publish) -> Result<ExitCode> {
    let side = options.both.side(Role::Ping)?;
    run(&Side { rate_hz: options.rate, ..side })
}

/// Subscribes.
pub fn subscribe(options: Subscribe) -> Result<ExitCode> {
    let side = options.both.side(Role::Pong)?;
    let terms = Terms { index: options.index, ..side.terms };
    if let (Some(index), Some(number)) = (terms.index, terms.subscribers)
        && index >= number
    {
        return Err(InputError::new(format!("--index {index}: there are {number} --subscribers"))
            .remedy("they are numbered from 0")
            .into());
    }
    run(&Side { terms, trace_on_ns: options.trace_on, ..side })
}

fn run(side: &Side) -> Result<ExitCode> {
    let Some(ended) = side::run(side, interruption())? else {
        print_line("interrupted: nobody came, so nothing was measured");
        return Ok(ExitCode::from(INTERRUPTED));
    };
    say(&ended.summary);
    if let Some(failure) = &ended.failure {
        print_line(format_args!("error: {}: {failure}", side.system));
        return Ok(ExitCode::FAILURE);
    }
    Ok(exceeded(ended.trigger.as_deref(), None)?.unwrap_or(ExitCode::SUCCESS))
}

/// If a message exceeded the limit of `--trace-on`: says which, keeps the kernel's trace in `folder`
/// or here, and returns the status.
pub fn exceeded(trigger: Option<&Trigger>, folder: Option<&Path>) -> Result<Option<ExitCode>> {
    let Some((hit, trigger)) = trigger.and_then(|trigger| Some((trigger.hit()?, trigger))) else {
        return Ok(None);
    };
    say(&format!("{hit}\n"));
    if let Some(trace) = trigger.trace() {
        let name = chrono::Local::now().format("trace-%Y%m%d-%H%M%S.txt").to_string();
        let path = folder.map_or_else(|| PathBuf::from(&name), |folder| folder.join(&name));
        trace.save(&path).with_context(|| format!("the trace: {}", path.display()))?;
        say(&format!("the kernel's trace, on the same clock: {}\n", path.display()));
    }
    Ok(Some(ExitCode::from(LIMIT_EXCEEDED)))
}

fn topic(text: &str) -> Result<String, String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-';
    match (1..=32).contains(&text.len()) && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("use up to 32 letters, digits and `-`".to_owned()),
    }
}

fn stream_rate(text: &str) -> Result<f64, String> {
    rate(text)?.ok_or_else(|| "messages one way need a rate, such as 1k".to_owned())
}

/// The status if a message exceeded the limit of `--trace-on`.
const LIMIT_EXCEEDED: u8 = 4;
