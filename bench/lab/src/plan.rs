//! The plan of a session: which runs it makes, in which order. Every cell runs once per block, and
//! each block has its own order.
//!
//! The blocks are interleaved, so that a drift of the machine affects all cells alike. The order
//! within a block is random, so that no cell always follows the same neighbour. Scenarios can ask
//! for repeats beyond the plan; `repeats` makes them, in blocks of the same kind.

mod cells;
mod check;
mod repeats;
pub(crate) mod size;

use cells::cells_of;
pub use cells::{CellPlan, Imported};
pub(crate) use cells::{UNKNOWN_BYTES, file_name, one, waits};
pub use check::{check, leave_out_unsupported};
use myelin_bench_kit::protocol::{self, PROTOCOL, Prepare, Role, System, Wait};
use rand::seq::SliceRandom;
use rand::{SeedableRng, rngs::StdRng};
use serde::{Deserialize, Serialize};

use crate::host::hosts::HostsChoice;
use crate::registry::SystemDriver;
use crate::scenario::{Kind, Replay, Scenario, Tuning};

/// One execution of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPlan {
    /// Position in the order of execution, from 0.
    pub order: u32,
    /// Index into the plan's cells.
    pub cell: usize,
    /// Which repeat of the cell, from 0.
    pub repeat: u32,
}

/// Everything a session will do.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Plan {
    /// Version of the layout of the results folder.
    #[serde(default = "first_schema")]
    pub schema: u32,
    /// The requested scenarios, with defaults filled in.
    pub scenarios: Vec<Scenario>,
    /// In the order of reports.
    pub cells: Vec<CellPlan>,
    /// In the order of execution.
    pub runs: Vec<RunPlan>,
    /// Requested systems, including missing ones.
    pub systems: Vec<System>,
    /// Seed of the order of runs and of the drivers' random numbers.
    pub seed: u64,
    /// The command that makes this plan.
    pub command: String,
    /// When the session began: RFC 3339, UTC. Absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<String>,
    /// `git describe` of the folder that the session was started in; absent outside of a repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Remarks, for example on tunings that were left out.
    pub notes: Vec<String>,
    /// The two hosts of cells across hosts; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<HostsChoice>,
}

impl Plan {
    /// Orders the runs of `scenarios` over the systems chosen for each. Missing systems are listed
    /// but not planned.
    pub fn new(scenarios: Vec<(Scenario, Vec<SystemDriver>)>, seed: u64, command: String) -> Self {
        let mut plan = Plan { schema: SCHEMA, seed, command, ..Plan::default() };
        let mut random = StdRng::seed_from_u64(seed);
        for (scenario, entries) in scenarios {
            plan.add(scenario, &entries, &mut random);
        }
        plan
    }

    fn add(&mut self, scenario: Scenario, entries: &[SystemDriver], random: &mut StdRng) {
        let first = self.cells.len();
        for entry in entries {
            if !self.systems.iter().any(|system| system.name == entry.system.name) {
                self.systems.push(entry.system.clone());
            }
            if entry.system.missing.is_none() {
                self.cells.extend(cells_of(&scenario, self.scenarios.len(), &entry.system));
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

    /// Whether its messages are imported from traces of applications, so that nothing is to be run.
    pub fn is_imported(&self) -> bool {
        self.cells.iter().any(|cell| cell.imported.is_some())
    }

    /// The system of a cell of this plan; `None` if it is unknown.
    pub fn system(&self, cell: &CellPlan) -> Option<&System> {
        self.systems.iter().find(|system| system.name == cell.system)
    }

    /// A hop takes less than a microsecond where no thread sleeps. Time stamps within the hop would
    /// add a fifth to that (docs/explanation/measurement.md).
    fn parts_every(&self, kind: Kind, cell: &CellPlan) -> u64 {
        let is_polled = self.system(cell).is_some_and(|system| system.wait == Wait::Poll);
        match kind {
            Kind::Roundtrip if is_polled => PARTS_EVERY_POLLED,
            _ => 1,
        }
    }

    /// The order that the driver of a run receives. The runner fills in role and files.
    pub fn prepare(&self, cell: &CellPlan, run: &RunPlan) -> Prepare {
        self.prepare_of(&self.scenarios[cell.scenario], cell, run)
    }

    /// The same for the processes of the cell's load, and the records to make room for; `None`
    /// without one.
    pub(crate) fn prepare_load(&self, cell: &CellPlan, run: &RunPlan) -> Option<(Prepare, u64)> {
        let (scenario, load) = cell.beside(&self.scenarios[cell.scenario])?;
        let prepare = self.prepare_of(&scenario, &load, run);
        let capacity = scenario.workload.records_at_most(load.rate_hz);
        Some((Prepare { run: format!("{}-load", prepare.run), ..prepare }, capacity))
    }

    fn prepare_of(&self, scenario: &Scenario, cell: &CellPlan, run: &RunPlan) -> Prepare {
        let workload = &scenario.workload;
        let driver = cell.system.split('.').next().unwrap_or("");
        let options = scenario.options.get(driver);
        let replay = workload.replay.as_ref();
        let seconds = replay.map_or(workload.duration_s, |replay| replay.seconds);
        Prepare {
            protocol: PROTOCOL,
            system: cell.system.clone(),
            role: Role::Ping,
            run: format!("myelin-bench-{}-{}", std::process::id(), run.order),
            // One domain for the whole session, so that all its runs have the same configuration.
            // 232 is the highest domain whose ports are valid; low ones are left to the user.
            domain: 100 + std::process::id() % 120,
            payload_bytes: replay.map_or(cell.payload_bytes, Replay::payload_bytes_max),
            messages: replay.map_or(workload.messages, |replay| replay.messages),
            duration_ns: (seconds * 1e9) as u64,
            warmup_messages: workload.warmup_at(cell.rate_hz),
            warmup_ns: workload.warmup_ns(cell.rate_hz),
            rate_hz: cell.rate_hz,
            reply_timeout_ns: workload.reply_timeout_ms * 1_000_000,
            match_timeout_ns: MATCH_TIMEOUT_NS,
            record_every: workload.record_every,
            parts_every: self.parts_every(workload.kind, cell),
            samples: None,
            ring: false,
            directory: std::path::PathBuf::new(),
            lock_memory: cell.tuning != Tuning::Default,
            seed: self.seed ^ u64::from(run.order),
            workload: workload.kind,
            touch: workload.touch,
            arrivals: cell.arrivals.as_ref().map(|case| case.arrivals).unwrap_or_default(),
            frame: cell.frame,
            recording: replay.map(|replay| protocol::Recording {
                trace: std::path::PathBuf::new(),
                payload_bytes: replay.topics.iter().map(|it| it.payload_bytes_max).collect(),
            }),
            pong_samples: None,
            pong_cpu: None,
            pong_fifo: None,
            subscribers: cell.subscribers,
            publishers: cell.publishers,
            index: 0,
            topics: cell.topics,
            reliability: cell.reliability,
            depth: workload.depth,
            taken_counter: None,
            network: None,
            identity: None,
            enclave: None,
            options: options.cloned().unwrap_or_default(),
        }
    }
}

const MATCH_TIMEOUT_NS: u64 = 10_000_000_000;
/// Rare enough to leave the other messages undisturbed, frequent enough for percentiles of the
/// parts.
const PARTS_EVERY_POLLED: u64 = 16;

/// The version of files that do not name one.
pub(crate) fn first_schema() -> u32 {
    1
}

/// Version of the layout of the folder, in `plan.json`. In version 1 the names of two columns had
/// two meanings (`docs/reference/results.md`); the bytes are the same.
pub(crate) const SCHEMA: u32 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Frame, Kind, Reliability, Topology};

    fn plan(seed: u64) -> Plan {
        let systems: Vec<SystemDriver> = ["a.x", "b.y"].map(SystemDriver::named).into();
        let mut scenario = Scenario::load("quick").unwrap();
        scenario.plan.runs = 3;
        Plan::new(vec![(scenario, systems)], seed, String::new())
    }

    #[test]
    fn every_block_has_every_cell_once_in_its_own_order() {
        let plan = plan(7);
        assert_eq!(plan.cells.len(), 2 * 2 * 2);
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
    fn the_seed_determines_the_order() {
        assert_eq!(plan(7).runs, plan(7).runs);
        assert_ne!(plan(7).runs, plan(8).runs);
    }

    #[test]
    fn systems_that_cannot_run_the_workload_are_left_out_and_named() {
        let mut able = SystemDriver::named("a.x");
        able.system.workloads.push(Kind::Publish);
        let mut entries = vec![able, SystemDriver::named("b.y"), SystemDriver::named("c.z")];
        let scenario = Scenario::load("publish").unwrap();
        let notes = leave_out_unsupported(&scenario, &mut entries);
        assert_eq!(notes.len(), 1, "{notes:?}");
        assert!(notes[0].starts_with("b.y, c.z left out of `publish`: workload"), "{notes:?}");
        assert_eq!(entries.len(), 1);
        assert!(leave_out_unsupported(&scenario, &mut entries).is_empty());
        let plan = Plan::new(vec![(scenario, entries)], 0, String::new());
        let subscribers: Vec<u32> = plan.cells.iter().map(|cell| cell.subscribers).collect();
        assert_eq!(subscribers, [0, 1, 8, 64, 0, 1, 8, 64], "for each of two rates");
        let prepare = plan.prepare(&plan.cells[3], &plan.runs[0]);
        assert_eq!((prepare.workload, prepare.subscribers), (Kind::Publish, 64));
    }

    #[test]
    fn a_replay_needs_room_and_topics_but_the_floor_is_one_channel() {
        let recording = crate::scenario::Recording {
            file: "drive.mcap".into(),
            topics: Vec::new(),
            start_s: 0.0,
            end_s: None,
            speed: 1.0,
        };
        let mut scenario = Scenario::of_recording(&recording, None).unwrap();
        let topic = |payload_bytes_max| crate::scenario::RecordedTopic {
            payload_bytes_max,
            ..Default::default()
        };
        let (topics, messages) = (vec![topic(10), topic(5_000)], 7);
        scenario.workload.replay =
            Some(Replay { topics, messages, warmup_messages: 3, seconds: 2.0, trace: None });
        (scenario.workload.payload_bytes, scenario.workload.topics) = (vec![700], vec![2]);
        scenario.workload.rate_hz = vec![Some(3.5)];
        let able = |name: &str, topics_max, payload_bytes_max, floor| {
            let mut entry = SystemDriver::named(name);
            entry.system.workloads.push(Kind::Replay);
            entry.system.streams.topics_max = topics_max;
            (entry.system.payload_bytes_max, entry.system.floor) = (payload_bytes_max, floor);
            entry
        };
        let mut entries = vec![
            able("a.x", 2, 0, false),
            able("b.one", 1, 0, false),
            able("c.small", 0, 4_999, false),
            able("d.floor", 1, 5_000, true),
        ];
        let notes = leave_out_unsupported(&scenario, &mut entries).join("\n");
        assert!(notes.contains("c.small left out of `drive`: the largest message has 5000 B"));
        assert!(notes.contains("more than 1 topics are not supported by b.one"), "{notes}");
        let plan = Plan::new(vec![(scenario, entries)], 0, String::new());
        let systems: Vec<&str> = plan.cells.iter().map(|cell| cell.system.as_str()).collect();
        assert_eq!(systems, ["a.x", "d.floor"]);
        let prepare = plan.prepare(&plan.cells[0], &plan.runs[0]);
        assert_eq!(
            (prepare.payload_bytes, prepare.messages, prepare.warmup_messages),
            (5_000, 7, 3)
        );
        assert_eq!(prepare.recording.unwrap().payload_bytes, [10, 5_000]);
        assert_eq!((prepare.duration_ns, prepare.topics), (2_000_000_000, 2));
    }

    #[test]
    fn a_load_is_measured_beside_the_messages_and_they_are_measured_alone() {
        let able = |name: &str, topology, reliability| {
            let mut entry = SystemDriver::named(name);
            entry.system.workloads.push(Kind::Stream);
            (entry.system.topology, entry.system.across_hosts) = (topology, true);
            entry.system.streams.reliability = vec![reliability];
            entry
        };
        let (two, one) = (Topology::TwoProcesses, Topology::OneProcess);
        let mut entries = vec![
            able("a.x", two, Reliability::Reliable),
            able("b.y", two, Reliability::BestEffort),
            able("c.z", one, Reliability::Reliable),
        ];
        let mut scenario = Scenario::load("command-beside-images").unwrap();
        (scenario.plan.topology, scenario.network) = (vec![two, one], None);
        let notes = leave_out_unsupported(&scenario, &mut entries).join("\n");
        assert!(notes.contains("c.z left out of `command-beside-images`: a load is a"), "{notes}");
        let of_load = "reliability \"reliable\" of the load \"images\" was requested; only \
                       \"best-effort\" is supported by b.y";
        assert!(notes.contains(of_load), "{notes}");
        let mut small = entries.clone();
        small[1].system.payload_bytes_max = 1 << 20;
        let error = check(&scenario, &small).unwrap_err().to_string();
        let expected = "toml:20: payload_bytes: 10485760 is more than b.y can carry; use at most \
                        1048576";
        assert!(error.contains(expected), "{error}");
        let plan = Plan::new(vec![(scenario, entries)], 0, String::new());
        let cells = plan.cells.iter().map(|cell| (cell.system.as_str(), cell.point()));
        let expected = ["64B-1000Hz", "64B-1000Hz-beside-images"];
        let expected =
            ["a.x", "b.y"].map(|system| expected.map(|point| (system, point.to_owned())));
        assert_eq!(cells.collect::<Vec<_>>(), expected.concat());
        assert!(plan.prepare_load(&plan.cells[0], &plan.runs[0]).is_none());
        let run = &plan.runs[0];
        let own = plan.prepare(&plan.cells[3], run);
        let (load, capacity) = plan.prepare_load(&plan.cells[3], run).unwrap();
        assert_eq!((own.payload_bytes, own.rate_hz, own.depth), (64, Some(1000.0), 16));
        assert_eq!((load.payload_bytes, load.rate_hz, load.depth), (10 << 20, Some(5.0), 4));
        assert_eq!((load.duration_ns, load.warmup_messages), (own.duration_ns, 5));
        assert_eq!(load.reliability, Reliability::BestEffort, "what the system has");
        assert!(load.run.starts_with(&own.run) && load.run != own.run, "other topics");
        assert!(capacity >= 50, "{capacity}");
    }

    #[test]
    fn back_to_back_is_left_out_for_systems_that_take_their_messages() {
        let scenario = Scenario::load("callback").unwrap();
        let of = |name: &str, wait| {
            let mut entry = SystemDriver::named(name);
            entry.system.workloads.push(Kind::Stream);
            (entry.system.topology, entry.system.wait) = (Topology::OneProcess, wait);
            entry
        };
        let mut entries = vec![of("libxr.sync", Wait::Block), of("libxr.callback", Wait::Callback)];
        let notes = leave_out_unsupported(&scenario, &mut entries).join("\n");
        assert!(notes.contains("`callback`: back to back is left out: "), "{notes}");
        assert!(notes.ends_with("not so for libxr.sync"), "{notes}");
        let plan = Plan::new(vec![(scenario, entries)], 0, String::new());
        let cells = plan.cells.iter().map(|cell| (cell.system.as_str(), cell.rate_hz));
        let rate = Some(30.0);
        let expected = [("libxr.sync", rate), ("libxr.callback", None), ("libxr.callback", rate)];
        assert_eq!(cells.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn systems_of_another_topology_are_left_out() {
        let able = |name: &str, topology| {
            let mut entry = SystemDriver::named(name);
            entry.system.workloads.push(Kind::Image);
            entry.system.topology = topology;
            entry
        };
        let both = || vec![able("a.x", Topology::OneProcess), able("b.y", Topology::TwoProcesses)];
        let mut scenario = Scenario::load("image-30hz").unwrap();
        let mut entries = both();
        assert!(leave_out_unsupported(&scenario, &mut entries).is_empty());
        let plan = Plan::new(vec![(scenario.clone(), entries)], 0, String::new());
        let places: Vec<_> = plan.cells.iter().map(|cell| (cell.topology, cell.point())).collect();
        assert!(places.contains(&(Topology::OneProcess, "1440x1080-30Hz".into())), "{places:?}");
        assert!(places.contains(&(Topology::TwoProcesses, "320x240-30Hz".into())), "{places:?}");
        let prepare = plan.prepare(&plan.cells[0], &plan.runs[0]);
        assert_eq!(prepare.frame.map(Frame::bytes), Some(prepare.payload_bytes));
        scenario.plan.topology = vec![Topology::TwoProcesses];
        let mut entries = both();
        let notes = leave_out_unsupported(&scenario, &mut entries);
        assert_eq!(entries.len(), 1);
        assert!(
            notes[0].contains("a.x left out of `image-30hz`: the scenario's topology"),
            "{notes:?}"
        );
    }

    #[test]
    fn each_schedule_is_a_cell_and_passed_to_drivers() {
        let scenario = Scenario::load("periodic").unwrap();
        let cases = scenario.workload.arrivals.len();
        let plan = Plan::new(vec![(scenario, vec![SystemDriver::named("a.x")])], 0, String::new());
        assert_eq!(plan.cells.len(), 2 * cases, "for each of two rates");
        let jitter = plan.cells.iter().find(|cell| cell.point() == "65536B-30Hz-jitter").unwrap();
        let told = plan.prepare(jitter, &plan.runs[0]).arrivals;
        assert_eq!((told.jitter_percent, told.missing_one_in), (5.0, 0));
    }

    #[test]
    fn missing_systems_are_listed_but_not_planned() {
        let mut absent = SystemDriver::named("c.z");
        absent.system.missing = Some("not installed".into());
        let scenario = Scenario::load("quick").unwrap();
        let plan = Plan::new(vec![(scenario, vec![absent])], 0, String::new());
        assert!(plan.cells.is_empty() && plan.runs.is_empty());
        assert_eq!(plan.systems.len(), 1);
    }
}
