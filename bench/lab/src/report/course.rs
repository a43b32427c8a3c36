//! What the page has of each cell over time, and of its slowest messages; drawn by
//! `assets/course.js`, `assets/slowest.js`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::packed::{integers, logarithms, multiples};
use super::plots::short;
use super::view::{Entry, View};
use crate::summary::{Around, HeatMap, ObservedColumns, SlowMessage, Timeline};

/// How much of it there is room for on a page. In the order in which it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Room {
    Ample,
    NoConfigurations,
    CoarseMaps,
    NoMaps,
    Nothing,
}

impl Room {
    pub(super) const ALL: [Room; 5] =
        [Room::Ample, Room::NoConfigurations, Room::CoarseMaps, Room::NoMaps, Room::Nothing];

    /// What was left out of it, for the reader; empty if nothing was.
    pub(super) fn words(self) -> &'static str {
        match self {
            Room::Ample | Room::NoConfigurations => "",
            Room::CoarseMaps => {
                "There are so many cells that heat maps have half their columns and rows, to keep \
                 the page below 5 MB."
            }
            Room::NoMaps => {
                "There are so many cells that heat maps were left out, to keep the page below 5 MB: \
                 a results folder with fewer cells has them."
            }
            Room::Nothing => {
                "There are so many cells that time series, heat maps and slowest messages were left \
                 out, to keep the page below 5 MB: a results folder with fewer cells has them."
            }
        }
    }
}

/// One cell. Columns are packed; see `packed`.
#[derive(Serialize)]
pub(super) struct PlotCourse<'a> {
    run: u32,
    duration_s: f64,
    /// Seconds, negative.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_from_s: Option<f64>,
    /// Number of windows, and their columns: logarithms of messages a second and µs.
    windows: usize,
    rate: String,
    p50: String,
    p99: String,
    max: String,
    /// While the link was down, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_s: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    map: Option<PlotMap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<PlotObserved>,
    slowest: Vec<PlotSlow<'a>>,
    /// Index of the floor's cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    floor: Option<usize>,
}

#[derive(Serialize)]
struct PlotMap {
    columns: u32,
    rows_per_decade: u32,
    /// Rows of a field: more where the map was made coarser.
    height: u32,
    /// Of each field: column × 1000 + row.
    places: String,
    counts: String,
}

/// Rows end at `t_ms`, counted from the beginning of observing; the first begins there.
#[derive(Serialize)]
struct PlotObserved {
    t_ms: String,
    /// In tenths of a per cent of a core.
    cpu: String,
    /// In tenths of a per cent of the time.
    wait: String,
    /// In KiB.
    pss: String,
}

#[derive(Serialize)]
struct PlotSlow<'a> {
    run: u32,
    id: u64,
    at_s: f64,
    us: f64,
    cpus: &'a [u16],
    /// Stages by their number, with µs.
    parts: Vec<(u8, f64)>,
    /// In the order of [`Around`].
    #[serde(skip_serializing_if = "Option::is_none")]
    around: Option<[Option<f64>; 7]>,
}

/// Of every cell that has a course, by its index.
pub(super) fn courses<'a>(view: &View<'a>, room: Room) -> BTreeMap<usize, PlotCourse<'a>> {
    if room == Room::Nothing {
        return BTreeMap::new();
    }
    let grouped = view.groups.iter().flat_map(|group| {
        group.entries.iter().map(move |entry| {
            let (tuning, payload) = (&entry.cell.tuning, entry.cell.params.payload_bytes);
            let floor = group.floor(tuning, payload, entry.system.wait);
            (entry, floor.map(|floor| floor.index).filter(|index| *index != entry.index))
        })
    });
    let fans = view.fans.iter().flat_map(|fan| fan.entries.iter().map(|entry| (entry, None)));
    let all = grouped.chain(fans);
    all.filter_map(|(entry, floor)| Some((entry.index, course(entry, floor, room)?))).collect()
}

fn course<'a>(entry: &Entry<'a>, floor: Option<usize>, room: Room) -> Option<PlotCourse<'a>> {
    let course = entry.detail.timeline.as_ref()?;
    let windows = || course.windows.iter();
    Some(PlotCourse {
        run: course.run,
        duration_s: short(course.duration_s),
        observed_from_s: course.observed_from_s.map(short),
        windows: course.windows.len(),
        rate: logarithms(windows().map(|window| Some(window.rate_per_s))),
        p50: logarithms(windows().map(|window| window.p50_us)),
        p99: logarithms(windows().map(|window| window.p99_us)),
        max: logarithms(windows().map(|window| window.max_us)),
        cut_s: course.cut_s.map(|ends| ends.map(short)),
        map: map(course, room),
        observed: entry.detail.series.as_ref().filter(|it| !it.t_s.is_empty()).map(observed),
        slowest: entry.detail.slowest.iter().map(slow).collect(),
        floor,
    })
}

fn map(course: &Timeline, room: Room) -> Option<PlotMap> {
    let coarse;
    let (map, height) = match room {
        Room::Ample | Room::NoConfigurations => (&course.map, 1),
        Room::CoarseMaps => {
            coarse = course.map.coarser();
            (&coarse, 2)
        }
        Room::NoMaps | Room::Nothing => return None,
    };
    let fields = || map.fields.iter();
    Some(PlotMap {
        columns: map.columns,
        rows_per_decade: HeatMap::ROWS_PER_DECADE,
        height,
        places: integers(fields().map(|it| i64::from(it.column) * 1000 + i64::from(it.row))),
        counts: integers(fields().map(|field| i64::from(field.count))),
    })
}

/// Rows in sequence are joined where there are more than a plot can show.
fn observed(columns: &ObservedColumns) -> PlotObserved {
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
    PlotObserved {
        t_ms: multiples(rows.iter().map(|row| Some(columns.t_s[row.end - 1])), 1e-3),
        cpu: multiples(rows.iter().map(|row| mean(&columns.cpu_percent, row)), 0.1),
        wait: multiples(rows.iter().map(|row| mean(&columns.runqueue_wait_percent, row)), 0.1),
        pss: multiples(rows.iter().map(pss), 1024.0),
    }
}

fn slow(message: &SlowMessage) -> PlotSlow<'_> {
    let around = |seen: &Around| {
        [
            Some(seen.span_s),
            Some(seen.cpu_percent),
            Some(seen.runqueue_wait_percent),
            Some(seen.switches_per_s),
            Some(seen.faults_per_s),
            seen.migrations_per_s,
            seen.steal_percent,
        ]
        .map(|figure| figure.map(|it| format!("{it:.2e}").parse().unwrap_or(it)))
    };
    PlotSlow {
        run: message.run,
        id: message.id,
        at_s: short(message.at_s),
        us: short(message.us),
        cpus: &message.cpus,
        parts: message.parts.iter().map(|(stage, us)| (*stage as u8, short(*us))).collect(),
        around: message.around.as_ref().map(around),
    }
}

/// As many as there are windows.
const ROWS_MAX: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_rows_keep_what_happened() {
        let columns = ObservedColumns {
            t_s: (1..=120).map(|row| f64::from(row) * 0.1).collect(),
            cpu_percent: (0..120).map(|row| f64::from(row % 2) * 50.0).collect(),
            runqueue_wait_percent: vec![0.0; 120],
            pss_bytes: (0..120).map(|row| (row != 3).then_some(1024 * row)).collect(),
            ..ObservedColumns::default()
        };
        let made = observed(&columns);
        let expected = |value: i64| integers(std::iter::repeat_n(value, 60));
        assert_eq!(made.cpu, expected(250), "a mean over both rows");
        assert_eq!(made.wait, expected(0));
        assert_eq!(made.t_ms, integers((1..=60).map(|row| 200 * row)));
        let peaks = (0..60).map(|row| if row == 1 { 2 } else { 2 * row + 1 });
        assert_eq!(made.pss, integers(peaks));
    }
}
