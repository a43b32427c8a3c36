//! Checks of a scenario that need its drivers: mistakes that only they can see, and requests that
//! their systems do not support. The report names the latter.

use std::collections::BTreeMap;

use myelin_bench_kit::Reason;
use myelin_bench_kit::protocol::{System, Topology};

use super::cells::{given, needs_rate, topics_max};
use super::{Plan, RunPlan};
use crate::input_error::InputError;
use crate::registry::SystemDriver;
use crate::scenario::{Kind, Load, Replay, Scenario};

/// Finds mistakes in a scenario that only its drivers can see: payloads that a system cannot carry,
/// unknown options.
pub fn check(scenario: &Scenario, entries: &[SystemDriver]) -> Result<(), InputError> {
    for driver in scenario.options.keys() {
        if !entries.iter().any(|entry| entry.driver() == driver) {
            let known = entries.iter().map(SystemDriver::driver);
            return Err(InputError::unknown("driver", driver, known)
                .at(&scenario.source, scenario.source.place(&format!("options.{driver}")))
                .remedy("a table of options belongs to the driver of a system in plan.systems"));
        }
    }
    let present = entries.iter().filter(|entry| entry.system.missing.is_none());
    for entry in present {
        for (index, load) in scenario.workload.loads.iter().enumerate() {
            let path = format!("workload.loads.{index}.payload_bytes");
            fits(scenario, &entry.system, &path, load.payload_bytes)?;
        }
        for (index, &payload_bytes) in scenario.workload.payload_bytes.iter().enumerate() {
            check_size(scenario, &entry.system, index)?;
            if scenario.options.contains_key(entry.driver()) {
                check_options(scenario, entry, payload_bytes)?;
            }
        }
    }
    Ok(())
}

fn check_size(scenario: &Scenario, system: &System, index: usize) -> Result<(), InputError> {
    let workload = &scenario.workload;
    let path = match (workload.frames.is_empty(), workload.modules.is_empty()) {
        (false, _) => format!("workload.frames.{index}"),
        (_, false) => format!("workload.modules.{index}.payload_bytes"),
        _ => format!("workload.payload_bytes.{index}"),
    };
    fits(scenario, system, &path, workload.payload_bytes[index])
}

/// Whether `system` can carry payloads of `size` bytes, which the key at `path` asks for.
fn fits(scenario: &Scenario, system: &System, path: &str, size: u64) -> Result<(), InputError> {
    let limit = system.payload_bytes_max;
    if limit == 0 || size <= limit {
        return Ok(());
    }
    Err(scenario
        .source
        .wrong(path, format!("{size} is more than {} can carry", system.name))
        .remedy(format!("use at most {limit}, or leave the system out of plan.systems")))
}

fn check_options(scenario: &Scenario, entry: &SystemDriver, size: u64) -> Result<(), InputError> {
    let alone = Plan::new(vec![(scenario.clone(), vec![entry.clone()])], 0, String::new());
    let Some(cell) = alone.cells.iter().find(|cell| cell.payload_bytes == size) else {
        return Ok(());
    };
    let prepare = alone.prepare(cell, &RunPlan { order: 0, cell: 0, repeat: 0 });
    let Err(Reason { message, remedy, key }) = entry.check(&prepare) else {
        return Ok(());
    };
    let place = scenario.source.place(&format!("options.{}.{key}", entry.driver()));
    Err(scenario.source.error(place, format!("{}: {message}", entry.system.name)).remedy(remedy))
}

/// Removes the systems from `entries` that cannot run the scenario's workload or topology. Returns
/// one line for the report for each system removed, with the reason. Missing systems stay, so that
/// they are listed.
pub fn leave_out_unsupported(scenario: &Scenario, entries: &mut Vec<SystemDriver>) -> Vec<String> {
    let kind = scenario.workload.kind;
    let topologies = &scenario.plan.topology;
    let is_across = scenario.plan.is_across_hosts();
    let able = leave_out(scenario, entries, |entry| entry.system.workloads.contains(&kind));
    let largest = scenario.workload.replay.as_ref().map_or(0, Replay::payload_bytes_max);
    let roomy = leave_out(scenario, entries, |entry| {
        entry.system.payload_bytes_max == 0 || largest <= entry.system.payload_bytes_max
    });
    let placed = leave_out(scenario, entries, |entry| {
        if is_across {
            entry.system.across_hosts && entry.system.topology == Topology::TwoProcesses
        } else {
            topologies.contains(&entry.system.topology)
        }
    });
    let loaded = leave_out(scenario, entries, |entry| {
        scenario.workload.loads.is_empty()
            || entry.system.workloads.contains(&Kind::Stream)
                && entry.system.topology == Topology::TwoProcesses
    });
    let limited = limits_remarks(scenario, entries);
    let kind = kind.name();
    let wanted: Vec<&str> = topologies.iter().map(|topology| topology.name()).collect();
    let wanted = wanted.join(", ");
    let able =
        able.map(|which| format!("{which}: workload `{kind}` is not supported by the driver"));
    let placed = placed.map(|which| {
        format!(
            "{which}: the scenario's topology is {wanted}, which \
                                             they do not support"
        )
    });
    let roomy = roomy.map(|which| {
        format!("{which}: the largest message has {largest} B, more than they can carry")
    });
    let loaded = loaded.map(|which| {
        format!("{which}: a load is a stream between two processes, which they do not support")
    });
    let left_out = [able, roomy, placed, loaded].into_iter().flatten();
    left_out.chain(limited).collect()
}

/// One line for each request about streams that a remaining system does not support.
fn limits_remarks(scenario: &Scenario, entries: &[SystemDriver]) -> Vec<String> {
    let workload = &scenario.workload;
    let mut remarks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let own = workload.kind.is_one_way().then_some((String::new(), workload.reliability));
    let of_load = |load: &Load| (format!(" of the load {:?}", load.name), load.reliability);
    let reliabilities: Vec<_> = own.into_iter().chain(workload.loads.iter().map(of_load)).collect();
    for entry in entries.iter().filter(|entry| entry.system.missing.is_none()) {
        let system = &entry.system;
        for (of, asked) in &reliabilities {
            let given = given(*asked, system);
            if given != *asked {
                let (asked, given) = (asked.name(), given.name());
                let text = format!(
                    "reliability \"{asked}\"{of} was requested; only \"{given}\" is supported by"
                );
                remarks.entry(text).or_default().push(&system.name);
            }
        }
        if !workload.kind.is_one_way() {
            continue;
        }
        let streams = &system.streams;
        for (what, asked, most) in [
            ("publishers", &workload.publishers, streams.publishers_max),
            ("subscribers", &workload.subscribers, streams.subscribers_max),
            ("topics", &workload.topics, topics_max(workload, system)),
        ] {
            if most != 0 && asked.iter().any(|asked| *asked > most) {
                let text = format!("more than {most} {what} are not supported by");
                remarks.entry(text).or_default().push(&system.name);
            }
        }
        if needs_rate(workload, system) && workload.rate_hz.contains(&None) {
            let text = "back to back is left out: a stream needs a rate unless it calls in one process, \
                        which is not so for";
            remarks.entry(text.to_owned()).or_default().push(&system.name);
        }
    }
    let say = |(text, names): (String, Vec<&str>)| {
        format!("`{}`: {text} {}", scenario.name, names.join(", "))
    };
    remarks.into_iter().map(say).collect()
}

/// Removes the present systems that `stays` refuses; returns the line
/// `a.x, b.y left out of `scenario`` for them.
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
