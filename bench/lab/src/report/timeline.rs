//! The page's data on each cell over time, and on its slowest messages; `assets/timeline.js` and
//! `assets/slowest.js` draw them. Columns are packed; see `packed`.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::packed::{integers, logarithms, multiples};
use super::view::{Entry, Group, View};
use crate::summary::{HeatMap, ObservedColumns, Timeline};

/// What a page leaves out to stay below its size limit, in the order in which it is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Downsampling {
    Nothing,
    Configurations,
    /// Every second column and row of the maps.
    FineMaps,
    Maps,
    Everything,
}

impl Downsampling {
    pub(super) const ALL: [Self; 5] =
        [Self::Nothing, Self::Configurations, Self::FineMaps, Self::Maps, Self::Everything];

    /// Tells the reader what the plots over time leave out; empty if nothing.
    pub(super) fn remark(self) -> String {
        let fewer = ": a report of fewer cells has them";
        let (lost, remedy) = match self {
            Self::Nothing | Self::Configurations => return String::new(),
            Self::FineMaps => ("heat maps have half their columns and rows", ""),
            Self::Maps => ("heat maps were left out", fewer),
            Self::Everything => {
                ("time series, heat maps and slowest messages were left out", fewer)
            }
        };
        format!("There are so many cells that {lost}, to keep the page below 5 MB{remedy}.")
    }
}

/// The timelines of all cells that have one, by index of the cell.
pub(super) fn timelines(view: &View, downsampling: Downsampling) -> BTreeMap<usize, Value> {
    if downsampling == Downsampling::Everything {
        return BTreeMap::new();
    }
    let all = view.all().flat_map(|group| group.entries.iter().map(move |entry| (group, entry)));
    let timeline = |(group, entry): (&Group, &Entry)| {
        let (tuning, payload) = (entry.cell.tuning, entry.cell.params.payload_bytes);
        let floor = group.floor(tuning, payload, entry.system.wait).filter(|_| !group.is_fan());
        let floor = floor.map(|floor| floor.index).filter(|index| *index != entry.index);
        Some((entry.index, timeline(entry, floor, downsampling)?))
    };
    all.filter_map(timeline).collect()
}

/// One timeline; `floor` is the index of the floor's cell.
fn timeline(entry: &Entry, floor: Option<usize>, downsampling: Downsampling) -> Option<Value> {
    let timeline = entry.detail.timeline.as_ref()?;
    let windows = || timeline.windows.iter();
    Some(json!({
        "run": timeline.run,
        "duration_s": timeline.duration_s,
        // In seconds, negative.
        "observed_from_s": timeline.observed_from_s,
        // Number of windows, and their columns: messages a second and µs, as logarithms.
        "windows": timeline.windows.len(),
        "rate": logarithms(windows().map(|window| Some(window.rate_per_s))),
        "p50": logarithms(windows().map(|window| window.p50_us)),
        "p99": logarithms(windows().map(|window| window.p99_us)),
        "max": logarithms(windows().map(|window| window.max_us)),
        // Seconds for which the link was down.
        "cut_s": timeline.cut_s,
        "map": map(timeline, downsampling),
        "observed": entry.detail.series.as_ref().filter(|it| !it.t_s.is_empty()).map(observed),
        "slowest": entry.detail.slowest,
        "floor": floor,
    }))
}

fn map(timeline: &Timeline, downsampling: Downsampling) -> Option<Value> {
    let coarse = (downsampling == Downsampling::FineMaps).then(|| timeline.map.coarser());
    let map = coarse.as_ref().unwrap_or(&timeline.map);
    let fields = || map.fields.iter();
    (downsampling < Downsampling::Maps).then(|| {
        json!({
            "columns": map.columns,
            "rows_per_decade": HeatMap::ROWS_PER_DECADE,
            // Height of a field in rows: more if the map was made coarser.
            "height": if coarse.is_some() { 2 } else { 1 },
            // Position of each field: column × 1000 + row.
            "places": integers(fields().map(|it| i64::from(it.column) * 1000 + i64::from(it.row))),
            "counts": integers(fields().map(|field| i64::from(field.count))),
        })
    })
}

/// Joins neighbouring rows if there are more than a plot can show.
fn observed(columns: &ObservedColumns) -> Value {
    let joined = columns.t_s.len().div_ceil(ROWS_MAX).max(1);
    let rows: Vec<std::ops::Range<usize>> = (0..columns.t_s.len())
        .step_by(joined)
        .map(|first| first..(first + joined).min(columns.t_s.len()))
        .collect();
    let begin = |place: usize| if place == 0 { 0.0 } else { columns.t_s[place - 1] };
    let mean = |column: &[f64], row: &std::ops::Range<usize>| {
        let span = columns.t_s[row.end - 1] - begin(row.start);
        let sum: f64 = row.clone().map(|at| column[at] * (columns.t_s[at] - begin(at))).sum();
        Some(sum / span.max(1e-9))
    };
    let pss = |row: &std::ops::Range<usize>| {
        let seen = row.clone().filter_map(|at| columns.pss_bytes.get(at).copied().flatten());
        seen.max().map(|bytes| bytes as f64)
    };
    // Rows end at `t_ms`, counted from the beginning of observing, where the first one begins.
    // Figures are tenths of a per cent of a core or of the time, and KiB.
    json!({
        "t_ms": multiples(rows.iter().map(|row| Some(columns.t_s[row.end - 1])), 1e-3),
        "cpu": multiples(rows.iter().map(|row| mean(&columns.cpu_percent, row)), 0.1),
        "wait": multiples(rows.iter().map(|row| mean(&columns.runqueue_wait_percent, row)), 0.1),
        "pss": multiples(rows.iter().map(pss), 1024.0),
    })
}

/// The number of windows.
const ROWS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_rows_keep_means_and_peaks() {
        let columns = ObservedColumns {
            t_s: (1..=120).map(|row| f64::from(row) * 0.1).collect(),
            cpu_percent: (0..120).map(|row| f64::from(row % 2) * 50.0).collect(),
            runqueue_wait_percent: vec![0.0; 120],
            pss_bytes: (0..120).map(|row| (row != 3).then_some(1024 * row)).collect(),
            ..ObservedColumns::default()
        };
        let made = observed(&columns);
        let expected = |value: i64| integers(std::iter::repeat_n(value, 60));
        assert_eq!(made["cpu"], expected(250), "a mean over both rows");
        assert_eq!(made["wait"], expected(0));
        assert_eq!(made["t_ms"], integers((1..=60).map(|row| 200 * row)));
        let peaks = (0..60).map(|row| if row == 1 { 2 } else { 2 * row + 1 });
        assert_eq!(made["pss"], integers(peaks));
    }
}
