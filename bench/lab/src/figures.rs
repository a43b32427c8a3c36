//! `figures.parquet`: one row for each figure of each run, for pandas, polars, DuckDB and other
//! readers of columns. The rows of several folders can be put together: a session has its name.
//!
//! The table of figures ([`METRICS`](crate::summary::METRICS)) says what each metric is;
//! `analyse/measures.rs` measures it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

use crate::parquet_file::{ROWS_PER_GROUP, properties, write_column};
use crate::summary::{Analysis, Better, Cell, Metric, RunFigures};

use Column::{Count, Flag, Number, Text};

/// A figure of a run.
struct Row<'a> {
    session: &'a str,
    cell: &'a Cell,
    /// Of the system; empty if unknown.
    version: &'a str,
    run: &'a RunFigures,
    metric: &'static Metric,
    value: f64,
}

/// Writes the figures of all runs. `folder` is the results folder, whose name is the session's.
pub(crate) fn write(analysis: &Analysis, folder: &Path, file: &File) -> Result<()> {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let session = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let schema = Arc::new(parse_message_type(&schema())?);
    let properties = Arc::new(properties()?.build());
    let mut writer = SerializedFileWriter::new(file, schema, properties)?;
    let rows = rows(analysis, &session);
    for rows in rows.chunks(ROWS_PER_GROUP) {
        let mut group = writer.next_row_group()?;
        for (_, column) in COLUMNS {
            match column {
                Text(of) => {
                    let bytes = |row| of(row).map(|text| ByteArray::from(text.into_bytes()));
                    write_column::<ByteArrayType>(&mut group, rows.iter().map(bytes))?;
                }
                Number(of) => write_column::<DoubleType>(&mut group, rows.iter().map(of))?,
                Count(of) => write_column::<Int64Type>(&mut group, rows.iter().map(of))?,
                Flag(of) => {
                    write_column::<BoolType>(&mut group, rows.iter().map(|row| Some(of(row))))?
                }
            }
        }
        group.close()?;
    }
    writer.close()?;
    Ok(())
}

fn rows<'a>(analysis: &'a Analysis, session: &'a str) -> Vec<Row<'a>> {
    let systems = &analysis.summary.systems;
    let cells = analysis.summary.cells.iter().zip(&analysis.details);
    let of_cell = |(cell, detail): (&'a Cell, &'a crate::summary::Detail)| {
        let system = systems.iter().find(|system| system.name == cell.system);
        let version = system.map_or("", |system| system.version.as_str());
        let of_run = move |run: &'a RunFigures| {
            let row = move |(name, value)| {
                let metric = Metric::named(name);
                Row { session, cell, version, run, metric, value }
            };
            run.all().map(row)
        };
        detail.runs.iter().flat_map(of_run)
    };
    cells.flat_map(of_cell).collect()
}

/// How to fill a column. `None` is null.
enum Column {
    Text(fn(&Row<'_>) -> Option<String>),
    Number(fn(&Row<'_>) -> Option<f64>),
    Count(fn(&Row<'_>) -> Option<i64>),
    Flag(fn(&Row<'_>) -> bool),
}

/// The schema, in the syntax of `parse_message_type`.
fn schema() -> String {
    let column = |(name, column): &(&str, Column)| match column {
        Text(_) => format!("OPTIONAL BYTE_ARRAY {name} (UTF8);"),
        Number(_) => format!("OPTIONAL DOUBLE {name};"),
        Count(_) => format!("OPTIONAL INT64 {name};"),
        Flag(_) => format!("OPTIONAL BOOLEAN {name};"),
    };
    format!("message figures {{ {} }}", COLUMNS.iter().map(column).collect::<String>())
}

/// The unit at the end of a metric's name.
fn unit(name: &str) -> &'static str {
    let found = UNITS.iter().find(|(part, _)| name.contains(part));
    found.map_or("", |(_, unit)| unit)
}

/// By a part of the name; the first counts.
const UNITS: [(&str, &str); 8] = [
    ("_us_per_message", "µs/message"),
    ("_per_message", "1/message"),
    ("_bytes_per_byte", "B/B"),
    ("_percent", "%"),
    ("_per_s", "1/s"),
    ("_us", "µs"),
    ("_ms", "ms"),
    ("_bytes", "B"),
];

/// `docs/reference/results.md` describes them.
const COLUMNS: &[(&str, Column)] = &[
    ("session", Text(|row| Some(row.session.to_owned()))),
    ("scenario", Text(|row| Some(row.cell.scenario.clone()))),
    ("workload", Text(|row| Some(row.cell.workload.name().to_owned()))),
    ("system", Text(|row| Some(row.cell.system.clone()))),
    ("version", Text(|row| Some(row.version.to_owned()).filter(|text| !text.is_empty()))),
    ("tuning", Text(|row| Some(row.cell.tuning.name().to_owned()))),
    ("topology", Text(|row| Some(row.cell.topology.name().to_owned()))),
    ("payload_bytes", Count(|row| i64::try_from(row.cell.params.payload_bytes).ok())),
    ("rate_hz", Number(|row| row.cell.params.rate_hz)),
    ("publishers", Count(|row| Some(row.cell.params.publishers.into()))),
    ("subscribers", Count(|row| Some(row.cell.params.subscribers.into()))),
    ("topics", Count(|row| Some(row.cell.params.topics.into()))),
    ("frame", Text(|row| row.cell.params.frame.clone())),
    ("arrivals", Text(|row| row.cell.params.arrivals.clone())),
    ("module", Text(|row| row.cell.params.module.clone())),
    ("load", Text(|row| row.cell.params.load.clone())),
    ("recording", Text(|row| row.cell.params.recording.clone())),
    ("order", Count(|row| Some(row.run.order.into()))),
    ("valid", Flag(|row| row.run.valid)),
    ("metric", Text(|row| Some(row.metric.name.to_owned()))),
    ("unit", Text(|row| Some(unit(row.metric.name).to_owned()).filter(|it| !it.is_empty()))),
    (
        "better",
        Text(|row| match row.metric.better {
            Better::Lower => Some("lower".to_owned()),
            Better::Higher => Some("higher".to_owned()),
            Better::Neither => None,
        }),
    ),
    ("value", Number(|row| Some(row.value))),
];

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::RowAccessor;

    use super::*;
    use crate::summary::{Detail, Summary, SystemInfo};

    #[test]
    fn each_figure_of_each_run_is_a_row() {
        let run = |order, p50_us| {
            let figures = [("p50_us", p50_us), ("lost", Some(2.0)), ("throughput_per_s", None)];
            RunFigures::new(order, order == 0, figures)
        };
        let runs = vec![run(0, Some(7.5)), run(1, Some(f64::INFINITY))];
        let cell = Cell { scenario: "quick".into(), system: "a.b".into(), ..Cell::default() };
        let system: SystemInfo = serde_json::from_str(
            r#"{"name": "a.b", "about": "", "version": "1.2", "wait": "block",
                "transport": "shared_memory", "loans": false, "floor": false, "missing": null}"#,
        )
        .unwrap();
        let summary = Summary {
            schema: 2,
            host: Default::default(),
            command: String::new(),
            systems: vec![system],
            cells: vec![cell],
            notes: Vec::new(),
            damage: Vec::new(),
        };
        let details = vec![Detail { runs, ..Detail::default() }];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("figures.parquet");
        let analysis = Analysis { summary, details };
        write(&analysis, folder.path(), &File::create(&path).unwrap()).unwrap();

        let place = |name: &str| COLUMNS.iter().position(|it| it.0 == name).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        let found: Vec<(i64, bool, String, f64)> = rows
            .iter()
            .map(|row| {
                let metric = row.get_string(place("metric")).unwrap().clone();
                let (order, valid) = (row.get_long(place("order")), row.get_bool(place("valid")));
                (order.unwrap(), valid.unwrap(), metric, row.get_double(place("value")).unwrap())
            })
            .collect();
        let expected = [
            (0, true, "lost", 2.0),
            (0, true, "p50_us", 7.5),
            (1, false, "lost", 2.0),
            (1, false, "p50_us", f64::INFINITY),
        ];
        assert_eq!(found, expected.map(|(a, b, name, value)| (a, b, name.to_owned(), value)));
        let text = |name: &str| rows[1].get_string(place(name)).unwrap().clone();
        let session = folder.path().file_name().unwrap().to_str().unwrap();
        assert_eq!(
            ["session", "version", "unit", "better"].map(text),
            [session, "1.2", "µs", "lower"]
        );
    }

    #[test]
    fn every_column_is_described() {
        let guide = include_str!("../../../docs/reference/results.md");
        let (_, of_this_file) = guide.split_once("## figures.parquet").unwrap();
        for (name, _) in COLUMNS {
            assert!(of_this_file.contains(&format!("`{name}`")), "results.md lacks {name}");
        }
    }
}
