//! What only the drivers can find wrong with a scenario.

use myelin_bench_kit::Reason;
use myelin_bench_kit::protocol::System;

use super::{Plan, RunPlan};
use crate::input_error::InputError;
use crate::registry::SystemDriver;
use crate::scenario::Scenario;

/// Finds the mistakes in a scenario that only its drivers can see: payloads a system cannot carry,
/// options it does not know.
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
    let (workload, limit) = (&scenario.workload, system.payload_bytes_max);
    let size = workload.payload_bytes[index];
    if limit == 0 || size <= limit {
        return Ok(());
    }
    let path = match (workload.frames.is_empty(), workload.modules.is_empty()) {
        (false, _) => format!("workload.frames.{index}"),
        (_, false) => format!("workload.modules.{index}.payload_bytes"),
        _ => format!("workload.payload_bytes.{index}"),
    };
    Err(scenario
        .source
        .wrong(&path, format!("{size} is more than {} carries", system.name))
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
