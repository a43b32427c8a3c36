//! The two hosts of a session. They are reached before anything runs, so that problems are reported
//! early.

use std::path::PathBuf;

use anyhow::Result;
use myelin_bench_kit::protocol::System;

use crate::host::LinkError;
use crate::host::hosts::{Hosts, HostsChoice};
use crate::input_error::InputError;
use crate::lists::ascending;
use crate::registry::SystemDriver;
use crate::scenario::{Link, Scenario, TuningChoice};

/// A scenario and the systems chosen for it.
pub(super) type Chosen = (Scenario, Vec<SystemDriver>);

/// Reaches the two hosts if one of `chosen` needs them, and removes what they do not support, with
/// a note; `None` if no scenario needs them.
pub(super) fn reach(
    choice: Option<&HostsChoice>,
    chosen: &mut Vec<Chosen>,
    notes: &mut Vec<String>,
) -> Result<Option<Hosts>> {
    let is_across = |(scenario, _): &Chosen| scenario.plan.is_across_hosts();
    if !chosen.iter().any(is_across) {
        return match choice {
            None => Ok(None),
            Some(choice) => {
                Err(InputError::new(format!("--hosts {choice}: no scenario needs them"))
                    .remedy("only scenarios with plan.topology = \"two-hosts\" need it")
                    .into())
            }
        };
    }
    let choice = choice.cloned().unwrap_or_default();
    for (scenario, _) in chosen.iter_mut().filter(|it| is_across(it)) {
        if choice.are_real() && scenario.network.is_some() {
            let place = scenario.source.place("network");
            let text = format!("[network]: this program does not change the link between {choice}");
            let remedy = "leave it out, or use --hosts netns";
            return Err(scenario.source.error(place, text).remedy(remedy).into());
        }
    }
    let entries = chosen.iter().filter(|it| is_across(it)).flat_map(|(_, entries)| entries);
    let drivers = drivers_of(entries);
    let mut hosts = match Hosts::reach(choice, drivers) {
        Ok(hosts) => hosts,
        Err(reason) => {
            let left_out: Vec<Chosen> = chosen.extract_if(.., |it| is_across(it)).collect();
            if chosen.is_empty() {
                return Err(InputError::new(reason).into());
            }
            let note = |(scenario, _): &Chosen| format!("`{}` left out: {reason}", scenario.name);
            notes.extend(left_out.iter().map(note));
            return Ok(None);
        }
    };
    for (scenario, entries) in chosen.iter_mut().filter(|it| is_across(it)) {
        if hosts.choice().are_real() {
            leave_out_missing(&mut hosts, scenario, entries, notes);
            let there = |tuning, choice: &TuningChoice| hosts.unavailable(tuning, choice);
            super::drop_unavailable_tunings(scenario, notes, there)?;
        }
        let link = scenario.network.clone().unwrap_or_default();
        shape(&mut hosts, &link, scenario)?;
    }
    Ok(Some(hosts))
}

/// The executables of the systems that are installed here.
pub(super) fn drivers_of<'a>(entries: impl Iterator<Item = &'a SystemDriver>) -> Vec<PathBuf> {
    let here = entries.filter(|entry| entry.system.missing.is_none());
    ascending(here.map(|entry| entry.executable.clone()))
}

/// Shapes the link once as a scenario asks, to see whether that works.
fn shape(hosts: &mut Hosts, link: &Link, scenario: &Scenario) -> Result<()> {
    let Err(LinkError { key, reason }) = hosts.shape(link) else {
        return Ok(());
    };
    let path = key.map_or("network".into(), |key| format!("network.{key}"));
    let remedy = if link.is_emulated() {
        "this key needs TAP interfaces (CONFIG_TUN); without them, only link, rate_mbit, mtu, \
         routed and cut can be used"
    } else {
        "see ip-link(8) and tc(8)"
    };
    Err(scenario.source.wrong(&path, reason).remedy(remedy).into())
}

/// Leaves out systems that are installed here but not on both hosts, with a note.
fn leave_out_missing(
    hosts: &mut Hosts,
    scenario: &Scenario,
    entries: &mut Vec<SystemDriver>,
    notes: &mut Vec<String>,
) {
    entries.retain(|entry| {
        let is_here = entry.system.missing.is_none();
        let reason = is_here.then(|| missing_there(hosts, entry)).flatten();
        let say =
            |reason| format!("{} left out of `{}`: {reason}", entry.system.name, scenario.name);
        notes.extend(reason.as_ref().map(say));
        reason.is_none()
    });
}

fn missing_there(hosts: &mut Hosts, entry: &SystemDriver) -> Option<String> {
    let described = match hosts.describe(&entry.executable) {
        Ok(described) => described,
        Err(reason) => return Some(reason),
    };
    described.into_iter().find_map(|(host, systems)| {
        let same = |system: &&System| system.name == entry.system.name;
        let reason = match systems.iter().find(same) {
            None => "its driver has no such system".into(),
            Some(system) => system.missing.clone()?,
        };
        Some(format!("host {host}: {reason}"))
    })
}
