//! A Parquet file, written a row group at a time.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::RunSource;
use super::columns::{COLUMNS, Fill};
use crate::analyse::messages::{Measured, Message, Messages};

/// The file in the making.
pub(super) struct Sheet<'a>(SerializedFileWriter<&'a File>);

impl<'a> Sheet<'a> {
    /// Begins to write `file`.
    pub(super) fn new(file: &'a File) -> anyhow::Result<Self> {
        let schema = Arc::new(parse_message_type(&schema())?);
        let mut properties = WriterProperties::builder()
            .set_created_by(concat!("myelin ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION)?));
        for (name, of) in COLUMNS {
            if matches!(of, Fill::Nanoseconds(_)) {
                let column = ColumnPath::from(*name);
                properties = properties
                    .set_column_dictionary_enabled(column.clone(), false)
                    .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
            }
        }
        Ok(Sheet(SerializedFileWriter::new(file, schema, Arc::new(properties.build()))?))
    }

    /// Adds the rows of a run.
    pub(super) fn add(&mut self, source: &RunSource<'_>, rows: Messages) -> anyhow::Result<()> {
        let Messages { all, measured } = rows;
        for rows in all.chunks(ROWS_PER_GROUP) {
            let mut group = self.0.next_row_group()?;
            for (_, of) in COLUMNS {
                write_column(&mut group, of, source, rows, &measured)?;
            }
            group.close()?;
        }
        Ok(())
    }

    /// Ends the file.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        self.0.close()?;
        Ok(())
    }
}

/// As `parse_message_type` reads it.
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

type Group<'a, 'b> = SerializedRowGroupWriter<'a, &'b File>;

fn write_column(
    group: &mut Group<'_, '_>,
    of: &Fill,
    source: &RunSource<'_>,
    rows: &[Message],
    measured: &Measured,
) -> Result<()> {
    let all = rows.len();
    match of {
        Fill::Text(of) => {
            let text = of(source).map(|text| ByteArray::from(text.into_bytes()));
            write::<ByteArrayType>(group, std::iter::repeat_n(text, all))
        }
        Fill::Float(of) => write::<DoubleType>(group, std::iter::repeat_n(of(source), all)),
        Fill::Count(of) => write::<Int64Type>(group, std::iter::repeat_n(of(source), all)),
        Fill::Flag(of) => write::<BoolType>(group, std::iter::repeat_n(Some(of(source)), all)),
        Fill::Nanoseconds(of) => {
            write::<Int64Type>(group, rows.iter().map(|row| of(row, measured)))
        }
        Fill::Number(of) => write::<Int32Type>(group, rows.iter().map(|row| of(row, measured))),
        Fill::RowFlag(of) => {
            write::<BoolType>(group, rows.iter().map(|row| Some(of(row, measured))))
        }
    }
}

/// Writes the next column of the group.
fn write<T: DataType>(
    group: &mut Group<'_, '_>,
    cells: impl Iterator<Item = Option<T::T>>,
) -> Result<()> {
    let (mut levels, mut values) = (Vec::new(), Vec::new());
    for cell in cells {
        levels.push(i16::from(cell.is_some()));
        values.extend(cell);
    }
    let mut column = group.next_column()?.expect("the schema has each of the columns");
    column.typed::<T>().write_batch(&values, Some(&levels), None)?;
    column.close()
}

/// At most: with the columns, some 100 MB of memory.
const ROWS_PER_GROUP: usize = 1 << 18;
/// Of zstd.
const COMPRESSION: i32 = 3;
