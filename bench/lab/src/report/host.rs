//! The machine in words.

use minijinja::context;

use super::html::rendered;
use crate::machine::Machine;

/// The machine in one line: processor, CPUs, distribution, kernel.
pub(super) fn brief(host: &Machine) -> String {
    let kind = if host.hypervisor.is_some() { "virtual CPUs" } else { "CPUs" };
    let processors = format!("{}, {} {kind}", host.identity.cpu_model, host.identity.cpus);
    // Without the name that a distribution gives its number.
    let os = host.os.split(" (").next().unwrap_or_default().to_owned();
    let kernel = host.identity.kernel.splitn(3, '.').take(2).collect::<Vec<_>>().join(".");
    let parts = [processors, os, format!("Linux {kernel}")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

/// Everything known of the machine: what, value.
pub(crate) fn rows(host: &Machine) -> Vec<(String, String)> {
    let text = rendered("host", include_str!("assets/host.jinja"), context! { host });
    let row =
        |line: &str| line.split_once('\t').map(|(what, value)| (what.to_owned(), value.to_owned()));
    text.lines().filter_map(row).collect()
}
