//! `myelin doctor`: causes of latency on this host, the commands that remove them, and leftovers of
//! killed processes; or what is wrong with the path to another host.
//!
//! `host` reads and judges (each cause in a file of its subject), `measure` measures, `finding` is
//! the result, `render` its text. docs/how-to/doctor.md says what each finding means.

mod cpu;
mod cyclonedds;
mod finding;
mod host;
mod idle;
mod kernel;
mod measure;
mod memory;
mod network;
mod preemption;
mod render;
mod rights;
mod wake_up;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use myelin_bench_lab::input_error::InputError;
use myelin_bench_lab::root::Root;
use myelin_tools::leftovers::Leftovers;

use finding::{Finding, Report, SCHEMA, State};
use host::Host;
use measure::Measured;

/// The parts to examine, and whether to remove leftovers.
#[derive(Args)]
pub struct Options {
    /// Remove the files that dead nodes left behind. It changes nothing else on the system.
    #[arg(long)]
    fix: bool,
    /// Where the sockets of nodes lie; by default in MYELIN_RUNTIME_DIR, or else in /dev/shm.
    #[arg(long, value_name = "DIR")]
    runtime_dir: Option<PathBuf>,
    /// Check only this.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Print one JSON object and nothing else; docs/how-to/doctor.md names its fields.
    #[arg(long)]
    json: bool,
    /// Examine the path to this host instead, best with `myelin doctor --serve` running there: a name or an
    /// address, such as fd00::2 or fe80::2%eth0.
    #[arg(long, value_name = "HOST", conflicts_with_all = ["fix", "only", "runtime_dir", "root"])]
    network: Option<String>,
    /// Be the partner of `--network` on another host, until Ctrl-C. It asks for no password.
    #[arg(long, conflicts_with_all = ["fix", "only", "runtime_dir", "root", "network", "json", "domain"])]
    serve: bool,
    /// TCP and UDP port of the partner; by default 7390.
    #[arg(long)]
    port: Option<u16>,
    /// Try the ports of this DDS domain; by default that of MYELIN_DOMAIN, or else of 0.
    #[arg(long, value_name = "N", requires = "network",
          value_parser = clap::value_parser!(u32).range(..=i64::from(network::DOMAIN_MAX)))]
    domain: Option<u32>,
    /// Read /proc, /sys, /dev and /boot below this folder, and take the measurements from its
    /// measured.json, if there is one: for tests.
    #[arg(long, value_name = "DIR", hide = true)]
    root: Option<PathBuf>,
}

/// A part of the examination.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Causes of latency on this host.
    Host,
    /// Leftovers of dead nodes.
    Leftovers,
}

/// Exit status 1 if something costs latency, or something is left behind.
pub fn run(options: &Options) -> Result<ExitCode> {
    check(options)?;
    if options.serve {
        network::serve(options.port.unwrap_or(network::PORT))?;
        return Ok(ExitCode::SUCCESS);
    }
    let report = match &options.network {
        Some(host) => examine_path(host, options)?,
        None => examine(options)?,
    };
    if options.json {
        crate::say(&format!("{}\n", serde_json::to_string_pretty(&report)?));
    } else {
        crate::say(&render::text(&report));
    }
    Ok(if report.wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What costs latency on this host, without a measurement: for `myelin why --late`.
pub fn costs() -> Vec<Finding> {
    let host = Host { root: Root::machine(), measured: None };
    let is_cause = |finding: &Finding| {
        finding.state == State::Costs && OF_RUNNING_PROGRAMS.contains(&finding.cause)
    };
    host.examine().into_iter().filter(is_cause).collect()
}

fn examine(options: &Options) -> Result<Report> {
    let (mut findings, mut measured, mut leftovers) = (None, None, None);
    if options.only != Some(Part::Leftovers) {
        let host = match &options.root {
            Some(root) => Host { root: Root::at(root), measured: recorded(root)? },
            None => Host { root: Root::machine(), measured: Some(measure::measure()) },
        };
        findings = Some(host.examine());
        measured = host.measured;
    }
    if options.only != Some(Part::Host) {
        // As a program that opens a node.
        let variable = std::env::var_os("MYELIN_RUNTIME_DIR").filter(|folder| !folder.is_empty());
        let folder = options.runtime_dir.clone().or_else(|| variable.map(PathBuf::from));
        leftovers = Some(Leftovers::examine(folder.as_deref(), options.fix)?);
    }
    let costs = |finding: &Finding| finding.state == State::Costs;
    let wrong = findings.iter().flatten().any(costs)
        || leftovers.as_ref().is_some_and(|leftovers| leftovers.left() > 0);
    Ok(Report { schema: SCHEMA, wrong, findings, measured, leftovers, network: None })
}

fn examine_path(host: &str, options: &Options) -> Result<Report> {
    let domain = match (options.domain, std::env::var("MYELIN_DOMAIN")) {
        (Some(domain), _) => domain,
        (None, Ok(text)) if !text.is_empty() => domain_of(&text)?,
        (None, _) => 0,
    };
    let path = network::examine(host, options.port, domain)?;
    let wrong = path.findings.iter().any(|finding| finding.state == State::Costs);
    let (findings, measured, leftovers) = Default::default();
    Ok(Report { schema: SCHEMA, wrong, findings, measured, leftovers, network: Some(path) })
}

fn domain_of(text: &str) -> Result<u32, InputError> {
    let domain = text.parse().ok().filter(|domain| *domain <= network::DOMAIN_MAX);
    domain.ok_or_else(|| {
        let remedy = format!("use 0 to {}", network::DOMAIN_MAX);
        InputError::new(format!("MYELIN_DOMAIN: {text:?} is no domain")).remedy(remedy)
    })
}

/// The measurements of another host, as `--json` printed them.
fn recorded(root: &Path) -> Result<Option<Measured>> {
    match std::fs::read(root.join("measured.json")) {
        Ok(text) => Ok(Some(serde_json::from_slice(&text)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn check(options: &Options) -> Result<(), InputError> {
    let about_leftovers = options.fix || options.runtime_dir.is_some();
    if options.only == Some(Part::Host) && about_leftovers {
        let error = InputError::new("--fix and --runtime-dir apply only to leftovers");
        return Err(error.remedy("leave out --only host"));
    }
    if options.port.is_some() && options.network.is_none() && !options.serve {
        let error = InputError::new("--port is that of the partner at the other end of a path");
        return Err(error.remedy("give --network HOST or --serve"));
    }
    match &options.root {
        Some(root) if !root.is_dir() => {
            Err(InputError::new(format!("--root {}: no such folder", root.display())))
        }
        _ => Ok(()),
    }
}

/// The causes that make a program late that runs: not its rights, nor other middlewares' needs.
const OF_RUNNING_PROGRAMS: [&str; 6] =
    ["idle_states", "governor", "preemption", "rt_throttling", "huge_pages", "clocksource"];
