//! What the kit checks of a run before a driver sees it, from the driver's description of its systems. A driver
//! checks only what is left.

use crate::driver::Driver;
use crate::error::Error;
use crate::protocol::{Prepare, Role, System, Topology};
use crate::stream;

/// Checks that the system of `prepare` can do what is asked of it, and returns it; the error says what to
/// change. Ends with the driver's own [`check`](Driver::check).
pub fn check(driver: &dyn Driver, prepare: &Prepare) -> Result<System, Error> {
    let system = check_system(driver, prepare)?;
    driver.check(prepare)?;
    Ok(system)
}

fn check_system(driver: &dyn Driver, prepare: &Prepare) -> Result<System, Error> {
    let name = &prepare.system;
    let leave_out = |text: String| Err(Error::new(text).remedy("leave it out of plan.systems"));
    let system = driver.system(name).ok_or_else(|| Error::new(format!("no system {name}")))?;
    if let Some(missing) = &system.missing {
        return Err(Error::new(missing));
    }
    if let Some(key) = prepare.options.keys().find(|key| !driver.has_option(key)) {
        let driver = name.split('.').next().unwrap_or_default();
        return Err(Error::new(format!("options.{driver}.{key}: there is no such option"))
            .remedy("leave it out")
            .key(key));
    }
    if prepare.role == Role::Daemon {
        return Ok(system);
    }
    if !system.workloads.contains(&prepare.workload) {
        let workload = prepare.workload.name();
        return leave_out(format!("{name} cannot run the workload {workload}"));
    }
    if prepare.network.is_some() && !system.across_hosts {
        return leave_out(format!("{name} cannot reach other hosts"));
    }
    if system.topology == Topology::OneProcess && prepare.role != Role::Ping {
        return Err(Error::new(format!("{name}: ping runs both ends; there is no other role")));
    }
    let (bytes, max) = (prepare.payload_bytes, system.payload_bytes_max);
    if max != 0 && bytes > max {
        let text = format!("{name}: {bytes} B of payload, but at most {max} B can be sent");
        return Err(
            Error::new(text).remedy("set workload.payload_bytes to less, or leave the system out")
        );
    }
    if prepare.workload.is_one_way() {
        check_stream(prepare, &system)?;
    }
    Ok(system)
}

fn check_stream(prepare: &Prepare, system: &System) -> Result<(), Error> {
    let (name, reliability) = (&prepare.system, prepare.reliability);
    if !system.streams.reliability.contains(&reliability) {
        let offered = system.streams.reliability.first().map_or("", |offered| offered.name());
        return Err(Error::new(format!("{name}: not {}", reliability.name()))
            .remedy(format!("workload.reliability: \"{offered}\"")));
    }
    let depth = prepare.depth;
    let max = Some(system.streams.depth_max).filter(|max| *max != 0).unwrap_or(i32::MAX as u32);
    if !(1..=max).contains(&depth) {
        return Err(Error::new(format!("{name}: a depth of {depth} is not possible"))
            .remedy(format!("workload.depth: 1 to {max}")));
    }
    stream::check(prepare, system)
}
