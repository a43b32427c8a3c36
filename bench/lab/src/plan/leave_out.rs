//! What the systems of a scenario cannot do of what it asks, and that the report says so.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::Topology;

use super::cells::given;
use crate::registry::SystemDriver;
use crate::scenario::Scenario;

/// Takes out of `entries` the systems that cannot run the scenario's workload, or live otherwise
/// than it wants; which, and why, for the report. Systems that are missing stay, to be listed.
pub fn leave_out_unsupported(scenario: &Scenario, entries: &mut Vec<SystemDriver>) -> Vec<String> {
    let kind = scenario.workload.kind;
    let topologies = &scenario.plan.topology;
    let is_across = scenario.plan.is_across_hosts();
    let able = leave_out(scenario, entries, |entry| entry.system.workloads.contains(&kind));
    let placed = leave_out(scenario, entries, |entry| {
        if is_across {
            entry.system.across_hosts && entry.system.topology == Topology::TwoProcesses
        } else {
            topologies.contains(&entry.system.topology)
        }
    });
    let limited = limits_remarks(scenario, entries);
    let kind = kind.name();
    let wanted: Vec<&str> = topologies.iter().map(|topology| topology.name()).collect();
    let wanted = wanted.join(", ");
    let able =
        able.map(|which| format!("{which}: workload `{kind}` is not supported by the driver"));
    let placed = placed.map(|which| format!("{which}: topology is {wanted} and theirs is not"));
    able.into_iter().chain(placed).chain(limited).collect()
}

/// What systems that stay cannot do of what the scenario asks of streams.
fn limits_remarks(scenario: &Scenario, entries: &[SystemDriver]) -> Vec<String> {
    let workload = &scenario.workload;
    if !workload.kind.is_one_way() {
        return Vec::new();
    }
    let mut remarks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry.system.missing.is_none()) {
        let system = &entry.system;
        let streams = &system.streams;
        for (what, asked, most) in [
            ("publishers", &workload.publishers, streams.publishers_max),
            ("subscribers", &workload.subscribers, streams.subscribers_max),
            ("topics", &workload.topics, streams.topics_max),
        ] {
            if most != 0 && asked.iter().any(|asked| *asked > most) {
                let text = format!("more than {most} {what} are not offered by");
                remarks.entry(text).or_default().push(&system.name);
            }
        }
        let given = given(workload, system);
        if given != workload.reliability {
            let (asked, given) = (workload.reliability.name(), given.name());
            let text =
                format!("reliability \"{asked}\" is asked for; \"{given}\" is all there is of");
            remarks.entry(text).or_default().push(&system.name);
        }
    }
    let say = |(text, names): (String, Vec<&str>)| {
        format!("`{}`: {text} {}", scenario.name, names.join(", "))
    };
    remarks.into_iter().map(say).collect()
}

/// `a.x, b.y left out of `scenario``, of those present that are not to stay.
fn leave_out(
    scenario: &Scenario,
    entries: &mut Vec<SystemDriver>,
    stays: impl Fn(&SystemDriver) -> bool,
) -> Option<String> {
    let (kept, left_out): (Vec<SystemDriver>, Vec<SystemDriver>) =
        entries.drain(..).partition(|entry| entry.system.missing.is_some() || stays(entry));
    *entries = kept;
    let names: Vec<&str> = left_out.iter().map(|entry| entry.system.name.as_str()).collect();
    (!names.is_empty()).then(|| format!("{} left out of `{}`", names.join(", "), scenario.name))
}
