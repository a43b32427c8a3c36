//! What will be run, in which order: every cell once per block, each block in an order of its own.
//!
//! Blocks are interleaved so that whatever drifts on the machine drifts under all cells alike; the
//! order within a block is random so that no cell always follows the same neighbour.

use myelin_bench_kit::protocol::{PROTOCOL, Prepare, Role, System};
use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};

use crate::input_error::InputError;
use crate::registry::Entry;
use crate::scenario::{Scenario, Topology, Tuning};

/// One combination of scenario, system, tuning and parameter point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellPlan {
    /// Index into the plan's scenarios.
    pub scenario: usize,
    /// Name of the system.
    pub system: String,
    /// What is done for latency.
    pub tuning: Tuning,
    /// Where the processes live.
    pub topology: Topology,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Messages a second; `None` for back to back.
    pub rate_hz: Option<f64>,
    /// Subscribers of the topic that ping publishes to; 1 for round trips.
    #[serde(default = "one")]
    pub subscribers: u32,
}

fn one() -> u32 {
    1
}

/// One execution of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Place in the order of execution, from 0.
    pub order: u32,
    /// Index into the plan's cells.
    pub cell: usize,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
}

/// Everything a session will do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// What was asked for, resolved.
    pub scenarios: Vec<Scenario>,
    /// In the order of reports.
    pub cells: Vec<CellPlan>,
    /// In the order of execution.
    pub runs: Vec<RunPlan>,
    /// Systems asked for, the missing ones included.
    pub systems: Vec<System>,
    /// Of the order and of whatever drivers draw.
    pub seed: u64,
    /// The command that makes this plan.
    pub command: String,
    /// Tunings left out and the like.
    pub notes: Vec<String>,
}

impl Plan {
    /// Orders the runs of `scenarios` over the systems chosen for each. Systems that are missing
    /// here are listed but not planned.
    pub fn new(scenarios: Vec<(Scenario, Vec<Entry>)>, seed: u64, command: String) -> Self {
        let mut plan = Plan {
            scenarios: Vec::new(),
            cells: Vec::new(),
            runs: Vec::new(),
            systems: Vec::new(),
            seed,
            command,
            notes: Vec::new(),
        };
        let mut random = StdRng::seed_from_u64(seed);
        for (scenario, entries) in scenarios {
            plan.add(scenario, &entries, &mut random);
        }
        plan
    }

    fn add(&mut self, scenario: Scenario, entries: &[Entry], random: &mut StdRng) {
        let first = self.cells.len();
        for entry in entries {
            if !self.systems.iter().any(|system| system.name == entry.system.name) {
                self.systems.push(entry.system.clone());
            }
            if entry.system.missing.is_none() {
                self.cells.extend(cells_of(&scenario, self.scenarios.len(), &entry.system.name));
            }
        }
        for repeat in 0..scenario.plan.runs {
            let mut block: Vec<usize> = (first..self.cells.len()).collect();
            block.shuffle(random);
            for cell in block {
                self.runs.push(RunPlan { order: self.runs.len() as u32, cell, repeat });
            }
        }
        self.scenarios.push(scenario);
    }

    /// What the driver of a run is told; role and files are filled in by the runner.
    pub fn prepare(&self, cell: &CellPlan, run: &RunPlan) -> Prepare {
        let workload = &self.scenarios[cell.scenario].workload;
        let driver = cell.system.split('.').next().unwrap_or("");
        let options = self.scenarios[cell.scenario].options.get(driver);
        Prepare {
            protocol: PROTOCOL,
            system: cell.system.clone(),
            role: Role::Ping,
            run: format!("myelin-bench-{}-{}", std::process::id(), run.order),
            // One for the session, so that its runs are configured alike; 232 is the highest whose
            // ports fit, and low ones are left to the user.
            domain: 100 + std::process::id() % 120,
            payload_bytes: cell.payload_bytes,
            messages: workload.messages,
            duration_ns: (workload.duration_s * 1e9) as u64,
            warmup_messages: workload.warmup_messages,
            rate_hz: cell.rate_hz,
            reply_timeout_ns: workload.reply_timeout_ms * 1_000_000,
            match_timeout_ns: MATCH_TIMEOUT_NS,
            record_every: workload.record_every,
            samples: None,
            directory: std::path::PathBuf::new(),
            lock_memory: cell.tuning != Tuning::Default,
            seed: self.seed ^ u64::from(run.order),
            workload: workload.kind,
            touch: workload.touch,
            subscribers: cell.subscribers,
            options: options.cloned().unwrap_or_default(),
        }
    }
}

/// Takes out of `entries` the systems that cannot run the scenario's workload; which, and why, for
/// the report.
pub fn leave_out_unsupported(scenario: &Scenario, entries: &mut Vec<Entry>) -> Option<String> {
    let kind = scenario.workload.kind;
    let (kept, left_out): (Vec<Entry>, Vec<Entry>) =
        entries.drain(..).partition(|entry| entry.system.workloads.contains(&kind));
    *entries = kept;
    let names: Vec<&str> = left_out.iter().map(|entry| entry.system.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        let (name, kind) = (&scenario.name, kind.name());
        let names = names.join(", ");
        format!("{names} left out of `{name}`: workload `{kind}` is not supported by the driver")
    })
}

/// Finds the mistakes in a scenario that only its drivers can see: payloads a system cannot carry,
/// options it does not know.
pub fn check(scenario: &Scenario, entries: &[Entry]) -> Result<(), InputError> {
    for driver in scenario.options.keys() {
        if !entries.iter().any(|entry| entry.driver() == driver) {
            let known = entries.iter().map(Entry::driver);
            return Err(InputError::unknown("driver", driver, known)
                .at(&scenario.source, scenario.source.find(&format!("[options.{driver}]")))
                .remedy("a table of options belongs to the driver of a system in plan.systems"));
        }
    }
    let present = entries.iter().filter(|entry| entry.system.missing.is_none());
    for entry in present {
        for &payload_bytes in &scenario.workload.payload_bytes {
            check_size(scenario, &entry.system, payload_bytes)?;
            if scenario.options.contains_key(entry.driver()) {
                check_options(scenario, entry, payload_bytes)?;
            }
        }
    }
    Ok(())
}

fn check_size(scenario: &Scenario, system: &System, size: u64) -> Result<(), InputError> {
    let limit = system.payload_bytes_max;
    if limit == 0 || size <= limit {
        return Ok(());
    }
    let place = scenario.source.find_value("payload_bytes", &size.to_string());
    let message = format!("payload_bytes: {size} is more than {} carries", system.name);
    Err(scenario
        .source
        .error(place, message)
        .remedy(format!("use at most {limit}, or leave the system out of plan.systems")))
}

fn check_options(scenario: &Scenario, entry: &Entry, size: u64) -> Result<(), InputError> {
    let alone = Plan::new(vec![(scenario.clone(), vec![entry.clone()])], 0, String::new());
    let Some(cell) = alone.cells.iter().find(|cell| cell.payload_bytes == size) else {
        return Ok(());
    };
    let prepare = alone.prepare(cell, &RunPlan { order: 0, cell: 0, repeat: 0 });
    let Err(event) = entry.check(&prepare) else {
        return Ok(());
    };
    let myelin_bench_kit::protocol::Event::Error { message, remedy, key } = event else {
        return Ok(());
    };
    let table = scenario.source.find(&format!("[options.{}]", entry.driver()));
    let place = scenario.source.find_after(table.end, &key).unwrap_or(table);
    Err(scenario.source.error(place, format!("{}: {message}", entry.system.name)).remedy(remedy))
}

fn cells_of(scenario: &Scenario, index: usize, system: &str) -> Vec<CellPlan> {
    let mut cells = Vec::new();
    for &tuning in &scenario.plan.tunings {
        for &payload_bytes in &scenario.workload.payload_bytes {
            for &rate_hz in &scenario.workload.rate_hz {
                let cell = |&subscribers: &u32| CellPlan {
                    scenario: index,
                    system: system.into(),
                    tuning,
                    topology: scenario.plan.topology,
                    payload_bytes,
                    rate_hz,
                    subscribers,
                };
                cells.extend(scenario.workload.subscribers.iter().map(cell));
            }
        }
    }
    cells
}

const MATCH_TIMEOUT_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Kind;

    fn plan(seed: u64) -> Plan {
        let systems: Vec<Entry> = ["a.x", "b.y"].into_iter().map(entry).collect();
        let mut scenario = Scenario::load("quick").unwrap();
        scenario.plan.runs = 3;
        Plan::new(vec![(scenario, systems)], seed, String::new())
    }

    fn entry(name: &str) -> Entry {
        let text =
            format!(r#"{{"name": "{name}", "about": "", "wait": "block", "transport": "kernel"}}"#);
        let system = serde_json::from_str(&text).unwrap();
        Entry { system, executable: "myelin-driver-a".into() }
    }

    #[test]
    fn every_block_has_every_cell_once_in_an_order_of_its_own() {
        let plan = plan(7);
        assert_eq!(plan.cells.len(), 2 * 5 * 2);
        let blocks: Vec<Vec<usize>> = plan
            .runs
            .chunks(plan.cells.len())
            .map(|block| block.iter().map(|run| run.cell).collect())
            .collect();
        assert_eq!(blocks.len(), 3);
        for block in &blocks {
            let mut sorted = block.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..plan.cells.len()).collect::<Vec<_>>());
        }
        assert!(blocks[0] != blocks[1] && blocks[1] != blocks[2]);
    }

    #[test]
    fn the_seed_alone_decides_the_order() {
        assert_eq!(plan(7).runs, plan(7).runs);
        assert_ne!(plan(7).runs, plan(8).runs);
    }

    #[test]
    fn systems_that_cannot_run_the_workload_are_left_out_and_named() {
        let mut able = entry("a.x");
        able.system.workloads.push(Kind::Publish);
        let mut entries = vec![able, entry("b.y"), entry("c.z")];
        let scenario = Scenario::load("publish").unwrap();
        let note = leave_out_unsupported(&scenario, &mut entries).unwrap();
        assert!(note.starts_with("b.y, c.z left out of `publish`: workload `publish`"), "{note}");
        assert_eq!(entries.len(), 1);
        assert_eq!(leave_out_unsupported(&scenario, &mut entries), None);
        let plan = Plan::new(vec![(scenario, entries)], 0, String::new());
        let subscribers: Vec<u32> = plan.cells.iter().map(|cell| cell.subscribers).collect();
        assert_eq!(subscribers, [0, 1, 8, 64, 0, 1, 8, 64], "for each of two rates");
        let prepare = plan.prepare(&plan.cells[3], &plan.runs[0]);
        assert_eq!((prepare.workload, prepare.subscribers), (Kind::Publish, 64));
    }

    #[test]
    fn missing_systems_are_listed_but_not_planned() {
        let mut absent = entry("c.z");
        absent.system.missing = Some("not installed".into());
        let scenario = Scenario::load("quick").unwrap();
        let plan = Plan::new(vec![(scenario, vec![absent])], 0, String::new());
        assert!(plan.cells.is_empty() && plan.runs.is_empty());
        assert_eq!(plan.systems.len(), 1);
    }
}
