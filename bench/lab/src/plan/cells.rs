//! The cells of a scenario for one system.

use myelin_bench_kit::protocol::{System, Wait};
use serde::{Deserialize, Serialize};

use crate::scenario::{
    ArrivalsCase, Frame, Kind, Load, Reliability, Scenario, Topology, Tuning, Workload, frame_name,
};

/// One combination of scenario, system, tuning and parameter point.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CellPlan {
    /// Index into the plan's scenarios.
    pub scenario: usize,
    /// Name of the system.
    pub system: String,
    /// The preparation for low latency.
    pub tuning: Tuning,
    /// Where the processes run.
    pub topology: Topology,
    /// Bytes of payload.
    pub payload_bytes: u64,
    /// Messages a second; `None` for back to back.
    pub rate_hz: Option<f64>,
    /// Subscribers of the topic that ping publishes to; 1 for round trips.
    #[serde(default = "one")]
    pub subscribers: u32,
    /// Size of the image; `payload_bytes` is its number of bytes. Only for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<Frame>,
    /// The schedule of a stream or of images, if the scenario names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalsCase>,
    /// Publishers of each topic, one process each. Only for streams.
    #[serde(default = "one")]
    pub publishers: u32,
    /// Topics that messages are sent to in turn. Only for streams and start-ups.
    #[serde(default = "one")]
    pub topics: u32,
    /// The reliability that the system offers for the request of the scenario. Only for one-way
    /// workloads.
    #[serde(default)]
    pub reliability: Reliability,
    /// The name of the module that sends this stream, if the scenario names modules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The stream beside these messages, if there is one, with the reliability that the system
    /// offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,
    /// What is known of messages that are not measured but imported from the trace of an
    /// application.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported: Option<Imported>,
}

/// What the trace of an application says of its messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Imported {
    /// Whether they have sequence numbers, so that one that was taken twice is known.
    pub numbered: bool,
    /// Whether lost messages are known.
    pub knows_lost: bool,
}

/// The size of messages whose size is not known, of which only imported ones have none.
pub(crate) const UNKNOWN_BYTES: u64 = u64::MAX;

impl CellPlan {
    /// System, tuning and parameter point, as messages show them.
    pub fn title(&self) -> String {
        format!("{} {} {}", self.system, self.tuning.name(), self.point())
    }

    /// The cell's name in file names, with the name of its scenario: `quick-os.futex-default-64B`.
    pub fn name(&self, scenario: &str) -> String {
        format!("{scenario}-{}-{}-{}", self.system, self.tuning.name(), self.point())
    }

    /// The values that set the cell apart within its scenario, for messages and folder names.
    pub fn point(&self) -> String {
        if self.imported.is_some() {
            return file_name(self.module.as_deref().unwrap_or("trace"));
        }
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
        parts.extend(self.load.as_ref().map(|load| format!("beside-{}", load.name)));
        parts.join("-")
    }

    /// Its load as a cell of a scenario of its own; `None` without one.
    pub(crate) fn beside(&self, scenario: &Scenario) -> Option<(Scenario, CellPlan)> {
        let load = self.load.as_ref()?;
        let workload = scenario.workload.of_load(load, self.rate_hz);
        let plan = CellPlan {
            tuning: Tuning::Default,
            payload_bytes: load.payload_bytes,
            rate_hz: Some(load.rate_hz),
            subscribers: 1,
            publishers: 1,
            topics: 1,
            reliability: load.reliability,
            frame: None,
            arrivals: None,
            module: None,
            load: None,
            ..self.clone()
        };
        Some((Scenario { workload, ..scenario.clone() }, plan))
    }
}

/// The name of a topic as part of a file's name: `/camera/image` is `camera.image`.
pub(crate) fn file_name(topic: &str) -> String {
    let plain = |it: char| match it {
        '/' => '.',
        it if it.is_alphanumeric() || it == '-' || it == '.' => it,
        _ => '_',
    };
    topic.strip_prefix('/').unwrap_or(topic).chars().map(plain).collect()
}

/// How the receiving end of `system` waits. In a publish run subscribers of another process poll,
/// and those of the same process are called.
pub(crate) fn waits(system: &System, kind: Kind) -> Wait {
    match (kind, system.topology) {
        (Kind::Publish, Topology::TwoProcesses | Topology::TwoHosts) => Wait::Poll,
        (Kind::Publish, Topology::OneProcess) => Wait::Callback,
        _ => system.wait,
    }
}

/// Default of a count that a file leaves out.
pub(crate) fn one() -> u32 {
    1
}

/// Every combination of the scenario's values, except those that the system does not offer.
pub(super) fn cells_of(scenario: &Scenario, index: usize, system: &System) -> Vec<CellPlan> {
    let workload = &scenario.workload;
    let is_across = scenario.plan.is_across_hosts();
    let mut cases: Vec<_> = workload.arrivals.iter().cloned().map(Some).collect();
    if cases.is_empty() {
        cases.push(None);
    }
    // Each load is measured against the messages alone.
    let given_load =
        |load: &Load| Some(Load { reliability: given(load.reliability, system), ..load.clone() });
    let loads: Vec<_> =
        std::iter::once(None).chain(workload.loads.iter().map(given_load)).collect();
    let mut cells = Vec::new();
    for &tuning in &scenario.plan.tunings {
        for (size, rate_hz) in sends(workload) {
            for (arrivals, load) in cases.iter().flat_map(|it| loads.iter().map(move |of| (it, of)))
            {
                let cell = |[publishers, subscribers, topics]: [u32; 3]| CellPlan {
                    scenario: index,
                    system: system.name.clone(),
                    tuning,
                    topology: if is_across { Topology::TwoHosts } else { system.topology },
                    payload_bytes: workload.payload_bytes[size],
                    rate_hz,
                    subscribers,
                    frame: workload.frames.get(size).copied(),
                    arrivals: arrivals.clone(),
                    publishers,
                    topics,
                    reliability: given(workload.reliability, system),
                    module: workload.modules.get(size).map(|module| module.name.clone()),
                    load: load.clone(),
                    imported: None,
                };
                cells.extend(ends(workload).map(cell));
            }
        }
    }
    // `leave_out_unsupported` has already reported the combinations that are dropped here.
    cells.retain(|cell| !workload.kind.is_one_way() || offers(workload, system, cell));
    cells
}

/// The payloads and rates: each size, by its index, at each rate; or those of the modules.
fn sends(workload: &Workload) -> Vec<(usize, Option<f64>)> {
    if !workload.modules.is_empty() {
        return workload.rate_hz.iter().copied().enumerate().collect();
    }
    let sizes = 0..workload.payload_bytes.len();
    sizes.flat_map(|size| workload.rate_hz.iter().map(move |rate_hz| (size, *rate_hz))).collect()
}

/// All combinations of numbers of publishers, subscribers and topics.
fn ends(workload: &Workload) -> impl Iterator<Item = [u32; 3]> {
    workload.publishers.iter().flat_map(move |&publishers| {
        workload.subscribers.iter().flat_map(move |&subscribers| {
            workload.topics.iter().map(move |&topics| [publishers, subscribers, topics])
        })
    })
}

/// The reliability that `system` offers for this request.
pub(super) fn given(asked: Reliability, system: &System) -> Reliability {
    let offered = &system.streams.reliability;
    if offered.contains(&asked) { asked } else { offered.first().copied().unwrap_or(asked) }
}

/// Limit of the topics of `system`; 0 for no limit. A primitive of the operating system has none:
/// one channel carries the messages of all topics of a recording.
pub(super) fn topics_max(workload: &Workload, system: &System) -> u32 {
    let is_one_channel = system.floor && workload.kind == Kind::Replay;
    if is_one_channel { 0 } else { system.streams.topics_max }
}

/// Whether `system` cannot run the workload back to back.
pub(super) fn needs_rate(workload: &Workload, system: &System) -> bool {
    matches!(workload.kind, Kind::Stream | Kind::Image) && !system.streams_back_to_back()
}

/// Whether `system` supports the rate and the numbers of publishers, subscribers and topics of `cell`.
fn offers(workload: &Workload, system: &System, cell: &CellPlan) -> bool {
    let within = |asked: u32, most: u32| most == 0 || asked <= most;
    let streams = &system.streams;
    (cell.rate_hz.is_some() || !needs_rate(workload, system))
        && within(cell.publishers, streams.publishers_max)
        && within(cell.subscribers, streams.subscribers_max)
        && within(cell.topics, topics_max(workload, system))
}
