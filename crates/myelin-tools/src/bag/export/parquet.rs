//! Tables as Parquet, for pandas, polars and DuckDB: each number in its own type.

use std::fs::File;
use std::io;
use std::sync::Arc;

use myelin_value::Primitive;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::columns::{Cell, Column, ColumnKind};

/// Writes a table, in groups of rows.
pub struct ParquetTable {
    writer: SerializedFileWriter<File>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    rows_bytes: usize,
    rows_bytes_max: usize,
}

impl ParquetTable {
    /// Begins a table. A group of rows takes up to so many bytes of memory.
    pub fn new(file: File, columns: &[Column], rows_bytes_max: usize) -> io::Result<ParquetTable> {
        let fields = columns.iter().map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("messages").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_created_by(concat!("myelin ", env!("CARGO_PKG_VERSION")).into())
            .set_compression(Compression::ZSTD(ZstdLevel::try_new(COMPRESSION)?));
        let properties = Arc::new(properties.build());
        Ok(ParquetTable {
            writer: SerializedFileWriter::new(file, Arc::new(schema), properties)?,
            columns: columns.to_vec(),
            rows: Vec::new(),
            rows_bytes: 0,
            rows_bytes_max,
        })
    }

    /// Adds a row.
    pub fn add(&mut self, cells: Vec<Cell>) -> io::Result<()> {
        self.rows_bytes += cells.iter().map(bytes_of).sum::<usize>();
        self.rows.push(cells);
        if self.rows.len() >= ROWS_MAX || self.rows_bytes >= self.rows_bytes_max {
            self.write_rows()?;
        }
        Ok(())
    }

    /// Writes what is left, and the end of the file.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_rows()?;
        self.writer.close()?;
        Ok(())
    }

    fn write_rows(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let mut group = self.writer.next_row_group()?;
        for (at, column) in self.columns.iter().enumerate() {
            let cells = self.rows.iter().map(|row| &row[at]);
            match physical(column.kind) {
                Physical::BOOLEAN => write::<BoolType>(&mut group, column, cells, |cell| {
                    matches!(cell, Cell::Bool(true))
                })?,
                Physical::INT32 => {
                    write::<Int32Type>(&mut group, column, cells, |cell| whole(cell) as i32)?;
                }
                Physical::INT64 => write::<Int64Type>(&mut group, column, cells, whole)?,
                Physical::FLOAT => write::<FloatType>(&mut group, column, cells, |cell| {
                    if let Cell::F32(value) = cell { *value } else { f32::NAN }
                })?,
                Physical::DOUBLE => write::<DoubleType>(&mut group, column, cells, |cell| {
                    if let Cell::F64(value) = cell { *value } else { f64::NAN }
                })?,
                _ => write::<ByteArrayType>(&mut group, column, cells, |cell| match cell {
                    Cell::Text(text) => ByteArray::from(text.as_str()),
                    Cell::Bytes(bytes) => ByteArray::from(bytes.clone()),
                    _ => ByteArray::from(""),
                })?,
            }
        }
        group.close()?;
        self.rows.clear();
        self.rows_bytes = 0;
        Ok(())
    }
}

/// Writes the next column of a group.
fn write<'c, T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    column: &Column,
    cells: impl Iterator<Item = &'c Cell>,
    value: impl Fn(&Cell) -> T::T,
) -> Result<()> {
    let is_list = matches!(column.kind, ColumnKind::List(_));
    let (mut values, mut defined, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
    for cell in cells {
        match cell {
            Cell::Null => defined.push(0),
            Cell::List(elements) => {
                defined.push(if elements.is_empty() { LIST_EMPTY } else { LIST_ELEMENT });
                defined.extend(elements.iter().skip(1).map(|_| LIST_ELEMENT));
                repeated.push(0);
                repeated.extend(elements.iter().skip(1).map(|_| 1));
                values.extend(elements.iter().map(&value));
                continue;
            }
            _ => {
                defined.push(1);
                values.push(value(cell));
            }
        }
        repeated.push(0);
    }
    let mut writer = group.next_column()?.expect("the schema has each of the columns");
    let repeated = is_list.then_some(&repeated[..]);
    writer.typed::<T>().write_batch(&values, Some(&defined), repeated)?;
    writer.close()
}

fn field(column: &Column) -> Result<TypePtr> {
    let (name, optional) = (column.name.as_str(), Repetition::OPTIONAL);
    let ColumnKind::List(number) = column.kind else {
        return one(name, column.kind, optional);
    };
    // The three levels that Parquet's specification wants.
    let element = one("element", ColumnKind::Number(number), Repetition::REQUIRED)?;
    let list = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
    let list = Arc::new(list.with_fields(vec![element]).build()?);
    let outer = Type::group_type_builder(name).with_repetition(optional);
    let outer = outer.with_logical_type(Some(LogicalType::List)).with_fields(vec![list]);
    Ok(Arc::new(outer.build()?))
}

fn one(name: &str, kind: ColumnKind, repetition: Repetition) -> Result<TypePtr> {
    let ty = Type::primitive_type_builder(name, physical(kind));
    let ty = ty.with_repetition(repetition).with_logical_type(logical(kind));
    Ok(Arc::new(ty.build()?))
}

fn physical(kind: ColumnKind) -> Physical {
    match kind {
        ColumnKind::Number(number) | ColumnKind::List(number) => match number {
            Primitive::Bool => Physical::BOOLEAN,
            Primitive::F32 => Physical::FLOAT,
            Primitive::F64 => Physical::DOUBLE,
            _ if number.bytes() <= 4 => Physical::INT32,
            _ => Physical::INT64,
        },
        ColumnKind::Text | ColumnKind::Bytes => Physical::BYTE_ARRAY,
    }
}

fn logical(kind: ColumnKind) -> Option<LogicalType> {
    let ColumnKind::Number(number) = kind else {
        return (kind == ColumnKind::Text).then_some(LogicalType::String);
    };
    let is_signed =
        matches!(number, Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64);
    let is_whole = !matches!(number, Primitive::Bool | Primitive::F32 | Primitive::F64);
    let bit_width = 8 * number.bytes() as i8;
    is_whole.then_some(LogicalType::integer(bit_width, is_signed))
}

fn whole(cell: &Cell) -> i64 {
    match cell {
        Cell::Signed(value) => *value,
        // Its bits: the type says that it has no sign.
        Cell::Unsigned(value) => value.cast_signed(),
        _ => 0,
    }
}

fn bytes_of(cell: &Cell) -> usize {
    size_of::<Cell>()
        + match cell {
            Cell::Text(text) => text.len(),
            Cell::Bytes(bytes) => bytes.len(),
            Cell::List(cells) => cells.len() * size_of::<Cell>(),
            _ => 0,
        }
}

/// Levels of definition: a list that is there and empty, and one with elements.
const LIST_EMPTY: i16 = 1;
const LIST_ELEMENT: i16 = 2;
/// Of a group.
const ROWS_MAX: usize = 1 << 17;
/// Level of zstd.
const COMPRESSION: i32 = 3;
