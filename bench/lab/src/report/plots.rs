//! The data of the page's plots: one JSON document inside the page. Unknown values are left out.

use serde_json::{Value, json};

use super::metrics::memory_mb;
use super::packed::{integers, logarithms};
use super::palette::Style;
use super::sweep::{self, Sweep};
use super::timeline::{self, Downsampling};
use super::view::{Entry, Group, View};
use crate::lists::grouped;
use crate::summary::{CurvePoint, Placement, RunFigures};

/// Every measured system by family; families are in the order of their first systems.
pub(super) fn families(styles: &[Style]) -> Vec<(&str, Vec<&Style>)> {
    grouped(styles.iter().map(|style| (style.family.as_str(), style)))
}

/// The document as text for a `<script>` element.
pub(super) fn json(view: &View, styles: &[Style], downsampling: Downsampling) -> String {
    let sweeps = sweep::sweeps(view);
    let groups = view.groups.iter().enumerate().filter(|(_, group)| group.is_steady());
    let groups: Vec<Value> = groups.map(|(place, it)| group(it, Some(place), &sweeps)).collect();
    let publish_groups: Vec<Value> =
        view.publish_groups.iter().map(|fan| group(fan, None, &sweeps)).collect();
    let mut data = json!({
        "systems": styles,
        "groups": groups,
        "publish_groups": publish_groups,
        "sweeps": sweeps.iter().map(|sweep| &sweep.drawing).collect::<Vec<_>>(),
        // By index of the cell.
        "timelines": timeline::timelines(view, downsampling),
    });
    tidy(&mut data);
    embedded(&data)
}

/// A document as text inside a page.
pub(crate) fn embedded(data: &Value) -> String {
    // Inside JSON, `<` occurs only in strings; escaped, it cannot end the element early.
    data.to_string().replace('<', "\\u003c")
}

/// Removes nulls from objects (in a list the position has a meaning), and rounds fractions to five
/// significant figures. That is finer than a pixel and halves the size.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Number(number) if number.is_f64() => {
            let figure = number.as_f64().filter(|it| it.fract() != 0.0);
            if let Some(short) = figure.and_then(|it| format!("{it:.4e}").parse().ok()) {
                *number = short;
            }
        }
        _ => {}
    }
}

/// Data of one group. Latencies are in µs, also for publish calls; those have no `place` among the
/// groups.
fn group(group: &Group, place: Option<usize>, sweeps: &[Sweep]) -> Value {
    let is_among = |of: fn(&Sweep) -> &[usize]| {
        place.is_some_and(|place| sweeps.iter().any(|sweep| of(sweep).contains(&place)))
    };
    json!({
        "id": group.id,
        "title": group.title(),
        "metric": group.metric.words(),
        // The measured events, in the plural.
        "noun": group.metric.noun(),
        "is_flow": group.is_flow(),
        "scenario": group.scenario,
        // The values that set it apart from the other groups of its scenario.
        "point": group.point,
        // Whether it is one value of a sweep; then only the first and the last are drawn at first.
        "is_swept": is_among(|sweep| &sweep.groups),
        // Whether it has a plot against size.
        "has_sizes": group.payloads.len() > 1 && !is_among(|sweep| &sweep.sized),
        "tunings": group.tunings,
        "subscribers": group.subscribers,
        "payloads": group.payloads,
        "payload_labels": group.payloads.iter().map(|&it| group.size(it)).collect::<Vec<_>>(),
        "clock_read_ns": group.clock_read_ns,
        "cells": group.entries.iter().map(cell).collect::<Vec<_>>(),
    })
}

fn cell(entry: &Entry) -> Value {
    let cell = entry.cell;
    let bimodal = cell.placements.iter().filter(|_| entry.is_bimodal());
    json!({
        // Index in the summary.
        "index": entry.index,
        "system": entry.system.name,
        "tuning": cell.tuning,
        "payload": cell.params.payload_bytes,
        "subscribers": cell.params.subscribers,
        "topology": cell.topology.name(),
        "valid": cell.valid,
        // CPU of all processes and of the receiving end, in per cent of a core.
        "cpu": cell.cpu_percent,
        "receiver_cpu": cell.receiver_cpu_percent,
        // CPU of all processes per message, in µs.
        "cpu_us": cell.cpu_us_per_message,
        // Whether it fell short of its rate, so that its latency depends on the length of the run.
        "short": entry.short_of_rate().is_some(),
        // Whether the median depends on the shares of two placements.
        "mixed": entry.is_mixed(),
        "p50": entry.p50(),
        "p99": entry.latency().and_then(|latency| latency.p99),
        "p50_interval": entry.p50_interval(),
        // Packed columns: quantile as a number of nines × 10,000, µs, lowest and highest run.
        "curve": packed(&thin(&entry.detail.curve)),
        // The quantiles 1/400, 3/400 … in µs, packed.
        "even": logarithms(entry.detail.even_us.iter().copied().map(Some)),
        "runs": entry.detail.runs.iter().map(run).collect::<Vec<_>>(),
        "stages": entry.detail.stages,
        "memory": memory_mb(entry),
        // In per cent.
        "lost": entry.loss_percent(),
        "placements": bimodal.map(placement).collect::<Vec<_>>(),
    })
}

fn run(run: &RunFigures) -> Value {
    let (p50, p99) = (run.get("p50_us"), run.get("p99_us"));
    json!({ "order": run.order, "p50": p50, "p99": p99, "valid": run.valid })
}

fn placement(placement: &Placement) -> Value {
    json!({
        "same_cpu": placement.same_cpu,
        "label": if placement.same_cpu { "same core" } else { "across cores" },
        "share": placement.share,
        "p50": placement.p50(),
        "p99": placement.latency().and_then(|it| it.p99),
    })
}

/// Drops points that would lie within a fraction of a pixel of the point before, along both axes;
/// first and last stay.
fn thin(curve: &[CurvePoint]) -> Vec<[f64; 4]> {
    let mut kept: Vec<[f64; 4]> = Vec::new();
    let last = curve.len().saturating_sub(1);
    for (place, point) in curve.iter().enumerate() {
        let nines = -(1.0 - point.quantile).max(f64::EPSILON).log10();
        let near = kept.last().is_some_and(|previous| {
            nines - previous[0] < 0.004 && (point.us / previous[1]).ln().abs() < 0.004
        });
        if !near || place == last {
            kept.push([nines, point.us, point.low_us, point.high_us]);
        }
    }
    kept
}

fn packed(curve: &[[f64; 4]]) -> [String; 4] {
    let column = |place: usize| logarithms(curve.iter().map(|point| Some(point[place])));
    let nines = integers(curve.iter().map(|point| (point[0] * 1e4).round() as i64));
    [nines, column(1), column(2), column(3)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_are_omitted_but_stay_null_in_lists() {
        let mut data = json!({ "a": null, "b": [{ "c": null, "d": 0 }, null, [null, false]] });
        tidy(&mut data);
        assert_eq!(data, json!({ "b": [{ "d": 0 }, null, [null, false]] }));
    }

    #[test]
    fn thinning_keeps_ends_and_steps() {
        let point = |quantile: f64, us: f64| CurvePoint { quantile, us, low_us: us, high_us: us };
        let mut curve: Vec<_> = (0..1000).map(|i| point(f64::from(i) / 1e6, 10.0)).collect();
        curve.push(point(0.001, 60.0));
        curve.push(point(0.0011, 60.0));
        let thinned = thin(&curve);
        assert_eq!(thinned.first().unwrap()[..2], [0.0, 10.0]);
        assert_eq!(thinned.last().unwrap()[1], 60.0);
        assert_eq!(thinned.len(), 3, "{thinned:?}");
    }
}
