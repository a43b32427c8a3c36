//! Figures against a parameter: small multiples of latency, CPU, memory and loss for each scenario
//! in which payload, rate, or the number of publishers, subscribers or topics takes at least three
//! values. `assets/sweep.js` draws them on the page.

use std::ops::RangeInclusive;

use myelin_bench_kit::protocol::Workload;
use serde_json::{Value, json};

use super::format;
use super::metrics::{PLOTTED, Plotted};
use super::parameter::Parameter;
use super::published::modules;
use super::view::{Entry, View};
use crate::lists::{ascending, grouped};
use crate::summary::{Cell, Params};

/// One row of panels: cells that differ only in system, tuning and one parameter.
pub(super) struct Sweep {
    /// For the page's script.
    pub drawing: Value,
    /// Groups of the view whose other plots show one value each; empty if the parameter is the
    /// payload, which already selects those plots.
    pub groups: Vec<usize>,
    /// Groups that need no own plot against size.
    pub sized: Vec<usize>,
}

/// The known figures of [`PLOTTED`], with the additional fields for a script.
fn figures(of: impl Fn(&Plotted) -> Option<f64>, more: Value) -> Value {
    let known = PLOTTED.iter().filter_map(|it| Some((it.0.to_owned(), of(it)?.into())));
    let Value::Object(mut members) = more else { return more };
    members.extend(known);
    Value::Object(members)
}

/// Every sweep of a report, in plan order.
pub(super) fn sweeps<'a>(view: &View<'a>) -> Vec<Sweep> {
    let mut found = Vec::new();
    for scenario in view.scenarios() {
        for parameter in Parameter::ALL {
            // A module is a pair of payload and rate, which cannot be swept separately.
            let is_swept = |entry: &&Entry<'a>| {
                entry.cell.scenario == scenario
                    && panels(parameter, entry.cell.workload).is_some()
                    && entry.cell.params.module.is_none()
                    && parameter.of(&entry.cell.params).is_some()
            };
            let key = |entry: &Entry| (entry.cell.workload, parameter.rest(&entry.cell.params));
            let entries = view.entries().filter(is_swept).map(|entry| (key(entry), *entry));
            let swept = grouped(entries).into_iter();
            found.extend(swept.filter_map(|(_, entries)| sweep(view, parameter, &entries)));
        }
    }
    found
}

fn sweep<'a>(view: &View<'a>, parameter: Parameter, entries: &[Entry<'a>]) -> Option<Sweep> {
    let first = entries.first()?;
    let (values, labels): (Vec<f64>, Vec<String>) = parameter.values(entries).into_iter().unzip();
    if values.len() < VALUES_MIN {
        return None;
    }
    let (low, high) = (values[0], values[values.len() - 1]);
    let tunings = ascending(entries.iter().map(|entry| entry.cell.tuning));
    let is_ours = |index: usize| entries.iter().any(|entry| entry.index == index);
    let groups = view.groups.iter().enumerate();
    let groups = groups
        .filter(|(_, group)| group.entries.iter().any(|entry| is_ours(entry.index)))
        .map(|(place, _)| place)
        .collect();
    let panels = panels(parameter, first.cell.workload)?;
    let (groups, sized) = match parameter {
        // These have no plot of latency of their own.
        Parameter::Payload if panels != ONE_WAY => (vec![], vec![]),
        Parameter::Payload => (vec![], groups),
        _ => (groups, vec![]),
    };
    let cells = entries.iter();
    let cells = cells.filter_map(|it| Some(point(parameter.of(&it.cell.params)?, it)));
    let drawing = json!({
        "id": format!("sweep-{}-{}", parameter.name(), first.index),
        "title": title(parameter, first),
        // Its name on the axis.
        "parameter": parameter.name(),
        // Whether the values span more than a decade. As in the other plots, payloads of 0 B stand
        // apart on a logarithmic axis.
        "log": high > 10.0 * low,
        "values": values,
        "labels": labels,
        "tunings": tunings,
        "panels": panels,
        "cells": cells.collect::<Vec<_>>(),
        "published": published(parameter, first.cell, low..=high),
    });
    Some(Sweep { drawing, groups, sized })
}

/// `fan-out · 8 MiB · 30 Hz: against subscribers`.
fn title(parameter: Parameter, first: &Entry) -> String {
    let rest = parameter.rest(&first.cell.params);
    let shown = [parameter != Parameter::Payload, parameter != Parameter::Rate];
    let words = std::iter::once(first.cell.scenario.clone());
    let words = words.chain(format::point(&rest, shown, [&Params::default()]));
    format!("{}: against {}", words.collect::<Vec<_>>().join(" · "), parameter.name())
}

fn point(x: f64, entry: &Entry) -> Value {
    let what = json!({
        "x": x,
        "system": entry.system.name,
        "tuning": entry.cell.tuning,
        "valid": entry.cell.valid,
        // The reached and the requested rate of a stream that fell short.
        "short": entry.short_of_rate(),
    });
    figures(|plotted| plotted.2(entry), what)
}

/// CyberRT's published figures for this payload or rate, between two processes, one to one; its
/// latency is a mean.
fn published(parameter: Parameter, cell: &Cell, shown: RangeInclusive<f64>) -> Vec<Value> {
    let params = &cell.params;
    let is_plain = format::is_one_to_one(cell.workload, params);
    let points = modules().take(1).flat_map(|table| table.rows()).filter_map(|row| {
        let (payload, rate) = (row.payload()?, row.number("rate_Hz")?);
        let x = match parameter {
            Parameter::Payload if params.rate_hz == Some(rate) => payload as f64,
            Parameter::Rate if params.payload_bytes == payload => rate,
            _ => return None,
        };
        let label = format!("CyberRT 10.0, published: {}", row.text("module")?);
        // The sign has the name beside it.
        let what = json!({ "x": x, "name": "CyberRT", "label": label });
        let is_shown = is_plain && shown.contains(&x);
        is_shown.then(|| figures(|plotted| row.number(plotted.1), what))
    });
    points.collect()
}

/// The panels for a workload, by their name in `assets/sweep.js`; none for workloads with plots of
/// their own.
fn panels(parameter: Parameter, workload: Workload) -> Option<&'static str> {
    match workload {
        Workload::Stream | Workload::Image if parameter == Parameter::Rate => Some(RATE),
        Workload::Stream | Workload::Image | Workload::Replay => Some(ONE_WAY),
        Workload::Flood => Some("flood"),
        // Their latency has a plot of its own, with intervals and placements.
        Workload::Roundtrip if parameter == Parameter::Payload => Some("round_trip"),
        Workload::Roundtrip | Workload::Publish | Workload::Startup => None,
    }
}

const ONE_WAY: &str = "one_way";
const RATE: &str = "rate";

/// The tables suffice for fewer values.
const VALUES_MIN: usize = 3;
