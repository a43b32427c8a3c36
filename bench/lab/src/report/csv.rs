//! `summary.csv`: one row for each cell, one flat column for each figure, units in the names.
//! Empty means not measured or withheld; `summary.json` tells the two apart.

use myelin_bench_kit::protocol::Workload;

use crate::summary::{Cell, ClockFigures, Distribution, Placement, ProcessUse, Summary};

/// The whole file.
pub(super) fn render(summary: &Summary) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    let written = write(summary, &mut writer);
    let bytes = written.and_then(|()| Ok(writer.into_inner().map_err(|e| e.into_error())?));
    let bytes = bytes.expect("writing to memory does not fail");
    String::from_utf8(bytes).expect("every field was text")
}

fn write(summary: &Summary, writer: &mut ::csv::Writer<Vec<u8>>) -> Result<(), ::csv::Error> {
    let columns = columns(summary);
    let plain = columns.iter().map(|(name, _)| (*name).to_owned());
    let distributions = distributions(summary);
    let figures = distributions.iter().flat_map(|(name, _)| {
        PERCENTILES.iter().map(move |(percentile, _)| format!("{name}_{percentile}"))
    });
    let last = last_columns(summary);
    let ends = last.iter().map(|(name, _)| (*name).to_owned());
    writer.write_record(plain.chain(figures).chain(ends))?;
    for cell in &summary.cells {
        let plain = columns.iter().map(|(_, of)| of(cell));
        let figures = distributions.iter().flat_map(|(_, of)| {
            PERCENTILES.iter().map(move |(_, percentile)| optional(of(cell).and_then(percentile)))
        });
        let ends = last.iter().map(|(_, of)| of(cell));
        writer.write_record(plain.chain(figures).chain(ends))?;
    }
    Ok(())
}

/// Columns that would say the same of every cell are left out.
fn columns(summary: &Summary) -> Vec<(&'static str, Of<String>)> {
    let any = |is: fn(&Cell) -> bool| summary.cells.iter().any(is);
    let mut columns = COLUMNS.to_vec();
    if any(|cell| !cell.params.touch.is_default()) {
        columns.push(("touch", |cell| word(cell.params.touch)));
    }
    if any(|cell| cell.workload != Workload::Roundtrip) {
        columns.push(("workload", |cell| word(cell.workload)));
    }
    if any(|cell| cell.workload == Workload::Publish) {
        columns.extend(PUBLISH_COLUMNS);
    }
    if any(is_flow) {
        columns.extend(FLOW_COLUMNS);
    }
    if any(|cell| cell.workload == Workload::Flood) {
        columns.extend(FLOOD_COLUMNS);
    }
    if any(|cell| cell.daemon_ms.is_some()) {
        columns.push(("daemon_ms", |cell| optional(cell.daemon_ms)));
    }
    columns
}

/// As [`columns`], behind the figures.
fn last_columns(summary: &Summary) -> Vec<(&'static str, Of<String>)> {
    let any = |is: fn(&Cell) -> bool| summary.cells.iter().any(is);
    let mut columns = FURTHER_COLUMNS.to_vec();
    if any(is_observed) {
        columns.extend(OBSERVED_COLUMNS);
    }
    if any(|cell| cell.repeats.is_some()) {
        columns.extend(REPEATS_COLUMNS);
    }
    if any(|cell| cell.clock.is_some()) {
        columns.extend(CLOCK_COLUMNS);
    }
    if any(|cell| cell.unsettled_runs > 0) {
        columns.push(("unsettled_runs", |cell| cell.unsettled_runs.to_string()));
    }
    columns
}

fn distributions(summary: &Summary) -> Vec<(&'static str, Of<Option<Distribution>>)> {
    let any = |is: fn(&Cell) -> bool| summary.cells.iter().any(is);
    let is_startup = |cell: &Cell| cell.workload == Workload::Startup;
    let of_flows: &[_] = if any(is_flow) { FLOW_DISTRIBUTIONS } else { &[] };
    let of_startups: &[_] = if any(is_startup) { STARTUP_DISTRIBUTIONS } else { &[] };
    [DISTRIBUTIONS, of_flows, of_startups].concat()
}

fn placement_p50(cell: &Cell, same_cpu: bool) -> String {
    let placement = cell.placements.iter().find(|placement| placement.same_cpu == same_cpu);
    optional(placement.and_then(Placement::p50))
}

/// The sum over the processes of a role; empty if there is none or one does not know.
fn of_role(cell: &Cell, role: Role, of: fn(&ProcessUse) -> Option<f64>) -> String {
    let own: Vec<_> = cell.processes.iter().filter(|process| role(&process.role)).collect();
    let sum = own.iter().map(|process| of(process)).sum::<Option<f64>>();
    optional(sum.filter(|_| !own.is_empty()))
}

fn rss_bytes(process: &ProcessUse) -> Option<f64> {
    Some(process.rss_bytes as f64)
}

/// Of several that play a role the others are called `ping-1`, `ping-2` and so on.
type Role = fn(&str) -> bool;
const PING: Role = |name| name.split('-').next() == Some("ping");
const PONG: Role = |name| name.split('-').next() == Some("pong");
const DAEMON: Role = |name| !PING(name) && !PONG(name);

fn optional(value: Option<f64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn low(interval: Option<[f64; 2]>) -> String {
    optional(interval.map(|[low, _]| low))
}

fn high(interval: Option<[f64; 2]>) -> String {
    optional(interval.map(|[_, high]| high))
}

/// The name of an enum as JSON has it.
fn word(value: impl serde::Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

fn clock(cell: &Cell, of: fn(&ClockFigures) -> f64) -> String {
    optional(cell.clock.as_ref().map(of))
}

type Of<T> = fn(&Cell) -> T;
type Percentile = fn(Distribution) -> Option<f64>;

/// Of cells across hosts.
const CLOCK_COLUMNS: [(&str, Of<String>); 5] = [
    ("clock_offset_us", |cell| clock(cell, |clock| clock.offset_us)),
    ("clock_drift_ppm", |cell| clock(cell, |clock| clock.drift_ppm)),
    ("clock_error_us", |cell| clock(cell, |clock| clock.error_us)),
    ("clock_exchanges", |cell| clock(cell, |clock| clock.exchanges as f64)),
    ("clock_negative", |cell| clock(cell, |clock| clock.negative as f64)),
];

const COLUMNS: &[(&str, Of<String>)] = &[
    ("scenario", |cell| cell.scenario.clone()),
    ("system", |cell| cell.system.clone()),
    ("tuning", |cell| cell.tuning.clone()),
    ("topology", |cell| cell.topology.clone()),
    ("payload_bytes", |cell| cell.params.payload_bytes.to_string()),
    ("rate_hz", |cell| optional(cell.params.rate_hz)),
    ("wait", |cell| word(cell.params.wait)),
    ("subscribers", |cell| cell.params.subscribers.to_string()),
    ("runs", |cell| cell.runs.to_string()),
    ("samples", |cell| cell.samples.to_string()),
    ("valid", |cell| cell.valid.to_string()),
    ("invalid_reasons", |cell| cell.invalid_reasons.join("; ")),
    ("round_trip_us_p50_low", |cell| low(cell.round_trip_p50_interval_us)),
    ("round_trip_us_p50_high", |cell| high(cell.round_trip_p50_interval_us)),
    ("round_trip_us_p99_low", |cell| low(cell.round_trip_p99_interval_us)),
    ("round_trip_us_p99_high", |cell| high(cell.round_trip_p99_interval_us)),
    ("same_cpu_share", |cell| {
        let same = cell.placements.iter().find(|placement| placement.same_cpu);
        optional(same.map(|placement| placement.share))
    }),
    ("throughput_per_s", |cell| cell.throughput_per_s.to_string()),
    ("cpu_us_per_message", |cell| cell.cpu_us_per_message.to_string()),
    ("cpu_percent", |cell| cell.cpu_percent.to_string()),
    ("rss_bytes", |cell| cell.rss_bytes.to_string()),
    ("pss_bytes", |cell| cell.pss_bytes.to_string()),
    ("shared_bytes", |cell| cell.shared_bytes.to_string()),
    ("voluntary_switches_per_s", |cell| cell.voluntary_switches_per_s.to_string()),
    ("involuntary_switches_per_s", |cell| cell.involuntary_switches_per_s.to_string()),
    ("page_faults", |cell| cell.page_faults.to_string()),
    ("startup_ms", |cell| cell.startup_ms.to_string()),
    ("sent", |cell| cell.sent.to_string()),
    ("received", |cell| cell.received.to_string()),
    ("lost", |cell| cell.lost.to_string()),
    ("duplicates", |cell| cell.duplicates.to_string()),
    ("out_of_order", |cell| cell.out_of_order.to_string()),
    ("corrupt", |cell| cell.corrupt.to_string()),
    ("loopback_bytes_per_byte", |cell| cell.loopback_bytes_per_byte.to_string()),
    ("loopback_packets_per_message", |cell| cell.loopback_packets_per_message.to_string()),
];

/// Behind the figures, so that earlier columns stay where they were.
const FURTHER_COLUMNS: &[(&str, Of<String>)] = &[
    ("messages_asked", |cell| cell.messages_asked.to_string()),
    ("duration_asked_s", |cell| cell.duration_asked_s.to_string()),
    ("same_cpu_p50_us", |cell| placement_p50(cell, true)),
    ("cross_cpu_p50_us", |cell| placement_p50(cell, false)),
    ("ping_cpu_percent", |cell| of_role(cell, PING, |process| Some(process.cpu_percent))),
    ("ping_user_percent", |cell| of_role(cell, PING, |process| process.user_percent)),
    ("ping_rss_bytes", |cell| of_role(cell, PING, rss_bytes)),
    ("pong_cpu_percent", |cell| of_role(cell, PONG, |process| Some(process.cpu_percent))),
    ("pong_user_percent", |cell| of_role(cell, PONG, |process| process.user_percent)),
    ("pong_rss_bytes", |cell| of_role(cell, PONG, rss_bytes)),
    ("daemon_cpu_percent", |cell| of_role(cell, DAEMON, |process| Some(process.cpu_percent))),
    ("daemon_user_percent", |cell| of_role(cell, DAEMON, |process| process.user_percent)),
    ("daemon_rss_bytes", |cell| of_role(cell, DAEMON, rss_bytes)),
    ("round_trip_us_p999_low", |cell| low(cell.round_trip_p999_interval_us)),
    ("round_trip_us_p999_high", |cell| high(cell.round_trip_p999_interval_us)),
    ("interval_level_percent", |cell| optional(cell.interval_level_percent)),
    ("notes", |cell| cell.notes.join("; ")),
];

const PUBLISH_COLUMNS: &[(&str, Of<String>)] = &[
    ("write_us_p50_low", |cell| low(cell.write_p50_interval_us)),
    ("write_us_p50_high", |cell| high(cell.write_p50_interval_us)),
    ("further_subscriber_ns", |cell| optional(cell.further_subscriber.map(|slope| slope.ns))),
    ("further_subscriber_ns_low", |cell| low(slope_interval(cell))),
    ("further_subscriber_ns_high", |cell| high(slope_interval(cell))),
];

const FLOW_COLUMNS: &[(&str, Of<String>)] = &[
    ("publishers", |cell| cell.params.publishers.to_string()),
    ("topics", |cell| cell.params.topics.to_string()),
    ("reliability", |cell| cell.params.reliability.map(word).unwrap_or_default()),
    ("depth", |cell| cell.params.depth.map(|depth| depth.to_string()).unwrap_or_default()),
    ("module", |cell| cell.params.module.clone().unwrap_or_default()),
    ("frame", |cell| cell.params.frame.clone().unwrap_or_default()),
    ("arrivals", |cell| cell.params.arrivals.clone().unwrap_or_default()),
    ("receiver_cpu_percent", |cell| optional(cell.receiver_cpu_percent)),
    ("one_way_us_p50_low", |cell| low(cell.one_way_p50_interval_us)),
    ("one_way_us_p50_high", |cell| high(cell.one_way_p50_interval_us)),
    ("one_way_us_p99_low", |cell| low(cell.one_way_p99_interval_us)),
    ("one_way_us_p99_high", |cell| high(cell.one_way_p99_interval_us)),
    ("one_way_us_p999_low", |cell| low(cell.one_way_p999_interval_us)),
    ("one_way_us_p999_high", |cell| high(cell.one_way_p999_interval_us)),
];

const OBSERVED_COLUMNS: &[(&str, Of<String>)] = &[
    ("runqueue_wait_percent", |cell| optional(cell.observed.runqueue_wait_percent)),
    ("migrations_per_s", |cell| optional(cell.observed.migrations_per_s)),
    ("pss_peak_bytes", |cell| {
        cell.observed.pss_peak_bytes.map(|bytes| bytes.to_string()).unwrap_or_default()
    }),
    ("cycles_per_message", |cell| optional(cell.observed.cycles_per_message)),
    ("instructions_per_message", |cell| optional(cell.observed.instructions_per_message)),
    ("cache_misses_per_message", |cell| optional(cell.observed.cache_misses_per_message)),
    ("observation_cpu_percent", |cell| optional(cell.observed.observation_cpu_percent)),
];

fn is_observed(cell: &Cell) -> bool {
    cell.observed.observation_cpu_percent.is_some()
}

const REPEATS_COLUMNS: &[(&str, Of<String>)] = &[
    ("interval_asked_percent", |cell| optional(cell.repeats.map(|it| it.asked_percent))),
    ("interval_reached_percent", |cell| {
        optional(cell.repeats.and_then(|repeats| repeats.reached_percent))
    }),
    ("interval_is_narrow", |cell| {
        cell.repeats.map(|repeats| repeats.is_narrow.to_string()).unwrap_or_default()
    }),
];

fn is_flow(cell: &Cell) -> bool {
    cell.workload.is_one_way()
}

fn slope_interval(cell: &Cell) -> Option<[f64; 2]> {
    cell.further_subscriber.and_then(|slope| slope.interval_ns)
}

const DISTRIBUTIONS: &[(&str, Of<Option<Distribution>>)] = &[
    ("round_trip_us", |cell| cell.round_trip_us),
    ("one_way_us", |cell| cell.one_way_us),
    ("write_us", |cell| cell.write_us),
    ("read_us", |cell| cell.read_us),
    ("wake_us", |cell| cell.wake_us),
    ("loan_us", |cell| cell.loan_us),
    ("fill_us", |cell| cell.fill_us),
    ("lateness_us", |cell| cell.lateness_us),
];

const FLOW_DISTRIBUTIONS: &[(&str, Of<Option<Distribution>>)] = &[
    ("service_us", |cell| cell.service_us),
    ("memcpy_us", |cell| cell.memcpy_us),
    ("stream_copy_us", |cell| cell.stream_copy_us),
];

const FLOOD_COLUMNS: &[(&str, Of<String>)] = &[
    ("taken_per_s", |cell| optional(cell.taken_per_s)),
    ("lossless_per_s", |cell| optional(cell.lossless_per_s)),
];

const STARTUP_DISTRIBUTIONS: &[(&str, Of<Option<Distribution>>)] =
    &[("matched_us", |cell| cell.matched_us), ("first_sample_us", |cell| cell.first_sample_us)];

const PERCENTILES: &[(&str, Percentile)] = &[
    ("min", |distribution| Some(distribution.min)),
    ("mean", |distribution| Some(distribution.mean)),
    ("p50", |distribution| distribution.p50),
    ("p90", |distribution| distribution.p90),
    ("p99", |distribution| distribution.p99),
    ("p999", |distribution| distribution.p999),
    ("max", |distribution| Some(distribution.max)),
];
