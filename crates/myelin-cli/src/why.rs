//! `myelin why`: why nothing arrives on a topic, or late.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use myelin_tools::duration;
use myelin_tools::why::{self, wrapped};
use serde_json::json;

use crate::attach::Attach;
use crate::{complete, doctor};

#[derive(Args)]
pub struct Options {
    /// The topic.
    #[arg(value_name = "TOPIC", add = complete::topics())]
    topic: String,
    /// Find out why samples come late, get lost, or are taken late.
    #[arg(long)]
    late: bool,
    /// How long to wait at most for a sample.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = within)]
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

fn within(text: &str) -> Result<Duration, String> {
    duration::parse_within(text, Duration::ZERO..=Duration::from_secs(3600))
}
