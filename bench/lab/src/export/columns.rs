//! The columns of the file. `docs/results.md` describes each; names that end in `_ns` without
//! saying what they span are moments of CLOCK_MONOTONIC.

use myelin_bench_kit::samples::{CORRUPT, LATE, OUT_OF_ORDER, Record, Taken};

use super::Source;
use super::rows::Row;
use crate::analyse::clocks::Clocks;
use crate::analyse::series::{has_parts, span};
use crate::analyse::stream;
use crate::scenario::{Kind, frame_name};

/// How a column is filled. `None` is null.
pub(super) enum Of {
    /// The same in all rows of a run.
    Text(fn(&Source<'_>) -> Option<String>),
    /// See `Text`.
    Float(fn(&Source<'_>) -> Option<f64>),
    /// See `Text`.
    Count(fn(&Source<'_>) -> Option<i64>),
    /// See `Text`.
    Flag(fn(&Source<'_>) -> bool),
    Nanoseconds(fn(&Source<'_>, &Row) -> Option<i64>),
    Number(fn(&Source<'_>, &Row) -> Option<i32>),
    RowFlag(fn(&Source<'_>, &Row) -> bool),
}

use Of::{Count, Flag, Float, Nanoseconds, Number, RowFlag, Text};

pub(super) const COLUMNS: &[(&str, Of)] = &[
    ("scenario", Text(|of| Some(of.scenario.name.clone()))),
    ("workload", Text(|of| word(of.scenario.workload.kind))),
    ("system", Text(|of| Some(of.cell.system.clone()))),
    ("tuning", Text(|of| Some(of.cell.tuning.name().into()))),
    ("topology", Text(|of| Some(of.cell.topology.name().into()))),
    ("point", Text(|of| Some(of.cell.point()))),
    ("payload_bytes", Count(|of| i64::try_from(of.cell.payload_bytes).ok())),
    ("rate_hz", Float(|of| of.cell.rate_hz)),
    ("publishers", Count(|of| Some(of.cell.publishers.into()))),
    ("subscribers", Count(|of| Some(of.cell.subscribers.into()))),
    ("topics", Count(|of| Some(of.cell.topics.into()))),
    ("frame", Text(|of| of.cell.frame.map(frame_name))),
    ("arrivals", Text(|of| of.cell.arrivals.as_ref().map(|case| case.name.clone()))),
    ("module", Text(|of| of.cell.module.clone())),
    ("run", Count(|of| Some(i64::from(of.run.plan.repeat) + 1))),
    ("order", Count(|of| Some(of.run.plan.order.into()))),
    ("valid", Flag(|of| of.valid)),
    ("id", Nanoseconds(|_, row| i64::try_from(row.ping.id).ok())),
    ("latency_ns", Nanoseconds(latency)),
    ("write_ns", Nanoseconds(|_, row| Some(write(&row.ping)).filter(|_| row.is_counted))),
    ("lateness_ns", Nanoseconds(lateness)),
    ("loan_ns", Nanoseconds(|_, row| Some(stamped(&row.ping)?.loan_ns.into()))),
    ("fill_ns", Nanoseconds(|_, row| Some(stamped(&row.ping)?.fill_ns.into()))),
    ("memcpy_ns", Nanoseconds(|of, row| copied(of, row, |pong| pong.memcpy_ns))),
    ("stream_copy_ns", Nanoseconds(|of, row| copied(of, row, |pong| pong.stream_copy_ns))),
    ("intended_ns", Nanoseconds(|_, row| moment(row.ping.intended_ns))),
    ("publish_entry_ns", Nanoseconds(|_, row| moment(row.ping.publish_entry_ns))),
    ("publish_return_ns", Nanoseconds(|_, row| moment(row.ping.publish_return_ns))),
    ("publish_cpu", Number(|_, row| Some(row.ping.publish_cpu.into()))),
    ("wake_ns", Nanoseconds(|of, row| moment(pong(of, row)?.wake_ns))),
    ("take_return_ns", Nanoseconds(|of, row| moment(stamped(pong(of, row)?)?.take_return_ns))),
    ("take_cpu", Number(|_, row| Some(row.pong?.take_cpu.into()))),
    (
        "answer_publish_return_ns",
        Nanoseconds(|of, row| answer(of, pong(of, row)?.publish_return_ns)),
    ),
    ("answer_wake_ns", Nanoseconds(|of, row| answer(of, row.ping.wake_ns))),
    ("answer_take_return_ns", Nanoseconds(|of, row| answer(of, row.ping.take_return_ns))),
    ("answer_take_cpu", Number(answer_cpu)),
    ("duplicates", Number(|of, row| Some(flagged(of, row).duplicates.into()))),
    ("corrupt", RowFlag(|of, row| flagged(of, row).flags & CORRUPT != 0)),
    ("out_of_order", RowFlag(|of, row| flagged(of, row).flags & OUT_OF_ORDER != 0)),
    ("late", RowFlag(|of, row| flagged(of, row).flags & LATE != 0)),
    ("lean", RowFlag(|_, row| stamped(&row.ping).is_none())),
    ("clock_error_ns", Count(|of| of.clocks.error_ns().map(|error_ns| error_ns.ceil() as i64))),
];

/// What the percentiles of a report are of.
fn latency(of: &Source<'_>, row: &Row) -> Option<i64> {
    let from_due = of.cell.rate_hz.is_some();
    match of.scenario.workload.kind {
        Kind::Roundtrip => {
            let taken_ns = answer(of, row.ping.take_return_ns).filter(|_| row.is_counted)?;
            Some(taken_ns - row.ping.publish_entry_ns as i64)
        }
        Kind::Publish => Some(write(&row.ping)),
        Kind::Image => Some(stream::way(&row.ping, pong(of, row)?, false)),
        Kind::Stream | Kind::Flood => Some(stream::way(&row.ping, pong(of, row)?, from_due)),
        // One figure a run, which is none of a message.
        Kind::Startup => None,
    }
}

/// The other end's record, whose stamps mean nothing where its clock could not be compared.
fn pong<'a>(of: &Source<'_>, row: &'a Row) -> Option<&'a Record> {
    row.pong.as_ref().filter(|_| !matches!(of.clocks, Clocks::Unknown(_)))
}

fn write(ping: &Record) -> i64 {
    span(ping.publish_entry_ns, ping.publish_return_ns)
}

fn lateness(of: &Source<'_>, row: &Row) -> Option<i64> {
    of.cell.rate_hz?;
    Some(match of.scenario.workload.kind {
        kind if kind.is_one_way() => stream::lateness(&row.ping),
        _ => span(row.ping.intended_ns, row.ping.publish_entry_ns),
    })
}

fn copied(of: &Source<'_>, row: &Row, part: fn(Taken) -> u32) -> Option<i64> {
    let copies = of.scenario.workload.kind == Kind::Image;
    row.pong.as_ref().filter(|_| copies).map(|pong| part(pong.as_taken()).into())
}

/// The record that says how the message, or of a round trip its answer, arrived.
fn flagged<'a>(of: &Source<'_>, row: &'a Row) -> &'a Record {
    match of.scenario.workload.kind {
        Kind::Roundtrip => &row.ping,
        _ => row.pong.as_ref().unwrap_or(&row.ping),
    }
}

fn answer(of: &Source<'_>, at_ns: u64) -> Option<i64> {
    moment(at_ns).filter(|_| of.scenario.workload.kind == Kind::Roundtrip)
}

fn answer_cpu(of: &Source<'_>, row: &Row) -> Option<i32> {
    answer(of, row.ping.take_return_ns).map(|_| row.ping.take_cpu.into())
}

/// A record that has the stamps of the message's parts.
fn stamped(record: &Record) -> Option<&Record> {
    Some(record).filter(|record| has_parts(record))
}

/// A moment that was recorded: 0 is none.
fn moment(at_ns: u64) -> Option<i64> {
    i64::try_from(at_ns).ok().filter(|at_ns| *at_ns != 0)
}

/// The name of an enum as JSON has it.
fn word(value: impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described() {
        let guide = include_str!("../../../../docs/results.md");
        let (_, of_this_file) = guide.split_once("## samples.parquet").unwrap();
        for (name, _) in COLUMNS {
            assert!(of_this_file.contains(&format!("`{name}`")), "docs/results.md lacks {name}");
        }
    }
}
