//! The format of CycloneDDS's `RoundtripPing`, column by column, for scripts that read it.
//!
//! It prints half round trips in whole microseconds: differences truncated to microseconds first
//! and halved then, minimum and maximum by integer division, medians as fractions rounded by
//! `printf`. Write and read access are printed whole, as there.

use std::fmt::Write as _;

use super::view::{Entry, View};
use crate::summary::{Distribution, Second};

/// One block for each cell with round trips.
pub(super) fn render(view: &View) -> String {
    view.entries().filter_map(block).collect::<Vec<_>>().join("\n")
}

fn block(entry: &Entry) -> Option<String> {
    let round_trip = entry.cell.round_trip_us?;
    let cell = entry.cell;
    let mut text = entry.comment(REMARK);
    let payload = cell.params.payload_bytes;
    let (samples, seconds) = (cell.messages_asked, cell.duration_asked_s.ceil());
    text += &format!("# payloadSize: {payload} | numSamples: {samples} | timeOut: {seconds}\n\n");
    text += HEADER;
    for second in &entry.detail.seconds {
        text += &row(&format!("{:9}", second.second), &Figures::of_second(second));
    }
    let overall =
        Figures { count: cell.received, round_trip, write: cell.write_us, read: cell.read_us };
    text.push('\n');
    text += &row("# Overall", &overall);
    Some(text)
}

/// What one row is made of.
struct Figures {
    count: u64,
    round_trip: Distribution,
    write: Option<Distribution>,
    read: Option<Distribution>,
}

impl Figures {
    fn of_second(second: &Second) -> Self {
        Self {
            count: second.count,
            round_trip: second.round_trip_us,
            write: Some(second.write_us),
            read: second.read_us,
        }
    }
}

fn row(label: &str, figures: &Figures) -> String {
    let round_trip = &figures.round_trip;
    let mut text = format!(
        "{label} {:9} {:>8} {:8} {:>8} {:8}",
        figures.count,
        round_trip.p50.map_or_else(dash, |p50| format!("{:.0}", p50.floor() / 2.0)),
        half(round_trip.min),
        round_trip.p99.map_or_else(dash, |p99| half(p99).to_string()),
        half(round_trip.max),
    );
    for access in [figures.write, figures.read] {
        let (count, median, min) = match access {
            Some(access) => (
                figures.count.to_string(),
                access.p50.map_or_else(dash, |p50| format!("{:.0}", p50.floor())),
                (access.min as i64).to_string(),
            ),
            None => (dash(), dash(), dash()),
        };
        write!(text, " {count:>10} {median:>8} {min:>8}").expect("a String takes everything");
    }
    text.push('\n');
    text
}

/// As the integer arithmetic there has it.
fn half(us: f64) -> i64 {
    us as i64 / 2
}

/// Stands for what was withheld or not measured.
fn dash() -> String {
    "-".to_owned()
}

const REMARK: &str = "\
# These are half round trips, as RoundtripPing prints them; everything else in Myelin prints whole \
ones.
# Seconds: the first valid run. Overall: all valid runs. -: too few samples, or not measured.";

const HEADER: &str = "\
# Latency measurements (in us)
#             Latency [us]                                   Write-access time [us]       \
Read-access time [us]
# Seconds     Count   median      min      99%      max      Count   median      min      Count   \
median      min
";
