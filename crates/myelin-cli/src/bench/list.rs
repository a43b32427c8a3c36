//! `myelin bench list`: scenarios and systems.

use anyhow::Result;
use clap::{Args, ValueEnum};
use myelin_bench_lab::registry::Registry;
use myelin_bench_lab::scenario::Scenario;
use serde_json::json;

use crate::say;

/// Arguments of `myelin bench list`.
#[derive(Args)]
pub struct Options {
    /// What to list; both by default.
    what: Option<Listed>,
    /// Print the Markdown tables of docs/reference/catalogue.md, also for missing systems.
    #[arg(long)]
    markdown: bool,
    /// Print one JSON object and nothing else.
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
}

/// The things that `list` lists.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Experiments.
    Scenarios,
    /// Middlewares and configurations.
    Systems,
}

/// Lists them.
pub fn run(options: &Options) -> Result<()> {
    let scenarios = options.what != Some(Listed::Systems);
    let registry = (options.what != Some(Listed::Scenarios)).then(Registry::discover);
    say(&match (options.json, options.markdown) {
        (true, _) => serde_json::to_string_pretty(&as_json(scenarios, registry.as_ref()))? + "\n",
        (_, true) => as_markdown(scenarios, registry.as_ref()),
        _ => as_text(scenarios, registry.as_ref()),
    });
    Ok(())
}

fn as_json(scenarios: bool, registry: Option<&Registry>) -> serde_json::Value {
    let mut listed = json!({ "schema": 1 });
    if scenarios {
        let one =
            |it: Scenario| json!({ "name": it.name, "about": it.about, "kind": it.workload.kind });
        listed["scenarios"] = Scenario::built_in().map(one).collect();
    }
    if let Some(registry) = registry {
        let systems = registry.entries().iter();
        listed["systems"] = systems.map(|entry| json!(entry.system)).collect();
        listed["broken_drivers"] = json!(registry.broken);
    }
    listed
}

fn as_text(scenarios: bool, registry: Option<&Registry>) -> String {
    let mut text = String::new();
    if scenarios {
        text += "scenarios (myelin bench run NAME, or a file of your own):\n";
        for scenario in Scenario::built_in() {
            text += &format!("  {:<18} {}\n", scenario.name, scenario.about);
        }
    }
    if let Some(registry) = registry {
        text += "systems:\n";
        for entry in registry.entries() {
            let system = &entry.system;
            let what = match &system.missing {
                None if system.version.is_empty() => system.about.clone(),
                None => format!("{} ({})", system.about, system.version),
                Some(reason) => reason.clone(),
            };
            text += &format!("  {:<24} {what}\n", system.name);
        }
        for broken in &registry.broken {
            text += &format!("  driver left out: {broken}\n");
        }
    }
    text
}

fn as_markdown(scenarios: bool, registry: Option<&Registry>) -> String {
    let row = |name: &str, about: &str| format!("| `{name}` | {} |\n", about.replace('|', "\\|"));
    let mut tables = Vec::new();
    if scenarios {
        let rows = Scenario::built_in().map(|it| row(&it.name, &it.about));
        tables.push("| scenario | what |\n|---|---|\n".to_owned() + &rows.collect::<String>());
    }
    if let Some(registry) = registry {
        let systems = registry.entries().iter().map(|it| &it.system);
        let rows = systems.map(|it| row(&it.name, &it.about));
        tables.push("| system | what |\n|---|---|\n".to_owned() + &rows.collect::<String>());
    }
    tables.join("\n")
}
