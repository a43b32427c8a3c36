//! The cells of a scenario for one system.

use myelin_bench_kit::protocol::System;
use serde::{Deserialize, Serialize};

use crate::scenario::{
    ArrivalsCase, Frame, Module, Reliability, Scenario, Topology, Tuning, Workload, frame_name,
};

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
    /// Of images; `payload_bytes` is its size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// Of streams and images: the schedule, if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsCase>,
    /// Of streams: publishers of each topic, each a process.
    #[serde(default = "one")]
    pub publishers: u32,
    /// Of streams and start-ups: topics that messages go to in turn.
    #[serde(default = "one")]
    pub topics: u32,
    /// Of what goes one way: what the system gives, of what the scenario asks.
    #[serde(default)]
    pub reliability: Reliability,
    /// Of streams: the name of the module that sends so, if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

impl CellPlan {
    /// System, tuning and parameter point, for messages.
    pub fn title(&self) -> String {
        format!("{} {} {}", self.system, self.tuning.name(), self.point())
    }

    /// For names of files, with that of its scenario: `quick-os.futex-default-64B`.
    pub fn name(&self, scenario: &str) -> String {
        format!("{scenario}-{}-{}-{}", self.system, self.tuning.name(), self.point())
    }

    /// What sets the cell apart within its scenario, for messages and names of folders.
    pub fn point(&self) -> String {
        let mut parts = vec![match self.frame {
            Some(frame) => frame_name(frame),
            None => format!("{}B", self.payload_bytes),
        }];
        parts.extend(self.rate_hz.map(|rate| format!("{rate}Hz")));
        parts.extend(self.arrivals.as_ref().map(|case| case.name.clone()));
        for (count, what) in [
            (self.publishers, "publishers"),
            (self.subscribers, "subscribers"),
            (self.topics, "topics"),
        ] {
            parts.extend((count != 1).then(|| format!("{count}{what}")));
        }
        parts.join("-")
    }
}

fn one() -> u32 {
    1
}

pub(super) fn cells_of(scenario: &Scenario, index: usize, system: &System) -> Vec<CellPlan> {
    let workload = &scenario.workload;
    let mut cells = Vec::new();
    for &tuning in &scenario.plan.tunings {
        for point in points(workload) {
            cells.push(CellPlan {
                scenario: index,
                system: system.name.clone(),
                tuning,
                topology: match scenario.plan.is_across_hosts() {
                    true => Topology::TwoHosts,
                    false => system.topology,
                },
                reliability: given(workload, system),
                ..point
            });
        }
    }
    // What a system does not offer is left out, and `leave_out_unsupported` has said so.
    cells.retain(|cell| !workload.kind.is_one_way() || offers(system, cell));
    cells
}

/// The reliability that `system` gives where the scenario asks for one.
pub(super) fn given(workload: &Workload, system: &System) -> Reliability {
    let asked = workload.reliability;
    let offered = &system.streams.reliability;
    match offered.contains(&asked) {
        true => asked,
        false => offered.first().copied().unwrap_or(asked),
    }
}

/// Whether `system` can have as many ends as `cell` asks for.
fn offers(system: &System, cell: &CellPlan) -> bool {
    let within = |asked: u32, most: u32| most == 0 || asked <= most;
    let streams = &system.streams;
    within(cell.publishers, streams.publishers_max)
        && within(cell.subscribers, streams.subscribers_max)
        && within(cell.topics, streams.topics_max)
}

/// The parameter points of a workload, of no system yet: every combination.
fn points(workload: &Workload) -> Vec<CellPlan> {
    let cases: Vec<Option<ArrivalsCase>> = match workload.arrivals.is_empty() {
        true => vec![None],
        false => workload.arrivals.iter().cloned().map(Some).collect(),
    };
    let points = across(sends(workload), &cases, |point, case| point.arrivals = case);
    let points = across(points, &workload.publishers, |point, count| point.publishers = count);
    let points = across(points, &workload.subscribers, |point, count| point.subscribers = count);
    across(points, &workload.topics, |point, count| point.topics = count)
}

/// Each of `points` with each of `values`.
fn across<T: Clone>(
    points: Vec<CellPlan>,
    values: &[T],
    set: impl Fn(&mut CellPlan, T),
) -> Vec<CellPlan> {
    let each = |point: CellPlan| {
        values.iter().cloned().map(move |value| (point.clone(), value)).collect::<Vec<_>>()
    };
    let made = points.into_iter().flat_map(each).map(|(mut point, value)| {
        set(&mut point, value);
        point
    });
    made.collect()
}

/// What is sent: each size at each rate, or what modules send.
fn sends(workload: &Workload) -> Vec<CellPlan> {
    let point = |payload_bytes: u64, rate_hz: Option<f64>| CellPlan {
        scenario: 0,
        system: String::new(),
        tuning: Tuning::Default,
        topology: Topology::default(),
        payload_bytes,
        rate_hz,
        subscribers: 1,
        frame: None,
        arrivals: None,
        publishers: 1,
        topics: 1,
        reliability: Reliability::default(),
        module: None,
    };
    if !workload.modules.is_empty() {
        let send = |module: &Module| CellPlan {
            module: Some(module.name.clone()),
            ..point(module.payload_bytes, Some(module.rate_hz))
        };
        return workload.modules.iter().map(send).collect();
    }
    let mut sends = Vec::new();
    for (place, &payload_bytes) in workload.payload_bytes.iter().enumerate() {
        let frame = workload.frames.get(place).copied();
        let at = |&rate_hz: &Option<f64>| CellPlan { frame, ..point(payload_bytes, rate_hz) };
        sends.extend(workload.rate_hz.iter().map(at));
    }
    sends
}
