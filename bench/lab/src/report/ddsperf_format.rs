//! The format in which `ddsperf ping` of CycloneDDS 0.10.2 reports every second: a line of half
//! round trips, and one of memory, context switches and CPU.

use super::view::{Entry, View};
use crate::summary::{Distribution, ProcessUse};

/// One block for each cell with round trips.
pub(super) fn render(view: &View) -> String {
    view.entries().filter_map(block).collect::<Vec<_>>().join("\n")
}

fn block(entry: &Entry) -> Option<String> {
    let overall = entry.cell.round_trip_us?;
    let cell = entry.cell;
    let mut text = entry.comment(REMARK);
    let seconds = &entry.detail.seconds;
    for second in seconds {
        let at = f64::from(second.second);
        text += &latency(at, cell.params.payload_bytes, &second.round_trip_us, second.count);
    }
    if !seconds.is_empty() {
        text += "# all valid runs\n";
    }
    let end = seconds.last().map_or(0.0, |second| f64::from(second.second));
    text += &latency(end, cell.params.payload_bytes, &overall, cell.received);
    text += &usage(entry, end);
    Some(text)
}

fn latency(at: f64, size: u64, round_trip: &Distribution, count: u64) -> String {
    let half = |us: f64| format!("{:.3}us", us / 2.0);
    let percentile = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), half);
    format!(
        "[0] {at:.3}  pong:0 size {size} mean {} min {} 50% {} 90% {} 99% {} max {} cnt {count}\n",
        half(round_trip.mean),
        half(round_trip.min),
        percentile(round_trip.p50),
        percentile(round_trip.p90),
        percentile(round_trip.p99),
        half(round_trip.max),
    )
}

/// A line for each process: memory, switches, CPU in user and system mode, and the threads of note.
fn usage(entry: &Entry, at: f64) -> String {
    entry.cell.processes.iter().map(|process| line_of(process, at)).collect()
}

fn line_of(process: &ProcessUse, at: f64) -> String {
    let split = process.user_percent.map_or_else(
        || format!("{:.0}%", process.cpu_percent),
        |user| format!("{user:.0}%+{:.0}%", (process.cpu_percent - user).max(0.0)),
    );
    let shown = process.threads.iter().filter(|thread| thread.cpu_percent >= CPU_PERCENT_SHOWN);
    let threads: String =
        shown.map(|thread| format!(" {}:{:.0}%", thread.name, thread.cpu_percent)).collect();
    format!(
        "[0] {at:.3}  rss:{} vcsw:{:.0} ivcsw:{:.0} {}:{split}{threads}\n",
        memory(process.rss_bytes),
        process.voluntary_switches_per_s,
        process.involuntary_switches_per_s,
        process.role,
    )
}

fn memory(bytes: u64) -> String {
    match bytes {
        bytes if bytes > 1 << 20 => format!("{:.1}MB", bytes as f64 / f64::from(1 << 20)),
        bytes => format!("{:.0}kB", bytes as f64 / 1024.0),
    }
}

const REMARK: &str = "\
# These are half round trips, as ddsperf prints them; everything else in Myelin prints whole ones.
# Process numbers are unknown here and printed as 0; a thread's CPU is not divided.";

/// As in ddsperf, threads below half a per cent are left out.
const CPU_PERCENT_SHOWN: f64 = 0.5;
