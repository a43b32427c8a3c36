//! `myelin bench export`: the samples of a results folder as one Parquet file, with a row for each
//! message and subscriber that took it, for pandas, polars, DuckDB and other readers of columns.
//!
//! Parquet and not Arrow's own file format, for three reasons. The `parquet` crate without its
//! `arrow` feature takes two thirds of the build time of `arrow-ipc` with its crates (76 against
//! 117 s of CPU in a release build, including zstd's C, which is needed anyway). Repeated strings
//! and growing time stamps take little space, so the file is about as large as the sample files.
//! And every tool can read single columns. Both crates are from Apache, with its licence.
//!
//! Runs are read one after the other, so the memory is that of the largest run and of one row
//! group, for any number of runs. In addition the analysis holds one cell at a time; it says which
//! runs are valid.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use myelin_bench_kit::protocol::Topology;
use myelin_bench_kit::samples::{CORRUPT, LATE, OUT_OF_ORDER, Record};
use parquet::basic::Encoding;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::analyse::clocks::{self, Clocks};
use crate::analyse::messages::{Measured, Message, Messages, is_stamped};
use crate::input_error::InputError;
use crate::parquet_file::{Group, ROWS_PER_GROUP, properties, write_column};
use crate::plan::{CellPlan, Plan};
use crate::record::{RunRecord, make_whole};
use crate::scenario::{Kind, Scenario, frame_name};
use crate::session;
use crate::summary::Analysis;

use Fill::{Count, Flag, Float, Nanoseconds, Number, RowFlag, Text};

/// What to export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The results folder.
    pub directory: PathBuf,
    /// The file to write; `samples.parquet` in the folder by default.
    pub out: Option<PathBuf>,
    /// Patterns of cell names such as `quick-os.futex-default-64B`; empty for all.
    pub cells: Vec<String>,
}

/// The result of an export.
#[derive(Debug)]
pub struct Exported {
    /// The file.
    pub path: PathBuf,
    /// Rows of all runs, including invalid ones.
    pub rows: u64,
    /// Number of runs with rows.
    pub runs: u64,
    /// The analysis of the folder, as for a report.
    pub analysis: Analysis,
}

/// One run and the values that all its rows share.
struct RunSource<'a> {
    scenario: &'a Scenario,
    cell: &'a CellPlan,
    run: &'a RunRecord,
    /// Whether the run is valid.
    valid: bool,
    /// How the stamps of the two ends relate.
    clocks: &'a Clocks,
}

/// Writes the file, atomically.
pub fn export(request: &ExportOptions) -> Result<Exported> {
    let (mut folder, plan, analysis) = session::open(&request.directory, true)?;
    let runs = folder.runs()?.runs;
    let chosen = choose(&plan, &request.cells)?;
    let path = request.out.clone().unwrap_or_else(|| request.directory.join("samples.parquet"));
    let is_wanted = |run: &&RunRecord| chosen[run.plan.cell] && run.failure.is_none();
    let mut counts = (0, 0);
    let written: Result<()> = make_whole(&path, |file| {
        let mut writer = writer(file)?;
        for run in runs.iter().filter(is_wanted) {
            // The analysis names unreadable samples, with a remedy.
            let Ok(mut samples) = folder.samples(run) else {
                continue;
            };
            let cell = &plan.cells[run.plan.cell];
            let (scenario, system) = (&plan.scenarios[cell.scenario], plan.system(cell));
            let clocks = match cell.topology {
                Topology::TwoHosts => clocks::apply(&mut samples, &run.clock_discipline),
                _ => Clocks::default(),
            };
            let has_loans = system.is_some_and(|system| system.loans);
            let kind = scenario.workload.kind;
            let measured = Measured {
                crosses_ends: !clocks.are_two || clocks.error_ns.is_some(),
                is_imported: cell.imported.is_some(),
                ..Measured::new(kind, cell.rate_hz.is_some(), has_loans)
            };
            let valid = is_valid(&analysis, run);
            let rows = Messages::of(&samples, measured);
            counts = (counts.0 + rows.all.len() as u64, counts.1 + 1);
            let source = RunSource { scenario, cell, run, valid, clocks: &clocks };
            add(&mut writer, &source, rows)?;
        }
        writer.close()?;
        Ok(())
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Exported { path, rows: counts.0, runs: counts.1, analysis })
}

fn is_valid(analysis: &Analysis, run: &RunRecord) -> bool {
    let judged = analysis.details.get(run.plan.cell).map(|detail| &detail.runs);
    let mut judged = judged.into_iter().flatten();
    judged.any(|point| point.order == run.plan.order && point.valid)
}

/// Whether each cell of the plan is selected.
fn choose(plan: &Plan, patterns: &[String]) -> Result<Vec<bool>> {
    let name = |cell: &CellPlan| cell.name(&plan.scenarios[cell.scenario].name);
    let names: Vec<String> = plan.cells.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut chosen = vec![patterns.is_empty(); names.len()];
    let what = ("cell", "cells are named as the files in the folder's hgrm/ are");
    for pattern in patterns {
        InputError::matching(what, pattern, &names)?.into_iter().for_each(|at| chosen[at] = true);
    }
    Ok(chosen)
}

/// How to fill a column. `None` is null.
enum Fill {
    // The same value in all rows of a run.
    Text(fn(&RunSource<'_>) -> Option<String>),
    Float(fn(&RunSource<'_>) -> Option<f64>),
    Count(fn(&RunSource<'_>) -> Option<i64>),
    Flag(fn(&RunSource<'_>) -> bool),
    Nanoseconds(fn(&Message<'_>, &Measured) -> Option<i64>),
    Number(fn(&Message<'_>, &Measured) -> Option<i32>),
    RowFlag(fn(&Message<'_>, &Measured) -> bool),
}

/// The record of the other end; `None` if its clock could not be compared, because its stamps are
/// then meaningless.
fn pong<'a>(row: &Message<'a>, of: &Measured) -> Option<&'a Record> {
    row.pong.filter(|_| of.crosses_ends)
}

/// The record with the flags of arrival: that of the message or, in a round trip, of its answer.
fn flagged<'a>(row: &Message<'a>, of: &Measured) -> &'a Record {
    match of.kind {
        Kind::Roundtrip => row.ping,
        _ => row.pong.unwrap_or(row.ping),
    }
}

fn answer(of: &Measured, at_ns: u64) -> Option<i64> {
    moment(at_ns).filter(|_| of.kind == Kind::Roundtrip)
}

/// The record, if it has the stamps of the message's parts.
fn stamped(record: &Record) -> Option<&Record> {
    Some(record).filter(|record| is_stamped(record))
}

/// The record of a publisher whose steps were stamped; an application's trace has none of them.
fn parted<'a>(row: &Message<'a>, of: &Measured) -> Option<&'a Record> {
    stamped(row.ping).filter(|_| !of.is_imported)
}

/// A recorded time; 0 means that it was not recorded.
fn moment(at_ns: u64) -> Option<i64> {
    i64::try_from(at_ns).ok().filter(|at_ns| *at_ns != 0)
}

/// The writer of the Parquet file, which takes one row group at a time.
fn writer(file: &File) -> Result<SerializedFileWriter<&File>> {
    let schema = Arc::new(parse_message_type(&schema())?);
    let mut properties = properties()?;
    for (name, of) in COLUMNS {
        if matches!(of, Fill::Nanoseconds(_)) {
            let column = ColumnPath::from(*name);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?)
}

/// Adds the rows of a run.
fn add(
    writer: &mut SerializedFileWriter<&File>,
    source: &RunSource<'_>,
    Messages { all, measured, .. }: Messages<'_>,
) -> Result<()> {
    for rows in all.chunks(ROWS_PER_GROUP) {
        let mut group = writer.next_row_group()?;
        for (_, of) in COLUMNS {
            write_cells(&mut group, of, source, rows, &measured)?;
        }
        group.close()?;
    }
    Ok(())
}

/// The schema, in the syntax of `parse_message_type`.
fn schema() -> String {
    let column = |(name, of): &(&str, Fill)| match of {
        Fill::Text(_) => format!("OPTIONAL BYTE_ARRAY {name} (UTF8);"),
        Fill::Float(_) => format!("OPTIONAL DOUBLE {name};"),
        Fill::Count(_) | Fill::Nanoseconds(_) => format!("OPTIONAL INT64 {name};"),
        Fill::Number(_) => format!("OPTIONAL INT32 {name};"),
        Fill::Flag(_) | Fill::RowFlag(_) => format!("OPTIONAL BOOLEAN {name};"),
    };
    format!("message samples {{ {} }}", COLUMNS.iter().map(column).collect::<String>())
}

fn write_cells(
    group: &mut Group<'_, '_>,
    of: &Fill,
    source: &RunSource<'_>,
    rows: &[Message<'_>],
    measured: &Measured,
) -> parquet::errors::Result<()> {
    let all = rows.len();
    match of {
        Fill::Text(of) => {
            let text = of(source).map(|text| ByteArray::from(text.into_bytes()));
            write_column::<ByteArrayType>(group, std::iter::repeat_n(text, all))
        }
        Fill::Float(of) => write_column::<DoubleType>(group, std::iter::repeat_n(of(source), all)),
        Fill::Count(of) => write_column::<Int64Type>(group, std::iter::repeat_n(of(source), all)),
        Fill::Flag(of) => {
            write_column::<BoolType>(group, std::iter::repeat_n(Some(of(source)), all))
        }
        Fill::Nanoseconds(of) => {
            write_column::<Int64Type>(group, rows.iter().map(|row| of(row, measured)))
        }
        Fill::Number(of) => {
            write_column::<Int32Type>(group, rows.iter().map(|row| of(row, measured)))
        }
        Fill::RowFlag(of) => {
            write_column::<BoolType>(group, rows.iter().map(|row| Some(of(row, measured))))
        }
    }
}

/// `docs/reference/results.md` describes the columns. Names that end in `_ns` without naming a span
/// are times of CLOCK_MONOTONIC.
const COLUMNS: &[(&str, Fill)] = &[
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
    ("load", Text(|of| of.cell.load.as_ref().map(|load| load.name.clone()))),
    ("run", Count(|of| Some(i64::from(of.run.plan.repeat) + 1))),
    ("order", Count(|of| Some(of.run.plan.order.into()))),
    ("valid", Flag(|of| of.valid)),
    ("id", Nanoseconds(|row, _| i64::try_from(row.ping.id).ok())),
    ("latency_ns", Nanoseconds(|row, of| row.latency(of))),
    ("write_ns", Nanoseconds(|row, of| row.write(of))),
    ("lateness_ns", Nanoseconds(|row, of| row.lateness(of))),
    ("loan_ns", Nanoseconds(|row, of| Some(parted(row, of)?.loan_ns.into()))),
    ("fill_ns", Nanoseconds(|row, of| Some(parted(row, of)?.fill_ns.into()))),
    ("memcpy_ns", Nanoseconds(|row, of| row.memcpy(of))),
    ("stream_copy_ns", Nanoseconds(|row, of| row.stream_copy(of))),
    ("intended_ns", Nanoseconds(|row, _| moment(row.ping.intended_ns))),
    ("publish_entry_ns", Nanoseconds(|row, _| moment(row.ping.publish_entry_ns))),
    ("publish_return_ns", Nanoseconds(|row, _| moment(row.ping.publish_return_ns))),
    ("publish_cpu", Number(|row, of| (!of.is_imported).then_some(row.ping.publish_cpu.into()))),
    ("wake_ns", Nanoseconds(|row, of| moment(pong(row, of)?.wake_ns))),
    ("take_return_ns", Nanoseconds(|row, of| moment(stamped(pong(row, of)?)?.take_return_ns))),
    ("take_cpu", Number(|row, of| Some(row.pong.filter(|_| !of.is_imported)?.take_cpu.into()))),
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
    ("lean", RowFlag(|row, _| stamped(row.ping).is_none())),
    ("clock_error_ns", Count(|of| of.clocks.error_ns.map(|error_ns| error_ns.ceil() as i64))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_described() {
        let guide = include_str!("../../../docs/reference/results.md");
        let (_, of_this_file) = guide.split_once("## samples.parquet").unwrap();
        for (name, _) in COLUMNS {
            assert!(
                of_this_file.contains(&format!("`{name}`")),
                "docs/reference/results.md lacks {name}"
            );
        }
    }

    /// Programs of users read them by name and type (docs/reference/compatibility.md).
    #[test]
    fn the_columns_of_0_1_0_stay() {
        let schema = schema();
        for (kind, names) in COLUMNS_OF_0_1_0 {
            for name in names.split_whitespace() {
                let column = format!(" {kind} {name}");
                let is_there =
                    [";", " (UTF8);"].iter().any(|end| schema.contains(&(column.clone() + end)));
                assert!(is_there, "{column} is gone");
            }
        }
    }

    const COLUMNS_OF_0_1_0: [(&str, &str); 5] = [
        ("BYTE_ARRAY", "scenario workload system tuning topology point frame arrivals module"),
        (
            "INT64",
            "payload_bytes publishers subscribers topics run order id latency_ns write_ns \
             lateness_ns loan_ns fill_ns memcpy_ns stream_copy_ns intended_ns publish_entry_ns \
             publish_return_ns wake_ns take_return_ns answer_publish_return_ns answer_wake_ns \
             answer_take_return_ns clock_error_ns",
        ),
        ("DOUBLE", "rate_hz"),
        ("BOOLEAN", "valid corrupt out_of_order late lean"),
        ("INT32", "publish_cpu take_cpu answer_take_cpu duplicates"),
    ];
}
