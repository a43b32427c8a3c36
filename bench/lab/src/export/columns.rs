//! The columns of the file. `docs/results.md` describes each; names that end in `_ns` without
//! saying what they span are moments of CLOCK_MONOTONIC.

use myelin_bench_kit::samples::{CORRUPT, LATE, OUT_OF_ORDER, Record};

use super::RunSource;
use crate::analyse::messages::{Measured, Message, is_stamped};
use crate::scenario::{Kind, frame_name};

/// How a column is filled. `None` is null.
pub(super) enum Fill {
    /// The same in all rows of a run.
    Text(fn(&RunSource<'_>) -> Option<String>),
    /// See `Text`.
    Float(fn(&RunSource<'_>) -> Option<f64>),
    /// See `Text`.
    Count(fn(&RunSource<'_>) -> Option<i64>),
    /// See `Text`.
    Flag(fn(&RunSource<'_>) -> bool),
    Nanoseconds(fn(&Message, &Measured) -> Option<i64>),
    Number(fn(&Message, &Measured) -> Option<i32>),
    RowFlag(fn(&Message, &Measured) -> bool),
}

use Fill::{Count, Flag, Float, Nanoseconds, Number, RowFlag, Text};

pub(super) const COLUMNS: &[(&str, Fill)] = &[
    ("scenario", Text(|of| Some(of.scenario.name.clone()))),
    ("workload", Text(|of| Some(of.scenario.workload.kind.name().into()))),
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
    ("id", Nanoseconds(|row, _| i64::try_from(row.ping.id).ok())),
    ("latency_ns", Nanoseconds(Message::latency)),
    ("write_ns", Nanoseconds(Message::write)),
    ("lateness_ns", Nanoseconds(Message::lateness)),
    ("loan_ns", Nanoseconds(|row, _| Some(stamped(&row.ping)?.loan_ns.into()))),
    ("fill_ns", Nanoseconds(|row, _| Some(stamped(&row.ping)?.fill_ns.into()))),
    ("memcpy_ns", Nanoseconds(Message::memcpy)),
    ("stream_copy_ns", Nanoseconds(Message::stream_copy)),
    ("intended_ns", Nanoseconds(|row, _| moment(row.ping.intended_ns))),
    ("publish_entry_ns", Nanoseconds(|row, _| moment(row.ping.publish_entry_ns))),
    ("publish_return_ns", Nanoseconds(|row, _| moment(row.ping.publish_return_ns))),
    ("publish_cpu", Number(|row, _| Some(row.ping.publish_cpu.into()))),
    ("wake_ns", Nanoseconds(|row, of| moment(pong(row, of)?.wake_ns))),
    ("take_return_ns", Nanoseconds(|row, of| moment(stamped(pong(row, of)?)?.take_return_ns))),
    ("take_cpu", Number(|row, _| Some(row.pong?.take_cpu.into()))),
    (
        "answer_publish_return_ns",
        Nanoseconds(|row, of| answer(of, pong(row, of)?.publish_return_ns)),
    ),
    ("answer_wake_ns", Nanoseconds(|row, of| answer(of, row.ping.wake_ns))),
    ("answer_take_return_ns", Nanoseconds(|row, of| answer(of, row.ping.take_return_ns))),
    (
        "answer_take_cpu",
        Number(|row, of| answer(of, row.ping.take_return_ns).map(|_| row.ping.take_cpu.into())),
    ),
    ("duplicates", Number(|row, of| Some(flagged(row, of).duplicates.into()))),
    ("corrupt", RowFlag(|row, of| flagged(row, of).flags & CORRUPT != 0)),
    ("out_of_order", RowFlag(|row, of| flagged(row, of).flags & OUT_OF_ORDER != 0)),
    ("late", RowFlag(|row, of| flagged(row, of).flags & LATE != 0)),
    ("lean", RowFlag(|row, _| stamped(&row.ping).is_none())),
    ("clock_error_ns", Count(|of| of.clocks.error_ns.map(|error_ns| error_ns.ceil() as i64))),
];

/// The other end's record, whose stamps mean nothing where its clock could not be compared.
fn pong<'a>(row: &'a Message, of: &Measured) -> Option<&'a Record> {
    row.pong.as_ref().filter(|_| of.crosses_ends)
}

/// The record that says how the message, or of a round trip its answer, arrived.
fn flagged<'a>(row: &'a Message, of: &Measured) -> &'a Record {
    match of.kind {
        Kind::Roundtrip => &row.ping,
        _ => row.pong.as_ref().unwrap_or(&row.ping),
    }
}

fn answer(of: &Measured, at_ns: u64) -> Option<i64> {
    moment(at_ns).filter(|_| of.kind == Kind::Roundtrip)
}

/// A record that has the stamps of the message's parts.
fn stamped(record: &Record) -> Option<&Record> {
    Some(record).filter(|record| is_stamped(record))
}

/// A moment that was recorded: 0 is none.
fn moment(at_ns: u64) -> Option<i64> {
    i64::try_from(at_ns).ok().filter(|at_ns| *at_ns != 0)
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
