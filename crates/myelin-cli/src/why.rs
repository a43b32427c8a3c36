//! `myelin why`: why nothing arrives on a topic, or late.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::why::{self, wrapped};
use serde_json::json;

use crate::attach::Attach;
use crate::doctor;

#[derive(Args)]
pub struct Options {
    /// The topic; the `/` in front may be missing.
    topic: String,
    /// Find out why samples come late, get lost, or are taken late.
    #[arg(long)]
    late: bool,
    /// How many seconds to wait at most for a sample.
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = seconds)]
    within: Duration,
    /// Print one JSON object; docs/reference/cli.md names its fields.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    attach: Attach,
}

/// Exit status 1 if something is wrong.
pub fn run(options: Options) -> Result<ExitCode> {
    let Options { topic, late, within, json, attach } = options;
    let report = why::look(&attach.place(), &why::Options { topic, within, late })?;
    // A host that costs latency is no cause by itself: another host may be as slow and be in time.
    let mut host = if late && report.wrong { doctor::costs() } else { Vec::new() };
    let is_real_time = |end: &why::EndReport| matches!(end.scheduling, Some("fifo" | "rr"));
    if !report.ends.iter().any(is_real_time) {
        host.retain(|finding| finding.cause != "rt_throttling");
    }
    if json {
        let mut object = serde_json::to_value(&report)?;
        if late {
            object["host"] = json!(host);
        }
        crate::say(&format!("{object}\n"));
    } else {
        crate::say(&report.text());
        if !host.is_empty() {
            crate::say("\nthis host also costs latency (`myelin doctor` measures how much):\n");
        }
        for finding in &host {
            let found = finding.found.as_deref().unwrap_or_default();
            crate::say(&wrapped("", &format!("{found} [{}]", finding.cause)));
            if let Some(command) = finding.mend.as_ref().and_then(|mend| mend.now.as_ref()) {
                crate::say(&format!("    {command}\n"));
            }
        }
    }
    Ok(if report.wrong { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn seconds(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=3_600.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err("use a number of seconds from 0 to 3600".to_owned()),
    }
}
